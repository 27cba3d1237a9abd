"""A page that is known byte by byte is not read again, and whoever knows pages ends where those end who do not."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from refdesk import errors
from refdesk.core.background import sync_log
from refdesk.core.background.syncing import Syncer
from refdesk.core.clock import FixedClock
from refdesk.model import JsonValue, State
from refdesk.sources import SourcePage
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.records import to_document
from refdesk.toolsets.azure_updates.source import AzureUpdatesSource, make_reader
from sample_world.azure_updates.process import RunningEmulator
from tests.toolsets.azure_updates.conftest import NOW
from tests.toolsets.azure_updates.samples import make_record

Records = list[dict[str, Any]]
Edit = Callable[[Records, random.Random, int], None]

PAGE = 7
STEPS = 16


@dataclass(slots=True)
class CountingSource:
    """The feed; `known` pages were not read, the others were."""

    source: AzureUpdatesSource
    known: int = 0
    others: int = 0

    @property
    def is_complete(self) -> bool:
        return self.source.is_complete

    def read(self, since: str | None) -> AsyncIterator[SourcePage]:
        return self.read_with({}, since)

    async def read_with(self, known: Mapping[str, JsonValue], since: str | None) -> AsyncIterator[SourcePage]:
        async for page in self.source.read_with(known, since):
            is_known = page.unread is not None
            self.known += is_known
            self.others += not is_known
            yield page


@dataclass(frozen=True, slots=True)
class Copy:
    """One of two copies of the same feed."""

    store: MemoryStore
    source: CountingSource
    syncer: Syncer

    async def describe(self) -> dict[str, object]:
        """Return everything that the syncs have left, but for what they remember to be quicker."""
        places = [place for place in await self.store.list_documents(None, 10_000) if place[0] == COLLECTION]
        histories = await self.store.get_histories(COLLECTION, [id for _, id in places])
        status = await sync_log.read_status(self.store, TOOLSET_NAME)
        runs = await sync_log.read_runs(self.store, TOOLSET_NAME)
        letters = await sync_log.read_dead_letters(self.store, TOOLSET_NAME)
        return {"histories": histories, "status": status, "runs": runs, "letters": letters}


def make_copy(emulator: RunningEmulator, version: str | None, page_size: int = PAGE) -> Copy:
    store = MemoryStore(FixedClock(NOW))
    reader = replace(make_reader(emulator.url), first_wait=0.0)
    source = CountingSource(AzureUpdatesSource(reader, page_size=page_size))
    syncer = Syncer(store, source, COLLECTION, to_document, FixedClock(NOW), converter_version=version)
    return Copy(store, source, syncer)


@pytest.fixture
def copies(emulator: RunningEmulator) -> tuple[Copy, Copy]:
    """One that knows what it has read, and one that reads and converts everything every time."""
    return make_copy(emulator, "1"), make_copy(emulator, None)


async def sync(copy: Copy, *, full: bool = True, force: bool = False) -> None:
    with suppress(errors.SourceError):
        await copy.syncer.sync(full=full, force=force)


def make_world(count: int) -> Records:
    return [dict(make_record(f"{number:04}")) for number in range(count)]


def edit(records: Records, chance: random.Random, step: int) -> None:
    chance.choice(records)["title"] = f"Edited {step}"


def remove(records: Records, chance: random.Random, _: int) -> None:
    del records[chance.randrange(len(records))]


def insert(records: Records, chance: random.Random, step: int) -> None:
    records.append(dict(make_record(f"{chance.randrange(10_000):04}-{step}")))


def spoil(records: Records, chance: random.Random, _: int) -> None:
    chance.choice(records)["created"] = "never"


def repair(records: Records, _: random.Random, __: int) -> None:
    for record in records:
        record["created"] = "2026-02-27T15:00:00.1234567Z"


def double(records: Records, chance: random.Random, step: int) -> None:
    records.append({**chance.choice(records), "title": f"Once more {step}"})


def swap(records: Records, chance: random.Random, _: int) -> None:
    one, other = chance.sample(records, 2)
    one["title"], other["title"] = other["title"], one["title"]


def unname(records: Records, chance: random.Random, _: int) -> None:
    chance.choice(records)["id"] = chance.choice([None, 5, ""])


def leave(_: Records, __: random.Random, ___: int) -> None:
    return


EDITS: Sequence[Edit] = (edit, remove, insert, spoil, repair, double, swap, unname, leave, leave, leave)
FAULTS: Sequence[dict[str, object]] = (
    {"fault": "status", "status": 403, "at": [3]},
    {"fault": "empty_page", "at": [3]},
    {"fault": "duplicate_page", "at": [2]},
    {"fault": "wrong_count", "at": [1, 2], "count_error": 5},
)


@pytest.mark.parametrize("seed", range(2))
async def test_whatever_the_feed_does_both_copies_end_alike(
    copies: tuple[Copy, Copy], emulator: RunningEmulator, seed: int
) -> None:
    chance, records = random.Random(seed), make_world(40)
    for step in range(STEPS):
        chance.choice(EDITS)(records, chance, step)
        await emulator.set_world(sorted(records, key=lambda record: str(record["id"])))
        is_faulty, is_full, fault = chance.random() < 0.2, chance.random() < 0.8, chance.choice(FAULTS)
        for copy in copies:
            await emulator.set_faults([fault] if is_faulty else [])
            await emulator.forget_requests()
            await sync(copy, full=is_full, force=step % 9 == 8)
        assert await copies[0].describe() == await copies[1].describe(), (seed, step)
    assert copies[0].source.known >= 8
    assert copies[1].source.known == 0


async def test_over_the_captured_timeline_both_copies_end_alike(shared_data: Path, emulator: RunningEmulator) -> None:
    folder = shared_data / "azure-updates"
    archive = {each["id"]: each for each in json.loads((folder / "archive.json").read_text(encoding="utf-8"))["items"]}
    steps: Records = json.loads((folder / "timeline.json").read_text(encoding="utf-8"))
    copies = make_copy(emulator, "1", 100), make_copy(emulator, None, 100)
    world = {id: archive[id] for id in steps[0]["ids"] if id in archive}
    for number, step in enumerate(steps[1:]):
        world |= {id: archive[id] for id in step["added"] if id in archive}
        world |= {each["id"]: archive[each["id"]] | each["after"] for each in step["changed"] if each["id"] in archive}
        if number % 9 == 8 or step["changed"]:
            await emulator.set_world(list(world.values()))
            for copy in copies:
                await sync(copy)
                await sync(copy)
            assert await copies[0].describe() == await copies[1].describe(), step["at"]
    assert copies[0].source.known >= copies[0].source.others > 0


async def test_a_feed_that_did_not_change_is_not_read(copies: tuple[Copy, Copy], emulator: RunningEmulator) -> None:
    copy, _ = copies
    await emulator.set_world(make_world(40))
    await sync(copy)
    copy.source.others = 0
    report = await copy.syncer.sync(full=True)
    assert (copy.source.others, report.unchanged, report.written) == (0, 40, 0)
    # What is remembered is in the store: a new process knows it too.
    anew = replace(copy.syncer, source=CountingSource(copy.source.source))
    await anew.sync(full=True)
    assert anew.source == CountingSource(copy.source.source, known=7)


async def test_what_the_store_lost_is_read_again_from_a_page_that_is_known(
    copies: tuple[Copy, Copy], emulator: RunningEmulator
) -> None:
    copy, _ = copies
    await emulator.set_world(make_world(10))
    await sync(copy)
    [document] = await copy.store.get_documents(COLLECTION, ["0003"])
    assert document is not None
    async with copy.store.transaction() as transaction:
        await transaction.put_documents([replace(document, state=State.WITHDRAWN, version=2)])
    report = await copy.syncer.sync(full=True)
    assert (report.restored, report.unchanged) == (1, 9)


async def test_another_version_of_the_converter_reads_every_page(
    copies: tuple[Copy, Copy], emulator: RunningEmulator
) -> None:
    copy, _ = copies
    await emulator.set_world(make_world(10))
    await sync(copy)
    copy.source.known = 0
    await replace(copy.syncer, converter_version="2").sync(full=True)
    assert copy.source.known == 0
