"""What to heed is told wherever a thing is found or read: notes, announcements, and articles that are not kept here."""

from __future__ import annotations

from refdesk.app import Desk
from refdesk.kit.live_cautions import LiveCautions
from refdesk.model import Principal
from tests.server.test_on_record import Ask, call_as
from tests.toolsets.impact.test_operations import NOTE, READER, WRITER, desk, examine, store

__all__ = ["desk"]

ASKED = "Standard_D4s_v3 crawlers virtual machines retirement"


async def find(ask: Ask, toolset: str) -> list[str | None]:
    _, answer = await ask("search_everything", {"query": ASKED})
    return [each.get("caution") for each in answer["results"] if each["toolset"] == toolset]


async def test_the_search_over_everything_tells_of_both_sides_to_who_may_read_them(desk: Desk) -> None:
    async with (
        call_as(desk, "rest", "ann", *WRITER) as ann,
        call_as(desk, "rest", "feed", "updates:read") as feed,
        call_as(desk, "rest", "eve", *READER, org="other") as eve,
    ):
        await store(ann, NOTE)
        await examine(desk)
        [of_note] = await find(ann, "knowledge")
        assert of_note == "An announcement retires what this relies on from 2027-05-31 on: list_impacts."
        told = "1 thing here relies on what this changes: list_impacts."
        assert await find(ann, "azure-updates") == [told]
        assert await find(feed, "azure-updates") == await find(eve, "azure-updates") == [None]
        for arguments in ({"id": "499"}, {"query": ASKED}):
            assert (await ann("search_azure_updates", arguments))[1]["results"][0]["caution"] == told
            assert "caution" not in (await eve("search_azure_updates", arguments))[1]["results"][0]
        verdict = {"announcement": "499", "toolset": "knowledge", "verdict": "dismiss"}
        [impact] = (await ann("list_impacts", {}))[1]["impacts"]
        await ann("judge_impact", {**verdict, "id": impact["id"]})
        assert await find(ann, "azure-updates") == await find(ann, "knowledge") == [None]


async def test_what_is_not_kept_here_is_compared_when_it_is_read(desk: Desk) -> None:
    await examine(desk)
    context = await desk.get_context(Principal("acme", "ann", frozenset(READER)), "salesforce-knowledge")
    cautions = LiveCautions()
    sizing = "Sizing", "Our help desk runs on twelve Standard_D4s_v3 virtual machines."
    assert await cautions.get(context, [sizing, ("Lunch", "Lunch is served from noon on.")]) == [
        "An announcement retires what this relies on from 2027-05-31 on: announcement 499.",
        None,
    ]
    assert await cautions.get(context, []) == []
