"""The sample world from its first day to its second, through the real client, with the feed's faults on the way."""

from __future__ import annotations

import pytest

from refdesk import errors
from refdesk.core.background import sync_log
from refdesk.core.search.providers import ProviderAnswer, Question
from refdesk.model import Document
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from refdesk.toolsets.azure_updates.change_models import ChangesInput, HistoryInput
from refdesk.toolsets.azure_updates.changes import get_history, list_changes
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.provider import FIND
from refdesk.toolsets.azure_updates.resources import read_changelog, read_guide, read_statistics
from sample_world.azure_updates.process import RunningEmulator
from sample_world.azure_updates.world import load_changes, load_world
from tests.toolsets.azure_updates.samples import Desk


async def get_documents(desk: Desk) -> dict[str, Document]:
    store = desk.knowledge_base.store
    documents = await store.get_documents(COLLECTION, sorted(await store.get_digests(COLLECTION)))
    return {document.id: document for document in documents if document is not None}


def get_ids(*kinds: str) -> set[str]:
    return {change["id"] for change in load_changes() if change["kind"] in kinds}


async def test_the_first_sync_lands_everything_but_the_bad_record(synced: Desk) -> None:
    documents = await get_documents(synced)
    assert set(documents) == {str(record["id"]) for record in load_world()} - get_ids("repaired")
    assert all(document.version == 1 for document in documents.values())
    [bad] = await sync_log.read_dead_letters(synced.knowledge_base.store, TOOLSET_NAME)
    assert {bad.name} == get_ids("repaired")


@pytest.mark.parametrize("full", [False, True])
async def test_a_second_sync_writes_nothing(synced: Desk, full: bool) -> None:
    report = await synced.syncer.sync(full=full)
    assert (report.written, report.quarantined) == (0, int(full))
    assert all(document.version == 1 for document in (await get_documents(synced)).values())


async def test_a_delta_brings_what_is_dated_and_a_full_sync_the_rest(synced: Desk, emulator: RunningEmulator) -> None:
    await emulator.set_world(day=2)
    delta = await synced.syncer.sync()
    assert {change.id for change in delta.changes} == get_ids("published", "repaired", "revised")
    full = await synced.syncer.sync(full=True)
    assert {change.id for change in full.changes if change.kind == "changed"} == get_ids(
        "silently_retagged", "silently_edited"
    )
    assert {change.id for change in full.changes if change.kind == "withdrawn"} == get_ids("vanished")


async def test_after_a_full_sync_the_desk_holds_exactly_the_later_state_and_every_earlier_version(
    synced: Desk, emulator: RunningEmulator
) -> None:
    before = await get_documents(synced)
    await emulator.set_world(day=2)
    await synced.syncer.sync(full=True)
    after = await get_documents(synced)
    later = {str(record["id"]): record for record in load_world(day=2)}
    assert {id: document.data["record"] for id, document in after.items()} == later
    for id in get_ids("silently_retagged", "silently_edited", "revised", "vanished"):
        history = await synced.knowledge_base.get_history(COLLECTION, id)
        assert [revision.document.version for revision in history] == [1, 2]
        assert history[0].document == before[id]
    assert await sync_log.read_dead_letters(synced.knowledge_base.store, TOOLSET_NAME) == []


async def test_a_withdrawn_update_is_found_by_nothing(synced: Desk, emulator: RunningEmulator) -> None:
    await emulator.set_world(day=2)
    await synced.syncer.sync(full=True)
    [id, *_] = sorted(get_ids("vanished"))
    assert (await synced.ask(id=id))["results"] == []
    [first, *_] = await synced.knowledge_base.get_history(COLLECTION, id)
    title = first.document.title
    assert id not in [result["id"] for result in (await synced.ask(query=title))["results"]]


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "empty_page", "at": [3]},
        {"fault": "duplicate_page", "at": [2]},
        {"fault": "page_shift", "at": [2], "withdraw": ["904507"]},
        {"fault": "wrong_count", "at": [1, 2, 3, 4], "count_error": 20},
    ],
    ids=lambda fault: fault["fault"],
)
async def test_a_feed_in_disorder_never_withdraws_what_it_still_holds(
    synced: Desk, emulator: RunningEmulator, fault: dict[str, object]
) -> None:
    await emulator.set_faults([fault])
    report = await synced.syncer.sync(full=True)
    assert (report.withdrawn, report.withheld) == (0, 0)


