from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import pytest

from refdesk import errors
from refdesk.core.background import sync_log
from refdesk.core.background.leases import Holder, Lease
from refdesk.core.background.records import InvalidRecordError
from refdesk.core.background.sync_log import MAX_CHANGES, MAX_RUNS, Change
from refdesk.core.background.syncing import LeaseLostError, Syncer, SyncProgress
from refdesk.core.clock import FixedClock
from refdesk.model import Collection, Document, JsonObject, MetadataKey, State
from refdesk.sources import SourcePage
from refdesk.stores.memory import MemoryStore, MemoryTransaction

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEWS = Collection("*", "news")
DEAD_PROCESS = 2**22 + 1


@dataclass(slots=True)
class ListedSource:
    """Yields what is listed; `then` runs after each page and may fail or interfere."""

    records: list[JsonObject]
    page_size: int = 2
    total: int | None = -1
    then: Callable[[int], Awaitable[None]] | None = None
    asked: list[str | None] = field(default_factory=list["str | None"])
    is_complete: bool = True
    tells_repeated: bool = False

    async def read(self, since: str | None) -> AsyncIterator[SourcePage]:
        self.asked.append(since)
        records = [each for each in self.records if since is None or str(each.get("modified", "9")) >= since[:10]]
        total = len(records) if self.total == -1 else self.total
        for start in range(0, len(records), self.page_size):
            page = records[start : start + self.page_size]
            yield SourcePage(tuple(page), total, repeated=self._find_repeated(records[:start], page))
            if self.then is not None:
                await self.then(start // self.page_size)

    def _find_repeated(self, before: Sequence[JsonObject], page: Sequence[JsonObject]) -> frozenset[str]:
        counts = Counter(str(record.get("id")) for record in [*before, *page])
        return frozenset(id for id, count in counts.items() if count > 1 and self.tells_repeated)


class CountingStore(MemoryStore):
    """Counts the transactions opened."""

    transactions = 0

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[MemoryTransaction, None]:
        self.transactions += 1
        async with super().transaction() as transaction:
            yield transaction


@dataclass(slots=True)
class Bench:
    """A syncer with everything it works on."""

    store: CountingStore
    clock: FixedClock
    source: ListedSource
    syncer: Syncer

    async def get(self, id: str) -> Document:
        [document] = await self.store.get_documents(NEWS, [id])
        assert document is not None
        return document

    async def get_versions(self) -> dict[str, int]:
        ids = sorted(await self.store.get_digests(NEWS))
        documents = await self.store.get_documents(NEWS, ids)
        return {document.id: document.version for document in documents if document is not None}


def make_record(id: str, title: str = "", modified: str = "2026-02-01", **more: str) -> JsonObject:
    return {"id": id, "title": title or f"Title of {id}", "modified": modified, **more}


def to_document(record: JsonObject) -> Document:
    if "title" not in record:
        raise InvalidRecordError("title: Field required")
    modified = datetime.fromisoformat(str(record["modified"])).replace(tzinfo=UTC)
    return Document(
        collection=NEWS,
        id=str(record["id"]),
        title=str(record["title"]),
        body="",
        author="press",
        created_at=modified,
        modified_at=modified,
        data=record,
    )


def make_bench(records: Sequence[JsonObject], lease_duration: timedelta = timedelta(seconds=15)) -> Bench:
    clock = FixedClock(NOW)
    store = CountingStore(clock)
    source = ListedSource(list(records))
    return Bench(store, clock, source, Syncer(store, source, NEWS, to_document, clock, lease_duration=lease_duration))


async def test_the_first_sync_is_full_and_lands_everything() -> None:
    bench = make_bench([make_record("a"), make_record("b"), make_record("c")])
    report = await bench.syncer.sync()
    assert (report.outcome, report.kind, report.added, report.written) == ("succeeded", "full", 3, 3)
    assert bench.source.asked == [None]
    assert await bench.get_versions() == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("full", [False, True])
async def test_a_second_sync_without_changes_writes_no_document(full: bool) -> None:
    bench = make_bench([make_record("a"), make_record("b")])
    await bench.syncer.sync()
    report = await bench.syncer.sync(full=full)
    assert (report.written, report.unchanged) == (0, 2)
    assert [len(await bench.store.get_revisions(NEWS, id)) for id in "ab"] == [1, 1]


async def test_a_new_rendering_of_the_same_record_is_kept_and_is_no_change_of_the_source() -> None:
    def render(suffix: str) -> Callable[[JsonObject], Document]:
        return lambda record: replace(to_document(record), body=f"{record['title']}{suffix}", data={"record": record})

    bench = make_bench([make_record("a"), make_record("b")])
    await replace(bench.syncer, to_document=render("")).sync()
    bench.source.records[1] = make_record("b", "New")
    report = await replace(bench.syncer, to_document=render("!")).sync(full=True)
    assert (report.changes, report.written, report.unchanged) == ((Change("b", "changed", 2),), 1, 1)
    assert [(await bench.get(id)).body for id in "ab"] == ["Title of a!", "New!"]
    assert (await replace(bench.syncer, to_document=render("!")).sync(full=True)).written == 0
    assert await bench.get_versions() == {"a": 2, "b": 2}


async def test_a_delta_asks_from_the_watermark_with_an_overlap() -> None:
    bench = make_bench([make_record("a", modified="2026-02-01"), make_record("b", modified="2026-02-20")])
    await bench.syncer.sync()
    report = await bench.syncer.sync()
    assert report.kind == "delta"
    assert bench.source.asked == [None, "2026-02-19T23:00:00.000000+00:00"]


async def test_a_date_in_the_future_does_not_hide_what_comes_after() -> None:
    bench = make_bench([make_record("a", modified="2099-01-01")])
    await bench.syncer.sync()
    assert (await bench.syncer.get_status()).watermark == NOW


async def test_a_changed_record_becomes_the_next_version_and_the_old_one_stays_readable() -> None:
    bench = make_bench([make_record("a", "Preview"), make_record("b")])
    await bench.syncer.sync()
    bench.source.records[0] = make_record("a", "Available", modified="2026-02-02")
    report = await bench.syncer.sync()
    assert (report.changed, report.changes) == (1, (Change("a", "changed", 2),))
    assert [each.document.title for each in await bench.store.get_revisions(NEWS, "a")] == ["Preview", "Available"]


async def test_a_silent_edit_is_missed_by_a_delta_and_found_by_a_full_sync() -> None:
    bench = make_bench([make_record("a", "Old"), make_record("b", modified="2026-02-20")])
    await bench.syncer.sync()
    bench.source.records[0] = make_record("a", "New")
    assert (await bench.syncer.sync()).written == 0
    assert (await bench.syncer.sync(full=True)).changed == 1
    assert (await bench.get("a")).title == "New"


async def test_what_is_gone_is_withdrawn_by_a_full_sync_only_and_comes_back_as_restored() -> None:
    bench = make_bench([make_record("a"), make_record("b")])
    await bench.syncer.sync()
    bench.source.records = [make_record("b")]
    assert (await bench.syncer.sync()).withdrawn == 0
    report = await bench.syncer.sync(full=True)
    assert report.changes == (Change("a", "withdrawn", 2),)
    assert (await bench.get("a")).state is State.WITHDRAWN
    bench.source.records = [make_record("a"), make_record("b")]
    report = await bench.syncer.sync(full=True)
    assert (report.restored, report.added, (await bench.get("a")).version) == (1, 0, 3)
    assert (await bench.get("a")).state is State.CURRENT


async def test_what_a_source_drops_that_is_not_the_whole_truth_stays_even_by_force() -> None:
    bench = make_bench([make_record("a"), make_record("b")])
    bench.source.is_complete = False
    await bench.syncer.sync()
    bench.source.records = [make_record("b", "Another title")]
    report = await bench.syncer.sync(full=True, force=True)
    assert (report.withdrawn, report.withheld, report.changed) == (0, 0, 1)
    assert (await bench.get("a")).state is State.CURRENT


async def test_a_withdrawn_document_is_not_withdrawn_again() -> None:
    bench = make_bench([make_record("a"), make_record("b")])
    await bench.syncer.sync()
    bench.source.records = [make_record("b")]
    await bench.syncer.sync(full=True)
    assert (await bench.syncer.sync(full=True)).written == 0


async def test_nothing_is_withdrawn_when_the_source_gave_fewer_records_than_it_says() -> None:
    bench = make_bench([make_record(id) for id in "abc"])
    await bench.syncer.sync()
    bench.source.records = [make_record("a")]
    bench.source.total = 3
    report = await bench.syncer.sync(full=True)
    assert (report.withdrawn, report.withheld, report.missing) == (0, 2, 2)
    assert await bench.get_versions() == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(
    ("known", "gone", "withdrawn"),
    [(100, 20, 20), (100, 21, 0), (440, 22, 22), (440, 23, 0), (10, 9, 9), (10, 10, 0), (1, 1, 0)],
)
async def test_suspiciously_many_withdrawals_wait_for_force(known: int, gone: int, withdrawn: int) -> None:
    records = [make_record(f"{number:03}") for number in range(known)]
    bench = make_bench(records)
    bench.source.page_size = 50
    await bench.syncer.sync()
    bench.source.records = list(records[gone:])
    report = await bench.syncer.sync(full=True)
    assert (report.withdrawn, report.withheld) == (withdrawn, gone - withdrawn)
    assert (await bench.syncer.get_status()).withheld == report.withheld
    if report.withheld:
        await bench.syncer.sync()
        assert (await bench.syncer.get_status()).withheld == gone
        assert (await bench.syncer.sync(full=True, force=True)).withdrawn == gone
        assert (await bench.syncer.get_status()).withheld == 0


async def test_one_bad_record_is_set_aside_and_the_rest_land() -> None:
    bench = make_bench([make_record("a"), {"id": "b", "modified": "2026-02-01"}, make_record("c")])
    report = await bench.syncer.sync()
    assert (report.added, report.quarantined) == (2, 1)
    [record] = await sync_log.read_dead_letters(bench.store, "news")
    assert (record.name, record.reason) == ("b", "title: Field required")


async def test_a_repaired_record_leaves_the_quarantine() -> None:
    bench = make_bench([{"id": "b", "modified": "2026-02-01"}])
    await bench.syncer.sync()
    bench.source.records = [make_record("b")]
    report = await bench.syncer.sync()
    assert (report.added, report.quarantined) == (1, 0)
    assert await sync_log.read_dead_letters(bench.store, "news") == []


async def test_a_document_whose_record_went_bad_stays_as_it_was() -> None:
    bench = make_bench([make_record("a"), make_record("b")])
    await bench.syncer.sync()
    bench.source.records[0] = {"id": "a", "modified": "2026-02-01"}
    report = await bench.syncer.sync(full=True)
    assert (report.withdrawn, report.quarantined) == (0, 1)
    assert (await bench.get("a")).version == 1


async def test_bad_records_that_are_gone_are_forgotten_by_a_full_sync() -> None:
    bench = make_bench([make_record("a"), {"id": "b"}, {"odd": "one"}, {"odd": "one"}])
    assert (await bench.syncer.sync()).quarantined == 2
    bench.source.records = [make_record("a")]
    await bench.syncer.sync(full=True)
    assert await sync_log.read_dead_letters(bench.store, "news") == []


async def test_of_records_with_one_id_the_last_counts() -> None:
    bench = make_bench([make_record("a", "First"), make_record("a", "Second"), make_record("a", "Third")])
    bench.source.total = 1
    await bench.syncer.sync()
    assert (await bench.get("a")).title == "Third"
    assert (await bench.syncer.sync(full=True)).changed == 2


@pytest.mark.parametrize("page_size", [1, 2, 3])
@pytest.mark.parametrize("titles", ["Old New", "New Old"])
async def test_of_records_that_a_reading_repeats_the_newest_counts_and_no_sync_undoes_another(
    page_size: int, titles: str
) -> None:
    first, second = (make_record("a", title, "2026-02-0" + "12"[title == "New"]) for title in titles.split())
    bench = make_bench([first, second, make_record("b")])
    bench.source.page_size, bench.source.total, bench.source.tells_repeated = page_size, 2, True
    await bench.syncer.sync()
    assert (await bench.get("a")).title == "New"
    report = await bench.syncer.sync(full=True)
    assert (report.written, report.quarantined, report.missing) == (0, 1, 0)
    [told] = await sync_log.read_dead_letters(bench.store, "news")
    assert told.name == "#again:a"
    bench.source.records, bench.source.total = [make_record("a", "New", "2026-02-02"), make_record("b")], 2
    await bench.syncer.sync(full=True)
    assert await sync_log.read_dead_letters(bench.store, "news") == []


@pytest.mark.parametrize("left", [make_record("a", "Edited", "2026-02-02"), make_record("a", "Old", "2026-02-01")])
async def test_of_records_that_are_no_longer_repeated_the_one_that_is_left_counts_at_once(left: JsonObject) -> None:
    bench = make_bench([make_record("a", "Old", "2026-02-01"), make_record("a", "New", "2026-02-02")])
    bench.source.total, bench.source.tells_repeated = 1, True
    await bench.syncer.sync()
    bench.source.records = [left]
    report = await bench.syncer.sync(full=True)
    assert (report.written, report.quarantined) == (1, 0)
    assert (await bench.get("a")).title == left["title"]


async def test_what_landed_before_the_source_failed_stays_and_the_next_sync_completes() -> None:
    async def fail(page: int) -> None:
        if page == 1:
            raise errors.SourceError("the feed went away")

    bench = make_bench([make_record(id) for id in "abcdef"])
    bench.source.then = fail
    with pytest.raises(errors.SourceError, match="went away"):
        await bench.syncer.sync()
    assert await bench.get_versions() == {"a": 1, "b": 1, "c": 1, "d": 1}
    status = await bench.syncer.get_status()
    assert (status.last_success, status.last_error, status.last_error_at) == (None, "the feed went away", NOW)
    bench.source.then = None
    report = await bench.syncer.sync()
    assert (report.kind, report.added, report.unchanged) == ("full", 2, 4)
    assert (await bench.syncer.get_status()).last_error is None


async def test_a_failed_delta_does_not_move_the_watermark() -> None:
    async def fail(_page: int) -> None:
        raise errors.SourceError("the feed went away")

    bench = make_bench([make_record("a")])
    await bench.syncer.sync()
    before = await bench.syncer.get_status()
    bench.source.records.append(make_record("b", modified="2026-02-20"))
    bench.source.then = fail
    with pytest.raises(errors.SourceError):
        await bench.syncer.sync()
    after = await bench.syncer.get_status()
    assert (after.watermark, after.last_success) == (before.watermark, before.last_success)


async def test_a_sync_beside_another_one_is_busy_and_does_nothing() -> None:
    bench = make_bench([make_record("a")])
    other = Lease("sync:news", bench.store, bench.clock, Holder())
    assert await other.acquire()
    report = await bench.syncer.sync()
    assert (report.outcome, report.written, bench.source.asked) == ("busy", 0, [])
    await other.release()
    assert (await bench.syncer.sync()).outcome == "succeeded"


async def test_the_lease_of_a_dead_process_is_taken_at_once() -> None:
    bench = make_bench([make_record("a")])
    await Lease("sync:news", bench.store, bench.clock, Holder(process=DEAD_PROCESS)).acquire()
    assert (await bench.syncer.sync()).added == 1


async def test_a_sync_that_lost_its_lease_stops_before_it_writes() -> None:
    bench = make_bench([make_record(id) for id in "abcd"])
    other = Lease("sync:news", bench.store, bench.clock, Holder())

    async def take_over(_page: int) -> None:
        bench.clock.advance(timedelta(seconds=16))
        assert await other.acquire()

    bench.source.then = take_over
    with pytest.raises(LeaseLostError):
        await bench.syncer.sync()
    assert await bench.get_versions() == {"a": 1, "b": 1}
    assert await sync_log.read_runs(bench.store, "news") == []
    assert not await Lease("sync:news", bench.store, bench.clock, Holder()).acquire()


async def test_the_lease_is_renewed_while_the_source_is_slow() -> None:
    bench = make_bench([make_record("a")], lease_duration=timedelta(milliseconds=60))
    key = MetadataKey("*", "lease", "sync:news")

    async def wait_for_renewal(_page: int) -> None:
        bench.clock.advance(timedelta(hours=1))
        with anyio.fail_after(120):
            while (
                (record := await bench.store.get_metadata(key)) and record.due_at and record.due_at < bench.clock.now()
            ):
                await anyio.lowlevel.checkpoint()

    bench.source.then = wait_for_renewal
    assert (await bench.syncer.sync()).outcome == "succeeded"


async def test_a_lease_lost_while_the_source_is_slow_ends_the_sync() -> None:
    bench = make_bench([make_record("a")], lease_duration=timedelta(milliseconds=60))

    async def lose_it(_page: int) -> None:
        async with bench.store.transaction() as transaction:
            await transaction.remove_metadata([MetadataKey("*", "lease", "sync:news")])
        await anyio.sleep_forever()

    bench.source.then = lose_it
    with anyio.fail_after(120), pytest.raises(LeaseLostError):
        await bench.syncer.sync()


async def test_a_sync_is_due_when_the_last_success_or_the_last_full_one_is_old() -> None:
    bench = make_bench([make_record("a")])
    assert await bench.syncer.is_due(NOW)
    await bench.syncer.sync()
    assert not await bench.syncer.is_due(NOW + timedelta(hours=23, minutes=59))
    assert await bench.syncer.is_due(NOW + timedelta(hours=24))
    assert await bench.syncer.is_due(NOW - timedelta(minutes=1))


async def test_a_sync_is_full_when_the_last_full_one_is_old() -> None:
    bench = make_bench([make_record("a")])
    kinds = [(await bench.syncer.sync()).kind]
    for _ in range(8):
        bench.clock.advance(timedelta(days=1))
        kinds.append((await bench.syncer.sync()).kind)
    assert kinds == ["full", *["delta"] * 6, "full", "delta"]


async def test_the_lease_is_free_after_a_sync_and_after_a_failed_one() -> None:
    async def fail(_page: int) -> None:
        raise errors.SourceError("the feed went away")

    bench = make_bench([make_record("a")])
    await bench.syncer.sync()
    other = Lease("sync:news", bench.store, bench.clock, Holder())
    assert await other.acquire()
    await other.release()
    bench.source.then = fail
    with pytest.raises(errors.SourceError):
        await bench.syncer.sync()
    assert await other.acquire()


async def test_a_sync_without_changes_writes_only_its_lease_and_its_entry() -> None:
    bench = make_bench([make_record(id) for id in "abcdefgh"])
    await bench.syncer.sync()
    before = bench.store.transactions
    await bench.syncer.sync(full=True)
    assert bench.store.transactions - before == 3


async def test_what_was_written_meanwhile_is_not_written_again() -> None:
    bench = make_bench([make_record(id) for id in "abcd"])

    async def write_first(page: int) -> None:
        if page == 0:
            async with bench.store.transaction() as transaction:
                await transaction.put_documents([to_document(make_record("c"))])

    bench.source.then = write_first
    report = await bench.syncer.sync()
    assert report.added == 3
    assert await bench.get_versions() == {"a": 1, "b": 1, "c": 1, "d": 1}


async def test_progress_is_told_after_each_page() -> None:
    bench = make_bench([make_record(id) for id in "abc"])
    seen: list[SyncProgress] = []
    await bench.syncer.sync(on_progress=seen.append)
    assert seen == [SyncProgress(2, 3), SyncProgress(3, 3)]


async def test_runs_are_remembered_newest_first_and_bounded() -> None:
    bench = make_bench([make_record("a")])
    for number in range(MAX_RUNS + 5):
        bench.source.records[0] = make_record("a", f"Title {number}", modified="2026-02-02")
        await bench.syncer.sync()
        bench.clock.advance(timedelta(minutes=number % 2))
    runs = await sync_log.read_runs(bench.store, "news")
    assert len(runs) == MAX_RUNS
    assert [run.changes[0].version for run in runs] == list(range(MAX_RUNS + 5, 5, -1))


async def test_a_failed_run_is_remembered_with_its_reason() -> None:
    async def fail(_page: int) -> None:
        raise errors.SourceError("the feed went away")

    bench = make_bench([make_record("a")])
    bench.source.then = fail
    with pytest.raises(errors.SourceError):
        await bench.syncer.sync()
    [run] = await sync_log.read_runs(bench.store, "news")
    assert (run.outcome, run.error, run.added) == ("failed", "the feed went away", 1)


async def test_a_run_names_only_its_first_changes() -> None:
    bench = make_bench([make_record(f"{number:04}") for number in range(MAX_CHANGES + 10)])
    bench.source.page_size = 1000
    report = await bench.syncer.sync()
    assert (report.added, len(report.changes)) == (MAX_CHANGES + 10, MAX_CHANGES)
    assert await sync_log.read_runs(bench.store, "news") == [report]
