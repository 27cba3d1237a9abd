"""Two feeds in one collection, each synced, guarded and told of by itself; and one alone, as if there were no other."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from anyio.to_thread import run_sync

from refdesk.app import Desk, open_desk
from refdesk.core.contracts import get_input_schema, get_output_schema
from refdesk.factories.toolsets import describe_toolsets, load_toolsets
from refdesk.model import State
from refdesk.toolsets.azure_updates.impact import to_announcement
from refdesk.toolsets.azure_updates.models import COLLECTION, SearchInput
from refdesk.toolsets.azure_updates.operations import SEARCH_UPDATES
from sample_world.azure_updates.process import RunningEmulator
from sample_world.azure_updates.world import load_roadmap, load_world
from tests.acceptance.processes import run
from tests.server.conftest import open_http
from tests.server.echo import make_settings
from tests.server.test_on_record import Ask, call_as
from tests.toolsets.azure_updates.samples import make_record

AZURE, ROADMAP = "azure-updates", "azure-updates:m365"
SCOPES = ("admin", "updates:read")


@pytest.fixture
async def feed(emulator: RunningEmulator) -> RunningEmulator:
    await emulator.set_roadmap()
    return emulator


@asynccontextmanager
async def open_feeds(folder: Path, feed: RunningEmulator, **chosen: object) -> AsyncGenerator[tuple[Desk, Ask]]:
    """Yield a desk with both feeds, unless something else is chosen, and what asks it as an administrator."""
    own = {"azure_updates_feeds": "azure,m365", "azure_updates_m365_url": feed.roadmap_url, **chosen}
    store = f"sqlite:///{folder / 'desk.sqlite3'}"
    settings = make_settings(folder, store=store, tools="all", azure_updates_url=feed.url, **own)
    async with (
        open_desk(settings, load_toolsets(settings=settings), in_background=False) as desk,
        call_as(desk, "rest", "root", *SCOPES) as ask,
    ):
        yield desk, ask


async def sync(ask: Ask, source: str, **how: bool) -> dict[str, Any]:
    return (await ask("sync_toolset", {"toolset": source, **how}))[1]


async def search(ask: Ask, **arguments: object) -> dict[str, Any]:
    code, answer = await ask("search_azure_updates", arguments)
    assert code == "", answer
    return answer


async def count(ask: Ask) -> dict[str, int]:
    """Return how many updates each feed has."""
    counts = (await search(ask, facets=["feed"], limit=1))["facets"]["feed"]
    return {each["value"]: each["count"] for each in counts}


async def test_each_feed_is_synced_by_itself_and_both_are_searched_together(
    feed: RunningEmulator, tmp_path: Path
) -> None:
    async with open_feeds(tmp_path, feed) as (_, ask):
        azure, roadmap = await sync(ask, AZURE), await sync(ask, ROADMAP)
        assert (azure["added"], roadmap["added"]) == (306, 8)
        assert await count(ask) == {"azure": 306, "m365": 8}
        assert [(each["toolset"], each["documents"]) for each in (await ask("show_syncs", {}))[1]["syncs"]] == [
            (AZURE, 306),
            (ROADMAP, 8),
        ]
        assert (await sync(ask, ROADMAP, full=True))["unchanged"] == 8
        [first] = (await search(ask, query='"quiet corridors"'))["results"]
        assert (first["id"], first["feed"]) == ("m365-601001", "m365")
        assert first["url"] == "https://www.microsoft.com/microsoft-365/roadmap?id=601001"
        assert "(https://www.microsoft.com/microsoft-365/roadmap)" in first["description"]
        assert {"Worldwide (Standard Multi-Tenant)", "GCC", "Desktop", "Targeted Release"} <= set(first["tags"])
        assert first["availabilities"] == [{"ring": "General Availability", "date": "2027-02-01"}]
        other = (await search(ask, filters={"feed": "azure"}, limit=1))["results"][0]
        assert (other["feed"], other["url"]) == (
            "azure",
            f"https://azure.microsoft.com/en-us/updates/?id={other['id']}",
        )


async def test_a_feed_is_chosen_and_counted_like_any_other_filter(feed: RunningEmulator, tmp_path: Path) -> None:
    async with open_feeds(tmp_path, feed) as (_, ask):
        await sync(ask, AZURE)
        await sync(ask, ROADMAP)
        found = await search(ask, filters={"feed": "m365"}, facets=["status", "feed", "products"])
        assert {each["feed"] for each in found["results"]} == {"m365"}
        assert found["total"] == 8
        assert found["facets"]["feed"] == [{"value": "m365", "count": 8}]
        assert {"value": "Cancelled", "count": 1} in found["facets"]["status"]
        assert found["facets"]["products"][0] == {"value": "Microsoft Teams", "count": 4}
        assert (await search(ask, filters={"feed": "azure"}, facets=["feed"]))["facets"]["feed"] == [
            {"value": "azure", "count": 306}
        ]
        dated = await search(ask, filters={"feed": "m365", "dateFrom": "2026-12-01", "dateTo": "2026-12-31"})
        assert [each["id"] for each in dated["results"]] == ["m365-601004"], "its month is only in its date of preview"
        assert (await ask("search_azure_updates", {"filters": {"feed": "fabric"}}))[0] == "INVALID_INPUT"
        [unknown] = (await search(ask, filters={"products": ["Outlok"]}))["unknownFilterValues"]
        assert unknown["didYouMean"] == ["Outlook"]
        [fetched] = (await search(ask, id="m365-601006"))["results"]
        assert (fetched["feed"], fetched["availabilities"]) == ("m365", [])


@pytest.mark.parametrize("kept", [0, 4])
async def test_a_feed_that_lost_much_touches_no_record_of_the_other(
    feed: RunningEmulator, tmp_path: Path, kept: int
) -> None:
    items = [{**load_roadmap()[0], "id": 700_000 + number} for number in range(60)]
    await feed.set_roadmap(items)
    async with open_feeds(tmp_path, feed) as (_, ask):
        await sync(ask, AZURE)
        await sync(ask, ROADMAP)
        await feed.set_roadmap(items[: kept * 7])
        lost = await sync(ask, ROADMAP, full=True)
        assert (lost["withdrawn"], lost["withheld"]) == (0, 60 - kept * 7)
        assert (await sync(ask, AZURE, full=True))["withheld"] == 0
        assert await count(ask) == {"azure": 306, "m365": 60}
        notes = (await search(ask, query="machines"))["notes"]
        assert [note for note in notes if "gone from the source" in note] == [
            note for note in notes if note.startswith(f"{60 - kept * 7} items of the Microsoft 365 roadmap are gone")
        ]
        await feed.set_world(load_world()[: kept * 40])
        assert (await sync(ask, AZURE, full=True))["withheld"] > 140
        forced = await sync(ask, ROADMAP, full=True, force=True)
        assert (forced["withdrawn"], forced["withheld"]) == (60 - kept * 7, 0)
        assert (await count(ask))["azure"] == 306
        logged = (await ask("list_azure_changes", {"kinds": ["withdrawn"]}))[1]
        assert logged["total"] == 60 - kept * 7
        assert all(each["id"].startswith("m365-7") for each in logged["changes"])


async def test_one_feed_fails_while_the_other_goes_on(feed: RunningEmulator, tmp_path: Path) -> None:
    async with open_feeds(tmp_path, feed, azure_updates_m365_url=f"{feed.url}/no/feed") as (desk, ask):
        assert (await ask("sync_toolset", {"toolset": ROADMAP}))[0] == "SOURCE_UNAVAILABLE"
        assert (await sync(ask, AZURE))["added"] == 306
        azure, roadmap = (await ask("show_syncs", {}))[1]["syncs"]
        assert azure.get("lastError") is None
        assert "404" in roadmap["lastError"]
        answer = await search(ask, query="machines")
        assert answer["total"] > 0
        assert any("items of the Microsoft 365 roadmap may be missing" in note for note in answer["notes"])
        health = await desk.get_health()
        assert (health.toolsets[AZURE].problem, health.toolsets[ROADMAP].as_of) == (None, None)
        assert "404" in str(health.toolsets[ROADMAP].problem)
        assert health.status == "degraded"


async def test_what_was_synced_is_there_after_a_restart_and_read_on_from_where_it_was(
    feed: RunningEmulator, tmp_path: Path
) -> None:
    async with open_feeds(tmp_path, feed) as (_, ask):
        await sync(ask, AZURE)
        await sync(ask, ROADMAP)
    changed = load_roadmap()
    changed[0] |= {"status": "Rolling out", "modified": "2026-11-05T12:00:00.0000000Z"}
    await feed.set_roadmap(changed)
    async with open_feeds(tmp_path, feed) as (_, ask):
        delta = await sync(ask, ROADMAP)
        assert (delta["kind"], delta["changed"], delta["added"]) == ("delta", 1, 0)
        assert await count(ask) == {"azure": 306, "m365": 8}
        history = (await ask("get_azure_update_history", {"id": "m365-601001"}))[1]
        assert [each["change"] for each in history["versions"]] == ["changed", "added"]
        status = {"field": "status", "before": "In development", "after": "Rolling out"}
        assert status in history["versions"][0]["fields"]


async def test_a_record_with_an_id_of_the_other_feed_is_set_aside(feed: RunningEmulator, tmp_path: Path) -> None:
    await feed.set_world([*load_world()[:3], cast("dict[str, object]", make_record("m365-601001"))])
    async with open_feeds(tmp_path, feed) as (_, ask):
        await sync(ask, ROADMAP)
        assert (await sync(ask, AZURE))["quarantined"] == 1
        [kept] = (await search(ask, id="m365-601001"))["results"]
        assert kept["title"].startswith("Microsoft Teams: Quiet corridors")


async def test_an_item_that_cannot_be_read_is_set_aside_and_what_was_kept_of_it_stays(
    feed: RunningEmulator, tmp_path: Path
) -> None:
    async with open_feeds(tmp_path, feed) as (_, ask):
        await sync(ask, ROADMAP)
        broken = load_roadmap()
        broken[0]["platforms"] = "Web"
        broken[1]["id"] = None
        broken[2]["availabilities"] = "soon"
        await feed.set_roadmap(broken)
        report = await sync(ask, ROADMAP, full=True)
        assert (report["quarantined"], report["withdrawn"]) == (3, 1), "only the one without an id is gone"
        assert (await search(ask, filters={"feed": "m365"}))["total"] == 7
        await feed.set_roadmap()
        report = await sync(ask, ROADMAP, full=True)
        assert (report["quarantined"], report["restored"]) == (0, 1)


async def test_the_guide_and_the_changelog_tell_of_each_feed(feed: RunningEmulator, tmp_path: Path) -> None:
    async with open_feeds(tmp_path, feed) as (desk, ask):
        await sync(ask, AZURE)
        async with open_http(desk) as client:
            guide = (await client.get("/azure-updates/guide")).json()
            assert [(each["feed"], each["updates"]) for each in guide["feeds"]] == [("azure", 306), ("m365", 0)]
            assert [each["dataFreshnessHours"] for each in guide["feeds"]] == [0.0, None]
            await sync(ask, ROADMAP)
            guide = (await client.get("/azure-updates/guide")).json()
            assert [(each["feed"], each["updates"]) for each in guide["feeds"]] == [("azure", 306), ("m365", 8)]
            assert "Outlook" in guide["products"]
            assert "notes" not in guide
            runs = (await client.get("/azure-updates/changelog")).json()["runs"]
            assert [(each["feed"], each["added"]) for each in runs] == [("m365", 8), ("azure", 306)]


async def test_impact_reads_an_item_as_it_reads_an_announcement(feed: RunningEmulator, tmp_path: Path) -> None:
    async with open_feeds(tmp_path, feed) as (desk, ask):
        await sync(ask, ROADMAP)
        base = (await desk.get_base()).knowledge_base
        [document] = await base.get(COLLECTION, ["m365-601005"])
        assert document is not None
        assert document.author == "Microsoft 365"
        assert document.data["record"] == {**load_roadmap()[4], "id": "m365-601005"}
        announcement = to_announcement(document)
        assert (announcement.products, [str(day) for day in announcement.due]) == (("Microsoft Teams",), ["2027-03-01"])


async def test_without_the_setting_nothing_is_told_of_feeds(feed: RunningEmulator, tmp_path: Path) -> None:
    async with open_feeds(tmp_path, feed, azure_updates_feeds="azure") as (desk, ask):
        await sync(ask, AZURE)
        assert (await ask("sync_toolset", {"toolset": ROADMAP}))[0] == "INVALID_INPUT"
        assert (await ask("search_azure_updates", {"filters": {"feed": "azure"}}))[0] == "INVALID_INPUT"
        assert (await ask("search_azure_updates", {"facets": ["feed"]}))[0] == "INVALID_INPUT"
        assert all("feed" not in each for each in (await search(ask))["results"])
        assert list((await desk.get_health()).toolsets).count(ROADMAP) == 0
        [described] = [each for each in describe_toolsets() if each.name == AZURE]
        [served] = [each for each in desk.toolsets if each.name == AZURE]
        assert served.listed == described.listed == (SEARCH_UPDATES,)
        assert served.resources == described.resources
        async with open_http(desk) as client:
            assert "feeds" not in (await client.get("/azure-updates/guide")).json()
    assert not [each for each in await feed.requests() if "m365" in str(each["path"])]


async def test_with_the_setting_the_schemas_say_more_and_nothing_else_than_before(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, azure_updates_feeds="azure,m365")
    [toolset] = [each for each in load_toolsets(settings=settings) if each.name == AZURE]
    [more], before = toolset.listed, cast("Any", get_input_schema(SearchInput))
    after = cast("Any", get_input_schema(more.input))
    filters = after["properties"]["filters"]["properties"]
    assert filters.pop("feed")["enum"] == ["azure", "m365"]
    assert set(filters) == set(before["properties"]["filters"]["properties"])
    assert set(after["properties"]) == set(before["properties"])
    assert after["additionalProperties"] is False
    assert '"feed"' in json.dumps(get_output_schema(more.output))


async def test_a_feed_that_is_no_longer_set_up_goes_with_the_next_full_sync(
    feed: RunningEmulator, tmp_path: Path
) -> None:
    async with open_feeds(tmp_path, feed) as (_, ask):
        await sync(ask, AZURE)
        await sync(ask, ROADMAP)
    async with open_feeds(tmp_path, feed, azure_updates_feeds="azure") as (_, ask):
        assert (await sync(ask, AZURE, full=True))["withdrawn"] == 8
        assert (await search(ask))["total"] == 306
    async with open_feeds(tmp_path, feed) as (desk, ask):
        assert (await sync(ask, ROADMAP, full=True))["restored"] == 8
        [document] = await (await desk.get_base()).knowledge_base.get(COLLECTION, ["m365-601005"])
        assert document is not None
        assert document.state is State.CURRENT


@pytest.mark.parametrize("feeds", ["m365", "", "azure,fabric"])
def test_azure_is_always_among_the_feeds(tmp_path: Path, feeds: str) -> None:
    with pytest.raises(ValueError, match="azure_updates_feeds"):
        make_settings(tmp_path, azure_updates_feeds=feeds)


async def test_the_commands_tell_of_each_feed(feed: RunningEmulator, tmp_path: Path) -> None:
    variables = {
        "REFDESK_EMBEDDER": "hashing",
        "REFDESK_AZURE_UPDATES_URL": feed.url,
        "REFDESK_AZURE_UPDATES_M365_URL": feed.roadmap_url,
        "REFDESK_AZURE_UPDATES_FEEDS": "azure, m365",
    }

    async def call(*arguments: str) -> str:
        done = await run_sync(lambda: run(arguments, tmp_path, **variables))
        return done.stdout + done.stderr

    assert "azure-updates:m365 is current (full sync" in await call("sync", ROADMAP)
    checks = {each["name"]: each for each in json.loads(await call("doctor", "--json"))["checks"]}
    assert checks[ROADMAP]["found"].startswith("8 documents, as of ")
    assert "azure-updates was never synced" in checks[AZURE]["found"]
    assert checks["feed m365"]["found"] == f"{feed.roadmap_url} answers"
