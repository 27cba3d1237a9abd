"""Opens what a desk works with, as the settings select it: its stores, and what searches and embeds in each."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from refdesk.discovery import list_scopes
from refdesk.factories.embedders import choose_embedder, choose_reranker, find_embedder
from refdesk.factories.impact import choose_note
from refdesk.factories.stores import (
    check_addresses,
    check_coordination,
    choose_followed,
    choose_store,
    open_coordination,
)
from refdesk.factories.toolsets import choose_options, choose_own_stores, list_names, list_quotas

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.core.background.embedding import Indexer
    from refdesk.core.background.syncing import SyncProgress
    from refdesk.core.doorbell import Doorbell
    from refdesk.core.key_files import KeyFile
    from refdesk.core.keys import KeyRing
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.operations import Toolset
    from refdesk.core.search.semantics import Semantics
    from refdesk.core.tracing import Tracer
    from refdesk.factories.stores import Coordination, OpenStore
    from refdesk.model import EmbeddingModel
    from refdesk.protocols import Embedder, JobQueue, Store
    from refdesk.settings import Settings


@dataclass(frozen=True, slots=True)
class Base:
    """What is open once the store is.

    Attributes:
        queue: Announces new work to workers.
        apart: The same for each toolset that is kept in a store of its own.
        syncing: The toolsets that this process is syncing right now, each with its progress once that is known.
        synced: When the toolsets that are kept current were last synced, as far as that is known.
    """

    knowledge_base: KnowledgeBase
    semantics: Semantics
    indexer: Indexer
    keys: KeyRing
    queue: JobQueue | None = None
    apart: Mapping[str, Base] = field(default_factory=dict[str, "Base"])
    syncing: dict[str, SyncProgress | None] = field(default_factory=dict[str, "SyncProgress | None"])
    synced: dict[str, datetime] = field(default_factory=dict[str, "datetime"])

    def of(self, toolset: str) -> Base:
        """Return the base of the store in which a toolset is kept."""
        return self.apart.get(toolset, self)

    def each(self) -> tuple[Base, ...]:
        """Return the base of every store."""
        return (self, *self.apart.values())


OpenBase: TypeAlias = Callable[[], AbstractAsyncContextManager[Base]]


def choose_base(settings: Settings, toolsets: Sequence[Toolset], tracer: Tracer | None, *, is_kept: bool) -> OpenBase:
    """Return what opens the stores of these toolsets; no store is opened yet.

    Args:
        settings: Where they are, and what they are used with.
        toolsets: The toolsets.
        tracer: Begins traces, if any are sent.
        is_kept: Whether they stay open for background work, and not for one command.

    Raises:
        ConfigurationError: A setting names something that does not exist, or a key file that cannot be used.
        MissingDependencyError: What a setting names needs an extra that is not installed.
    """
    open_store = choose_followed(settings.store_url, read=settings.store_read_urls)
    own = choose_own_stores(settings, [toolset.name for toolset in toolsets])
    apart = {name: choose_followed(url, variable) for name, (url, variable) in own.items()}
    check_coordination(settings)
    # Read here, so that a file that cannot be read is reported at the start, before anybody is served.
    keys_file = open_key_file(settings)
    coordinate = partial(open_coordination, settings, is_kept=is_kept)
    return lambda: _open_base(settings, open_store, apart, tracer, keys_file, coordinate)


def _choose_watches(tracer: Tracer | None) -> tuple[Callable[[Store], Store], Callable[[Embedder], Embedder]]:
    """Return what makes the work of stores and embedders appear in traces."""
    if tracer is None:
        return lambda store: store, lambda embedder: embedder
    from refdesk.telemetry.watching import watch_embedder, watch_store

    return watch_store, partial(watch_embedder, tracer=tracer)


def open_key_file(settings: Settings) -> KeyFile | None:
    """Return the keys that a file lists; `None` if the settings name no such file.

    Raises:
        ConfigurationError: It cannot be read, or a line of it is not a key.
    """
    if settings.keys_file is None:
        return None
    from refdesk.core.key_files import KeyFile

    return KeyFile(settings.keys_file, list_scopes()).open()


def check_opening(settings: Settings) -> None:
    """Check that the settings are written such that the stores, the queue and the embedder can be opened.

    Unlike `choose_base`, it imports what parses addresses, if they name a server.

    Raises:
        ConfigurationError: An address is malformed, a key is missing, or a key file cannot be used.
        MissingDependencyError: What a setting names needs an extra that is not installed.
    """
    open_key_file(settings)
    own = _list_own_stores(settings)
    choose_store(settings.store_url, read=settings.store_read_urls)
    for url, variable in own:
        choose_store(url, variable)
    check_coordination(settings)
    check_addresses(settings.redis, [settings.store_url, *(url for url, _ in own)])
    if settings.embedder not in ("local", "hashing"):
        choose_embedder(settings, settings.embedder)


def _list_own_stores(settings: Settings) -> Sequence[tuple[str, str]]:
    return [*choose_own_stores(settings, list_names()).values()]


@asynccontextmanager
async def _open_base(
    settings: Settings,
    open_store: OpenStore,
    apart: Mapping[str, OpenStore],
    tracer: Tracer | None,
    keys_file: KeyFile | None,
    coordinate: Callable[[Doorbell, Store], AbstractAsyncContextManager[Coordination]],
) -> AsyncGenerator[Base]:
    from refdesk.core.background.embedding import Indexer
    from refdesk.core.clock import SystemClock
    from refdesk.core.keys import KeyRing
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.search.semantics import Semantics
    from refdesk.core.writing.sizes import open_counted

    async with AsyncExitStack() as stack:
        watch_store, watch_embedder = _choose_watches(tracer)
        wanted = watch_embedder(await stack.enter_async_context(choose_embedder(settings, settings.embedder)))
        clock = SystemClock()
        make = partial(KnowledgeBase, clock=clock, quotas=list_quotas(settings))

        def reopen(model: EmbeddingModel) -> Embedder | None:
            embedder = find_embedder(settings, model)
            return embedder if embedder is None else watch_embedder(stack.push_async_exit(embedder))

        async def open_watched(open_one: OpenStore) -> Store:
            return await open_counted(watch_store(await stack.enter_async_context(open_one())), settings.max_org_bytes)

        store = await open_watched(open_store)
        semantics = Semantics(store, wanted, reopen)
        coordination = await stack.enter_async_context(coordinate(semantics.doorbell, store))
        make_note = choose_note()
        keys, others = KeyRing(store, clock, list_scopes(), file=keys_file), dict[str, Base]()
        for toolset, open_other in apart.items():
            other = await open_watched(open_other)
            own = Semantics(other, wanted, reopen, questions=semantics.questions, breaker=semantics.breaker)
            others[toolset] = Base(make(other, own), own, Indexer(other, own, clock, make_note=make_note), keys)
        base = make(
            store,
            semantics,
            queue=coordination.queue,
            scratchpad=coordination.scratchpad,
            options=choose_options(settings),
            reranker=choose_reranker(settings),
        )
        indexer = Indexer(store, semantics, clock, queue=coordination.queue, make_note=make_note)
        yield Base(base, semantics, indexer, keys, coordination.queue, others)