async def test_an_emptied_feed_withdraws_nothing_unless_forced(synced: Desk, emulator: RunningEmulator) -> None:
    await emulator.set_world([])
    report = await synced.syncer.sync(full=True)
    assert (report.withdrawn, report.withheld) == (0, 306)
    guide = await read_guide(synced.context)
    [run, *_] = (await read_changelog(synced.context)).runs
    answer = await synced.ask(query="machines")
    assert run.withheld == 306
    assert "306 updates are gone from the source" in guide.notes[0]
    assert any("306 updates are gone from the source" in note for note in answer["notes"])
    assert (await synced.syncer.sync(full=True, force=True)).withdrawn == 306


async def test_what_is_withheld_is_told_by_every_answer(synced: Desk, emulator: RunningEmulator) -> None:
    # A loss of a fifth at once, as the real feed had one of 19 %.
    world = load_world()
    await emulator.set_world(world[: len(world) * 81 // 100])
    report = await synced.syncer.sync(full=True)
    assert report.withdrawn == 0
    assert 55 <= report.withheld <= 60
    context, kept, gone = synced.context, str(world[0]["id"]), str(world[-1]["id"])
    found = await FIND(context, Question("virtual machines"))
    assert isinstance(found, ProviderAnswer)
    told = {
        "search": (await synced.ask(query="machines"))["notes"],
        "browsing": (await synced.ask())["notes"],
        "nothing found": (await synced.ask(filters={"status": "Active"}))["notes"],
        "fetched": (await synced.ask(id=kept))["notes"],
        "fetched, gone": (await synced.ask(id=gone))["notes"],
        "unknown": (await synced.ask(id="unknown"))["notes"],
        "guide": (await read_guide(context)).notes,
        "changelog": (await read_changelog(context)).notes,
        "statistics": (await read_statistics(context)).notes,
        "changes": (await list_changes(context, ChangesInput())).notes,
        "history": (await get_history(context, HistoryInput(id=gone))).notes,
        "everything": [found.note],
    }
    sentence = f"{report.withheld} updates are gone from the source and kept here"
    assert [name for name, notes in told.items() if not any(sentence in note for note in notes)] == []
    assert (await synced.ask(id=gone))["total"] == 1
    # A delta knows nothing of it, and must not make it forgotten.
    await synced.syncer.sync()
    assert any(sentence in note for note in (await synced.ask())["notes"])
    await emulator.set_world(world)
    await synced.syncer.sync(full=True)
    assert "notes" not in await synced.ask()


async def test_a_record_that_comes_twice_stops_nothing_and_is_told_until_it_comes_once(
    synced: Desk, emulator: RunningEmulator
) -> None:
    world = load_world()
    id = str(world[100]["id"])
    older = world[100] | {"title": "As it was", "modified": "2020-01-01T00:00:00.0000000Z"}
    await emulator.set_world([*world, older])
    for _ in range(2):
        report = await synced.syncer.sync(full=True)
        assert (report.written, report.withheld, report.missing) == (0, 0, 0)
    told = {each.id: each.reason for each in (await read_statistics(synced.context)).quarantined}
    assert "several records of this id" in told[f"#again:{id}"]
    await emulator.set_world(world)
    await synced.syncer.sync(full=True)
    assert len((await read_statistics(synced.context)).quarantined) == 1


async def test_a_count_above_reality_stops_nothing_and_is_told(synced: Desk, emulator: RunningEmulator) -> None:
    world = load_world()
    await emulator.set_faults([{"fault": "wrong_count", "count_error": 7}])
    await emulator.set_world(world[3:])
    report = await synced.syncer.sync(full=True)
    assert (report.withdrawn, report.withheld, report.missing) == (0, 3, 7)
    [run, *_] = (await read_changelog(synced.context)).runs
    assert (run.withheld, run.missing) == (3, 7)
    answer = await synced.ask(query="machines")
    assert any("says that it holds 7 more than it gave" in note for note in answer["notes"])
    # As many again: the count is wrong, not the records.
    report = await synced.syncer.sync(full=True)
    assert (report.withdrawn, report.withheld, report.missing) == (3, 0, 7)
    assert not any("more than it gave" in note for note in (await synced.ask(query="machines"))["notes"])
    await emulator.set_faults([])
    assert (await synced.syncer.sync(full=True)).missing == 0


async def test_a_feed_that_breaks_midway_leaves_whole_updates_and_the_next_sync_completes(
    desk: Desk, emulator: RunningEmulator
) -> None:
    await emulator.set_faults([{"fault": "status", "status": 403, "at": [3]}])
    with pytest.raises(errors.SourceError, match="403"):
        await desk.syncer.sync()
    landed = await get_documents(desk)
    assert 190 < len(landed) < 200
    await emulator.set_faults([])
    report = await desk.syncer.sync()
    assert (report.kind, report.added, report.changed) == ("full", 306 - len(landed), 0)
