"""The changes by date and page by page, and the history of one update."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from refdesk.core.background import change_log, sync_log
from refdesk.errors import NotFoundError
from refdesk.model import SHARED_ORG, MetadataKey
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from refdesk.toolsets.azure_updates.change_models import ChangesInput, HistoryInput
from refdesk.toolsets.azure_updates.changes import get_history, list_changes
from sample_world.azure_updates.process import RunningEmulator
from tests.toolsets.azure_updates.samples import Desk, make_record


async def tell_changes(desk: Desk, **arguments: object) -> dict[str, Any]:
    answer = await list_changes(desk.context, ChangesInput.model_validate(arguments))
    return answer.model_dump(mode="json", by_alias=True)


async def tell_history(desk: Desk, id: str, **arguments: object) -> dict[str, Any]:
    answer = await get_history(desk.context, HistoryInput.model_validate({"id": id, **arguments}))
    return answer.model_dump(mode="json", by_alias=True)


async def set_records(desk: Desk, emulator: RunningEmulator, *records: object) -> None:
    """Let the feed hold these, sync them, and let a day pass."""
    await emulator.set_world([dict(record) for record in records])  # pyright: ignore[reportCallIssue, reportArgumentType]
    await desk.syncer.sync(full=True)
    desk.clock.advance(timedelta(days=1))


def name(change: dict[str, Any]) -> tuple[str, str, str]:
    return change["at"][:10], change["id"], change["change"]


async def make_three_days(desk: Desk, emulator: RunningEmulator) -> None:
    """Sync on November 7, 8 and 9 what is added, edited without a date, and withdrawn."""
    august = [{"ring": "Retirement", "year": 2027, "month": "August"}]
    later = [{"ring": "Retirement", "year": 2028, "month": "January"}]
    b = make_record("b", products=["Key Vault"])
    await set_records(desk, emulator, make_record("a", availabilities=august), b)
    moved = make_record("a", availabilities=later, description="<p>It stays a while.</p>")
    await set_records(desk, emulator, moved, b)
    await set_records(desk, emulator, moved, make_record("c"))


async def test_changes_are_listed_by_the_day_they_were_met_newest_first(desk: Desk, emulator: RunningEmulator) -> None:
    await make_three_days(desk, emulator)
    answer = await tell_changes(desk)
    assert [name(each) for each in answer["changes"]] == [
        ("2026-11-09", "b", "withdrawn"),
        ("2026-11-09", "c", "added"),
        ("2026-11-08", "a", "changed"),
        ("2026-11-07", "a", "added"),
        ("2026-11-07", "b", "added"),
    ]
    assert (answer["total"], answer["hasMore"]) == (5, False)
    assert answer["changes"][2]["fields"] == [
        {"field": "availabilities", "before": ["Retirement 2027-08"], "after": ["Retirement 2028-01"]},
        {"field": "description"},
    ]
    one_day = await tell_changes(desk, dateFrom="2026-11-08", dateTo="2026-11-08")
    assert [name(each) for each in one_day["changes"]] == [("2026-11-08", "a", "changed")]
    assert (await tell_changes(desk, dateFrom="2026-11-10"))["total"] == 0


async def test_changes_are_chosen_by_kind_and_product_and_paged(desk: Desk, emulator: RunningEmulator) -> None:
    await make_three_days(desk, emulator)
    gone = await tell_changes(desk, kinds=["withdrawn", "restored"])
    assert [each["id"] for each in gone["changes"]] == ["b"]
    of_product = await tell_changes(desk, products=["key vault"])
    assert [each["change"] for each in of_product["changes"]] == ["withdrawn", "added"]
    pages = [await tell_changes(desk, limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [len(page["changes"]) for page in pages] == [2, 2, 1]
    assert [page["hasMore"] for page in pages] == [True, True, False]
    listed = [name(each) for page in pages for each in page["changes"]]
    assert listed == [name(each) for each in (await tell_changes(desk))["changes"]]


async def test_every_change_is_listed_however_many_one_sync_makes(synced: Desk, emulator: RunningEmulator) -> None:
    assert (await tell_changes(synced, limit=1))["total"] == 306
    synced.clock.advance(timedelta(days=1))
    await emulator.set_world(day=2)
    report = await synced.syncer.sync(full=True)
    later = await tell_changes(synced, dateFrom="2026-11-08", limit=100)
    assert later["total"] == report.written
    assert {each["id"] for each in later["changes"]} == {each.id for each in report.changes}


async def test_changes_from_before_there_was_a_log_are_those_of_the_recent_syncs(
    desk: Desk, emulator: RunningEmulator
) -> None:
    await make_three_days(desk, emulator)
    expected = (await tell_changes(desk))["changes"]
    store, key = desk.knowledge_base.store, MetadataKey(SHARED_ORG, change_log.BEGUN, TOOLSET_NAME)
    async with store.transaction() as transaction:
        await transaction.remove_metadata([key])
    assert len(await sync_log.read_runs(store, TOOLSET_NAME)) == 3
    assert (await tell_changes(desk))["changes"] == expected


async def test_a_history_quotes_what_each_version_changed(desk: Desk, emulator: RunningEmulator) -> None:
    await make_three_days(desk, emulator)
    history = await tell_history(desk, "a")
    assert [(each["version"], each["change"], each["at"][:10]) for each in history["versions"]] == [
        (2, "changed", "2026-11-08"),
        (1, "added", "2026-11-07"),
    ]
    assert history["versions"][0]["fields"][-1] == {
        "field": "description",
        "before": "It is here.",
        "after": "It stays a while.",
    }
    assert history["isWithdrawn"] is False
    gone = await tell_history(desk, "b")
    assert (gone["isWithdrawn"], gone["versions"][0]["change"]) == (True, "withdrawn")
    await set_records(desk, emulator, make_record("b"), make_record("c"))
    assert [each["change"] for each in (await tell_history(desk, "b"))["versions"]] == [
        "restored",
        "withdrawn",
        "added",
    ]
    assert [each["change"] for each in (await tell_history(desk, "b", limit=1, offset=1))["versions"]] == ["withdrawn"]


async def test_the_history_of_what_never_was_is_an_error_that_names_the_nearest(synced: Desk) -> None:
    known = next(iter(await synced.knowledge_base.store.get_digests(synced.syncer.collection)))
    with pytest.raises(NotFoundError, match=known):
        await tell_history(synced, known + "0")


async def test_an_instant_of_the_feed_is_quoted_alike_everywhere(desk: Desk, emulator: RunningEmulator) -> None:
    first, second = "2026-02-28T15:00:23.1350478Z", "2026-03-01T15:00:23.9999999Z"
    await set_records(desk, emulator, make_record("a", modified=first))
    await set_records(desk, emulator, make_record("a", modified=second))
    edit = {"field": "modified", "before": first, "after": second}
    assert (await desk.ask(id="a"))["results"][0]["modified"] == second
    assert (await desk.ask(filters={"status": "Unknown"}))["newestUpdate"] == second
    assert (await tell_changes(desk))["changes"][0]["fields"] == [edit]
    assert (await tell_history(desk, "a"))["versions"][0]["fields"] == [edit]


@pytest.mark.parametrize(
    ("products", "named"),
    [
        (["VNet"], {"VNet": "Virtual Network"}),
        (["AKS"], {"AKS": "Azure Kubernetes Service (AKS)"}),
        (["Virtual Machnies", "Virtual Network"], {"Virtual Machnies": "Virtual Machines"}),
        (["Bogus"], {"Bogus": None}),
        (["virtual network"], {}),
        (["Key Vault"], {}),
    ],
)
async def test_an_unknown_product_is_named_with_the_nearest_known_ones(
    desk: Desk, emulator: RunningEmulator, products: list[str], named: dict[str, str | None]
) -> None:
    have = ["Virtual Network", "Azure Kubernetes Service (AKS)", "Virtual Machines"]
    await set_records(desk, emulator, make_record("gone", products=["Key Vault"]), make_record("a", products=have))
    await set_records(desk, emulator, make_record("a", products=have))
    unknown = (await tell_changes(desk, products=products)).get("unknownFilterValues", [])
    assert [each["value"] for each in unknown] == [*named]
    assert all(named[each["value"]] in {each["didYouMean"][0], None} for each in unknown)
    if named == {"Bogus": None}:
        assert set(unknown[0]["didYouMean"]) == set(have)
    searched = await desk.ask(filters={"products": products, "matchAny": ["products"]})
    assert searched.get("unknownFilterValues", []) == unknown or products == ["Key Vault"], "as the search says it"
