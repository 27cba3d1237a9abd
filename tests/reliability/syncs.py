"""Syncs of the sample world that are killed somewhere, and what is found then and after the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread

from refdesk.core.background import sync_log
from refdesk.core.background.leases import Holder, Lease
from refdesk.core.background.records import InvalidRecordError
from refdesk.core.clock import SystemClock
from refdesk.model import Document, FindRequest, State
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.records import to_document
from sample_world.azure_updates.process import RunningEmulator
from sample_world.azure_updates.world import load_world
from tests.reliability.lives import KILLED, Nursery

SYNC = ("sync", "azure-updates")
MOST_CALLS = {1: 1_150, 2: 380}
"""About so many times a sync of each day changes the disk; one that dies later does not die."""


@dataclass(frozen=True)
class Day:
    """What one day's feed makes: documents by id, and the ids of records that cannot be read."""

    documents: Mapping[str, Document]
    bad: frozenset[str]

    @classmethod
    def load(cls, number: int) -> Day:
        documents: dict[str, Document] = {}
        bad: set[str] = set()
        for record in load_world(number):
            try:
                document = to_document(record)  # pyright: ignore[reportArgumentType] - records are JSON
                documents[document.id] = document
            except InvalidRecordError:
                bad.add(str(record["id"]))
        return cls(documents, frozenset(bad))

    @property
    def digests(self) -> dict[str, str]:
        return {id: document.digest for id, document in self.documents.items()}


@dataclass
class SyncTrials:
    """Kills a sync of day 1 and one of day 2 in one home after another, each followed by one that is let be.

    Attributes:
        arguments: Those of the sync that is killed on day 1.
    """

    nursery: Nursery
    emulator: RunningEmulator
    random: Random
    arguments: Sequence[str] = SYNC
    days: dict[int, Day] = field(default_factory=lambda: {1: Day.load(1), 2: Day.load(2)})
    kills: int = 0
    faults: set[str] = field(default_factory=set[str])

    async def run(self, kills: int) -> set[str]:
        """Return what was wrong after so many kills, or as many as it takes to see something."""
        number = 0
        while self.kills < kills and not self.faults:
            number += 1
            await self._live(self.nursery.home / f"home-{number}")
        return self.faults

    async def _live(self, home: Path) -> None:
        path = home / "refdesk.sqlite3"
        await self.emulator.set_world(day=1)
        await self._sync(home, *self.arguments, calls=self.random.randrange(1, MOST_CALLS[1]))
        await self._check_whole(path, 1)
        await self._sync(home, *SYNC)
        await self._check_done(path, 1)
        if self.faults:
            return
        await self.emulator.set_world(day=2)
        await self._sync(home, *SYNC, "--full", calls=self.random.randrange(1, MOST_CALLS[2]))
        await self._check_whole(path, 1, 2)
        await self._sync(home, *SYNC, "--full")
        await self._check_done(path, 2)

    async def _sync(self, home: Path, *arguments: str, calls: int | None = None) -> None:
        with self.nursery.start(*arguments, calls=calls, home=home) as life:
            status = await anyio.to_thread.run_sync(life.wait)
        self.kills += status == KILLED
        if status not in ((KILLED, 0) if calls else (0,)):
            self.faults.add(f"the next sync ended with {status}")

    async def _check_whole(self, path: Path, *days: int) -> None:
        """Every document is as one of the days has it, whole, and just those are found."""
        check_integrity(path)
        async with open_store(path) as store:
            digests = await store.get_digests(COLLECTION)
            right = {pair for day in days for pair in self.days[day].digests.items()}
            self._note("half-visible", not digests.items() <= right)
            self._note("not found", await find_all(store) != set(digests))
            lease = Lease(f"sync:{TOOLSET_NAME}", store, SystemClock(), Holder())
            self._note("blocked", not await lease.acquire())
            await lease.release()

    async def _check_done(self, path: Path, number: int) -> None:
        """The store holds just what the day's feed holds, and every version before it."""
        day, yesterday = self.days[number], self.days[1]
        async with open_store(path) as store:
            self._note("not the feed's state", await store.get_digests(COLLECTION) != day.digests)
            self._note("not found", await find_all(store) != set(day.documents))
            bad = frozenset(each.name for each in await sync_log.read_dead_letters(store, TOOLSET_NAME))
            self._note("bad records not set aside", bad != day.bad)
            status = await sync_log.read_status(store, TOOLSET_NAME)
            self._note("not noted as done", status.last_success is None or status.documents != len(day.documents))
            for id in yesterday.documents.keys() | day.documents.keys():
                wrong = await self._is_history_wrong(store, id, day)
                self._note("an earlier version is gone or doubled", wrong)

    async def _is_history_wrong(self, store: Store, id: str, day: Day) -> bool:
        revisions = [revision.document for revision in await store.get_revisions(COLLECTION, id)]
        first, last = self.days[1].documents.get(id), day.documents.get(id)
        right = [] if first is None else [first.digest]
        if last is not None and last.digest not in right:
            right.append(last.digest)
        kept = [each.digest for each in revisions if each.state is not State.WITHDRAWN]
        numbers = [each.version for each in revisions]
        is_ended = revisions[-1].state is State.WITHDRAWN if revisions else True
        return kept != right or is_ended != (last is None) or numbers != list(range(1, len(numbers) + 1))

    def _note(self, fault: str, is_so: bool) -> None:
        if is_so:
            self.faults.add(fault)


def check_integrity(path: Path) -> None:
    connection = Connection(path, 10_000)
    try:
        assert connection.execute("PRAGMA integrity_check") == [("ok",)]
    finally:
        connection.close()


async def find_all(store: Store) -> set[str]:
    found = await store.find(FindRequest(COLLECTION, depth=100_000))
    return {candidate.id for candidate in found.candidates}
