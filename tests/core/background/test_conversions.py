"""An unchanged record is converted once; whatever else happens to it is seen as ever."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from refdesk import errors
from refdesk.core.background import sync_log
from refdesk.model import Document, JsonObject, State
from tests.core.background.test_syncing import NEWS, Bench, make_bench, make_record, to_document


@dataclass(slots=True)
class CountingConverter:
    """Converts, and keeps the ids of what it was given."""

    converted: list[str] = field(default_factory=list[str])

    def __call__(self, record: JsonObject) -> Document:
        self.converted.append(str(record.get("id")))
        return to_document(record)


def make_remembering(*ids: str, version: str = "1") -> tuple[Bench, CountingConverter]:
    bench = make_bench([make_record(id) for id in ids])
    converter = CountingConverter()
    bench.syncer = replace(bench.syncer, to_document=converter, converter_version=version)
    return bench, converter


@pytest.mark.parametrize("full", [False, True])
async def test_an_unchanged_record_is_converted_once(full: bool) -> None:
    bench, converter = make_remembering("a", "b", "c")
    await bench.syncer.sync()
    bench.source.records[1] = make_record("b", "New")
    bench.source.records.append(make_record("d"))
    converter.converted.clear()
    report = await bench.syncer.sync(full=full)
    assert converter.converted == ["b", "d"]
    assert (report.added, report.changed, report.unchanged, report.withdrawn) == (1, 1, 2, 0)
    converter.converted.clear()
    assert (await bench.syncer.sync(full=full)).unchanged == 4
    assert converter.converted == []


async def test_another_version_of_the_converter_converts_everything_anew() -> None:
    bench, converter = make_remembering("a", "b")
    await bench.syncer.sync()
    for version, converted in (("2", ["a", "b"]), ("2", []), ("1", ["a", "b"])):
        converter.converted.clear()
        await replace(bench.syncer, converter_version=version).sync(full=True)
        assert converter.converted == converted


async def test_a_record_that_returns_to_an_earlier_text_is_not_taken_for_the_present_one() -> None:
    bench, _ = make_remembering("a")
    await bench.syncer.sync()
    bench.source.records[0] = make_record("a", "New")

    async def fail(page: int) -> None:
        raise errors.SourceError("gone")

    bench.source.then = fail
    with pytest.raises(errors.SourceError):
        await bench.syncer.sync(full=True)
    assert (await bench.get("a")).title == "New"
    bench.source.then = None
    bench.source.records[0] = make_record("a")
    assert (await bench.syncer.sync(full=True)).changed == 1
    assert (await bench.get("a")).title == "Title of a"


async def test_a_remembered_record_is_withdrawn_and_restored_like_any_other() -> None:
    bench, _ = make_remembering("a", "b")
    await bench.syncer.sync()
    record = bench.source.records.pop()
    assert (await bench.syncer.sync(full=True)).withdrawn == 1
    bench.source.records.append(record)
    assert (await bench.syncer.sync(full=True)).restored == 1
    assert (await bench.get("b")).state is State.CURRENT


async def test_a_bad_record_is_looked_at_every_time_and_repaired_by_one_that_is_known() -> None:
    bench, converter = make_remembering("a", "b")
    await bench.syncer.sync()
    good = bench.source.records[1]
    bench.source.records[1] = {"id": "b"}
    for _ in range(2):
        converter.converted.clear()
        report = await bench.syncer.sync(full=True)
        assert (report.quarantined, report.withdrawn, converter.converted) == (1, 0, ["b"])
    bench.source.records[1] = good
    report = await bench.syncer.sync(full=True)
    assert (report.quarantined, report.unchanged) == (0, 2)
    assert await sync_log.read_dead_letters(bench.store, NEWS.toolset) == []
