"""Wraps stores and embedders so that their work shows in traces."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from refdesk.core import tracing

if TYPE_CHECKING:
    from refdesk.core.tracing import Tracer
    from refdesk.model import Vector
    from refdesk.protocols import Embedder, Store, Transaction


def watch_store(store: Store) -> Store:
    """Return the store, wrapped so that what a traced call does with it is part of the trace."""
    return cast("Store", _WatchedStore(store))


def watch_embedder(embedder: Embedder, tracer: Tracer) -> Embedder:
    """Return the embedder, wrapped so that its work for a traced call is part of the trace. Passages embedded outside
    of one make a trace of their own."""
    return cast("Embedder", _WatchedEmbedder(embedder, tracer))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _WatchedStore:
    store: Store

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        found = getattr(self.store, name)
        if not (inspect.iscoroutinefunction(found) and tracing.is_traced()):
            return found

        async def ask(*arguments: object, **options: object) -> object:
            with tracing.span(f"store {name}"):
                return await found(*arguments, **options)

        return ask

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Transaction]:
        with tracing.span("store transaction"):
            async with self.store.transaction() as transaction:
                yield transaction


@dataclass(frozen=True, slots=True)
class _WatchedEmbedder:
    embedder: Embedder
    tracer: Tracer

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the embedder has
        return getattr(self.embedder, name)

    async def embed_query(self, text: str) -> Vector:
        with tracing.span("embed", of="question"):
            return await self.embedder.embed_query(text)

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        root = None if tracing.is_traced() else self.tracer
        with tracing.trace(root, "embed", of="passages") if root else tracing.span("embed", of="passages"):
            return await self.embedder.embed_passages(texts)
