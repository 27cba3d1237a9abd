from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from refdesk.factories.toolsets import load_toolsets
from sample_world.azure_updates.process import RunningEmulator
from tests.toolsets.azure_updates.samples import Desk

[TOOLSET] = load_toolsets(["azure-updates"])


async def read(desk: Desk, name: str) -> dict[str, Any]:
    [resource] = [each for each in TOOLSET.resources if each.uri == f"azure-updates://{name}"]
    found = await resource.reader(desk.context)
    return found.model_dump(mode="json", by_alias=True, exclude_none=True)


async def test_the_guide_lists_what_filters_can_take(library: Desk) -> None:
    guide = await read(library, "guide")
    assert guide["totalUpdates"] == 306
    assert {"Retirements", "Features"} <= set(guide["tags"])
    assert "Feature" not in guide["tags"]
    assert "AI + machine learning" in guide["productCategories"]
    assert "Virtual Machines" in guide["products"]
    assert set(guide["statuses"]) == {"In development", "In preview", "Launched"}
    assert guide["availabilityRings"] == [
        "General Availability",
        "Preview",
        "Private Preview",
        "Retirement",
        "Effective",
    ]
    for name in ("tags", "productCategories", "products", "statuses"):
        assert guide[name] == sorted(guide[name], key=str.casefold)


async def test_every_value_of_the_guide_finds_an_update(library: Desk) -> None:
    guide = await read(library, "guide")
    for name in ("tags", "productCategories", "products"):
        for value in guide[name]:
            assert (await library.ask(filters={name: [value]}, limit=1))["total"] > 0


async def test_freshness_counts_from_the_last_sync_that_succeeded(synced: Desk, emulator: RunningEmulator) -> None:
    guide = await read(synced, "guide")
    assert (guide["lastSyncTimestamp"], guide["dataFreshnessHours"]) == ("2026-11-07T12:00:00.0000000Z", 0.0)
    synced.clock.advance(timedelta(hours=8, minutes=33))
    await emulator.set_faults([{"fault": "status", "status": 404}])
    with pytest.raises(Exception, match="404"):
        await synced.syncer.sync()
    guide = await read(synced, "guide")
    assert (guide["lastSyncTimestamp"], guide["dataFreshnessHours"]) == ("2026-11-07T12:00:00.0000000Z", 8.6)


async def test_after_a_clock_was_set_back_nobody_is_told_that_the_data_is_fresh(synced: Desk) -> None:
    synced.clock.advance(timedelta(minutes=-5))
    guide = await read(synced, "guide")
    assert (guide["dataFreshnessHours"], "notes" in guide) == (0.0, False)
    synced.clock.advance(timedelta(days=-3))
    guide = await read(synced, "guide")
    assert (guide["lastSyncTimestamp"], guide["dataFreshnessHours"]) == ("2026-11-07T12:00:00.0000000Z", None)
    assert "how old the updates are is not known" in guide["notes"][0]
    assert guide["notes"] == (await synced.ask())["notes"]


async def test_the_guide_of_an_empty_desk_has_empty_lists_and_null_for_the_time(desk: Desk) -> None:
    guide = await read(desk, "guide")
    assert (guide["tags"], guide["totalUpdates"]) == ([], 0)
    assert (guide["lastSyncTimestamp"], guide["dataFreshnessHours"]) == (None, None)


async def test_the_changelog_tells_what_each_sync_changed_field_by_field(
    synced: Desk, emulator: RunningEmulator
) -> None:
    await emulator.set_world(day=2)
    synced.clock.advance(timedelta(hours=1))
    await synced.syncer.sync(full=True)
    [second, first] = (await read(synced, "changelog"))["runs"]
    assert (first["added"], first["kind"], first["changesOmitted"]) == (306, "full", 306 - len(first["changes"]))
    assert (second["added"], second["changed"], second["withdrawn"], second["quarantined"]) == (7, 36, 3, 0)
    changes = {change["id"]: change for change in second["changes"]}
    assert changes["923321" if "923321" in changes else "923320"]["fields"] == [
        {"field": "tags", "before": [], "after": ["Retirements"]}
    ]
    fields: Mapping[str, Any] = {each["field"]: each for each in changes["920345"]["fields"]}
    assert {"title", "status"} <= set(fields) <= {"title", "status", "availabilities"}
    assert (fields["status"]["before"], fields["status"]["after"]) == ("In development", "In preview")
    assert changes["914010"]["fields"] == [{"field": "description"}]
    assert (changes["923921"]["change"], changes["923921"]["version"]) == ("withdrawn", 2)
    assert changes["912206"]["change"] == "added"
    assert "fields" not in changes["912206"]


async def test_a_failed_sync_is_in_the_changelog(desk: Desk, emulator: RunningEmulator) -> None:
    await emulator.set_faults([{"fault": "status", "status": 404}])
    with pytest.raises(Exception, match="404"):
        await desk.syncer.sync()
    [run] = (await read(desk, "changelog"))["runs"]
    assert (run["outcome"], run["changes"]) == ("failed", [])
    assert "HTTP 404" in run["error"]


async def test_the_changelog_stays_small(synced: Desk, emulator: RunningEmulator) -> None:
    await emulator.set_world([])
    for _ in range(25):
        await synced.syncer.sync()
    runs = (await read(synced, "changelog"))["runs"]
    assert len(runs) == 20
    assert sum(len(run["changes"]) for run in runs) <= 100


async def test_statistics_count_everything_and_the_last_twelve_months(library: Desk) -> None:
    statistics = await read(library, "stats")
    assert statistics["totalUpdates"] == 306
    assert [month["month"] for month in statistics["months"]][::11] == ["2026-11", "2025-12"]
    assert len(statistics["months"]) == 12
    for month in statistics["months"]:
        first, last = f"{month['month']}-01", f"{month['month']}-28"
        assert month["updates"] >= sum(
            first <= update["modified"][:10] <= last
            for update in (await library.ask(limit=100, sortBy="modified:desc"))["results"]
        )
    assert sum(month["updates"] for month in statistics["months"]) <= 306
    assert statistics["quarantined"] == [{"id": "912206", "reason": "title: Field required"}]
    assert {each["value"]: each["count"] for each in statistics["statuses"]}["Launched"] > 50
    assert statistics["lastFullSyncTimestamp"] == statistics["lastSyncTimestamp"] == "2026-11-07T12:00:00.0000000Z"
