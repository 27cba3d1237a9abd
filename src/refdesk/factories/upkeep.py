"""Keeps what is served current: syncs when a sync is due, or when somebody asks for one."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from refdesk import errors
from refdesk.core import tracing
from refdesk.core.fairness import outside
from refdesk.factories.toolsets import choose_syncer, get_toolset, list_sources

if TYPE_CHECKING:
    from collections.abc import Callable

    from refdesk.core.background.sync_log import SyncReport
    from refdesk.core.background.syncing import OnProgress, Syncer, SyncProgress
    from refdesk.core.background.upkeep import EmbeddingState, SyncState
    from refdesk.core.keys import KeyRing
    from refdesk.core.tracing import Tracer
    from refdesk.factories.bases import Base
    from refdesk.settings import Settings

logger = logging.getLogger(__name__)

CHECK_SECONDS = 600.0
"""How often a server that runs for days checks whether a sync is due."""

TELL_SECONDS = 2.0
"""How often the progress of a sync is logged."""

RETRY_SECONDS = 60.0
"""The pause after a failed sync; it doubles up to `CHECK_SECONDS`."""


@dataclass(frozen=True, slots=True)
class DeskUpkeep:
    """An `Upkeep` of what one desk serves.

    Attributes:
        names: The toolsets that it serves.
        tracer: Begins the traces of background work.
    """

    settings: Settings
    base: Base
    names: tuple[str, ...]
    tracer: Tracer | None = None

    @property
    def keys(self) -> KeyRing:
        """The keys that open it."""
        return self.base.keys

    def list_sources(self) -> list[str]:
        """Return the names of the sources of the toolsets; see `refdesk.factories.toolsets.list_sources`."""
        return [source for name in self.names for source in list_sources(self.settings, name)]

    async def sync(
        self, toolset: str, on_progress: OnProgress, *, full: bool = False, force: bool = False
    ) -> SyncReport:
        """Bring a toolset up to date with its source; see `Upkeep.sync`."""
        if toolset not in self.list_sources():
            served = ", ".join(self.list_sources()) or "none is served here"
            raise errors.InvalidInputError(
                f"No toolset {toolset[:80]!r} has a source to be synced with. There are: {served}."
            )
        async with outside():  # it waits for the source most of the time
            return await self._sync(self._choose_syncer(toolset), toolset, on_progress, full=full, force=force)

    async def _sync(
        self,
        syncer: Syncer,
        toolset: str,
        on_progress: OnProgress = lambda _: None,
        *,
        full: bool = False,
        force: bool = False,
    ) -> SyncReport:
        said_at = time.monotonic()

        def note(state: SyncProgress) -> None:
            nonlocal said_at
            self.base.syncing[toolset] = state
            on_progress(state)
            if time.monotonic() - said_at >= TELL_SECONDS:
                said_at = time.monotonic()
                logger.info("syncing", extra={"toolset": toolset, "read": state.read, "of": state.total})

        is_first = toolset not in self.base.syncing
        if is_first:
            self.base.syncing[toolset] = None
        try:
            done = await syncer.sync(full=full, force=force, on_progress=note)
        finally:
            if is_first:
                self.base.syncing.pop(toolset, None)
        logger.info("synced", extra={"toolset": toolset, "outcome": done.outcome, "written": done.written})
        self.base.knowledge_base.note_change()
        return done

    async def list_syncs(self) -> list[SyncState]:
        """Return the state of every source of the toolsets that are served."""
        from refdesk.core.background.upkeep import SyncState

        now, found = self.base.knowledge_base.clock.now(), list[SyncState]()
        for name in self.list_sources():
            syncer = self._choose_syncer(name)
            status, is_due = await syncer.get_status(), await syncer.is_due(now)
            is_running = await syncer.is_running()
            found.append(SyncState(name, status, is_due, is_running, self.base.syncing.get(name)))
        return found

    async def get_embedding(self, orgs: frozenset[str] | None = None) -> EmbeddingState:
        """Return the progress of embedding."""
        from refdesk.core.background.upkeep import measure

        return await measure([each.indexer for each in self.base.each()], orgs)

    async def retry_embeddings(self, orgs: frozenset[str] | None = None, toolset: str | None = None) -> int:
        """Let documents that could not be embedded be tried again; return how many there are."""
        return sum([await each.indexer.retry_failures(orgs, toolset) for each in self.base.each()])

    async def keep_current(self, toolset: str, on_round: Callable[[bool], None] = lambda _: None) -> None:
        """Sync whenever that is due, until cancelled. Failures are logged and retried, each time after a longer pause.

        Args:
            toolset: The toolset, or one of its sources if it has several.
            on_round: Called with `True` after a round that went well, with `False` after one that met a bug; not called
                after one that failed for an outside reason.
        """
        syncer, pause = self._choose_syncer(toolset), RETRY_SECONDS
        while True:
            wait, pause = pause, min(2 * pause, CHECK_SECONDS)
            try:
                if await syncer.is_due(self.base.knowledge_base.clock.now()):
                    with tracing.trace(self.tracer, "sync", toolset=toolset):
                        await self._sync(syncer, toolset)
                await self._note_age(syncer, toolset)
                wait, pause = CHECK_SECONDS, RETRY_SECONDS
                on_round(True)
            except errors.RefdeskError as error:
                logger.warning("not synced", extra={"toolset": toolset, "reason": error.message})
            except Exception:
                # What the source sent may have changed by the next round, and may then no longer trigger the bug.
                logger.exception("syncing broke", extra={"toolset": toolset})
                on_round(False)
            await anyio.sleep(wait)

    async def _note_age(self, syncer: Syncer, toolset: str) -> None:
        """Note when the toolset was last synced, so that agents can be given the age of its copy."""
        if (last := (await syncer.get_status()).last_success) is not None:
            self.base.synced[toolset] = last

    def _choose_syncer(self, toolset: str) -> Syncer:
        return choose_syncer(self.settings, toolset, self.base.of(get_toolset(toolset)).knowledge_base.store)
