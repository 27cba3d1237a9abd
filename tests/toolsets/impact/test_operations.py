"""Impacts over REST and MCP: what callers may read, in their org, with the evidence of both sides."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from refdesk.app import Desk
from refdesk.factories.impact import choose_examiner
from refdesk.toolsets.azure_updates.records import to_document
from tests.server.test_on_record import FACES, Ask, call_as, open_own

READER = ("knowledge:read", "updates:read")
WRITER = (*READER, "knowledge:write", "skills:read", "skills:write")
RECORD = {
    "id": "499",
    "title": "Retirement: Dsv3-series Azure Virtual Machines will be retired on May 31, 2027",
    "description": "<p>On May 31, 2027 we retire Standard_D2s_v3. Please migrate to the Dsv6-series.</p>",
    "tags": ["Retirements"],
    "products": ["Virtual Machines"],
    "productCategories": ["Compute"],
    "availabilities": [{"ring": "Retirement", "year": 2027, "month": "May"}],
    "created": "2026-11-01T00:00:00Z",
    "modified": "2026-11-01T00:00:00Z",
}
NOTE = {
    "title": "Crawlers",
    "body": "Owner is Dana. The crawlers run on twelve Standard_D4s_v3. Call us. Be kind. Rest.",
}
OTHER = {"title": "Crawlers in the north", "body": "They run on twelve Standard_D4s_v5."}


async def examine(desk: Desk) -> None:
    base = await desk.get_base()
    await choose_examiner(lambda name: base.of(name).knowledge_base.store).run_until_done()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_own(tmp_path) as opened:
        base = await opened.get_base()
        async with base.knowledge_base.store.transaction() as transaction:
            await transaction.put_documents([to_document(RECORD)])
        yield opened


async def store(ask: Ask, note: dict[str, str]) -> str:
    return str((await ask("store_knowledge", dict(note)))[1]["id"])


@pytest.mark.parametrize("face", FACES)
async def test_an_impact_has_the_evidence_of_both_sides_and_can_be_judged(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *WRITER) as ann, call_as(desk, face, "bob", *READER) as bob:
        id, _ = await store(ann, NOTE), await store(ann, OTHER)
        await examine(desk)
        [impact] = (await bob("list_impacts", {}))[1]["impacts"]
        assert impact["announcement"]["id"] == "499"
        assert impact["announcement"]["says"].startswith("On May 31, 2027 we retire")
        assert (impact["toolset"], impact["id"], impact["title"]) == ("knowledge", id, "Crawlers")
        assert "Standard_D4s_v3" in impact["passage"]
        assert (impact["change"], impact["due"], impact["status"]) == ("retires", "2027-05-31", "open")
        assert impact["confidence"] > 0.5
        verdict = {"announcement": "499", "toolset": "knowledge", "id": id}
        assert (await bob("judge_impact", {**verdict, "verdict": "dismiss"}))[0] == "PERMISSION_DENIED"
        assert (await ann("judge_impact", {**verdict, "verdict": "dismiss", "reason": "A lab."}))[1][
            "status"
        ] == "dismissed"
        assert (await bob("list_impacts", {}))[1]["impacts"] == []
        [dismissed] = (await bob("list_impacts", {"status": "dismissed"}))[1]["impacts"]
        assert (dismissed["judgedBy"], dismissed["reason"]) == ("ann", "A lab.")
        await examine(desk)
        assert (await bob("list_impacts", {}))[1]["impacts"] == []
        assert (await ann("judge_impact", {**verdict, "verdict": "reopen"}))[1]["status"] == "open"
        assert len((await bob("list_impacts", {"until": "2027-05-31"}))[1]["impacts"]) == 1
        assert (await bob("list_impacts", {"until": "2027-05-30"}))[1]["impacts"] == []


@pytest.mark.parametrize("face", FACES)
async def test_another_org_and_who_may_not_read_one_side_see_nothing(desk: Desk, face: str) -> None:
    async with (
        call_as(desk, face, "ann", *WRITER) as ann,
        call_as(desk, face, "eve", *WRITER, org="other") as eve,
        call_as(desk, face, "half", "knowledge:read") as half,
        call_as(desk, face, "feed", "updates:read") as feed,
    ):
        id = await store(ann, NOTE)
        await examine(desk)
        assert (await half("list_impacts", {}))[0] == "PERMISSION_DENIED"
        for caller in (eve, feed):
            assert (await caller("list_impacts", {}))[1]["impacts"] == []
        verdict = {"announcement": "499", "toolset": "knowledge", "id": id, "verdict": "dismiss"}
        assert (await eve("judge_impact", verdict))[0] == "NOT_FOUND"
        assert len((await ann("list_impacts", {}))[1]["impacts"]) == 1


async def test_what_was_replaced_or_erased_is_listed_no_more_and_leaves_no_record(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *WRITER) as ann, call_as(desk, "rest", "root", "admin") as root:
        old, erased, new = await store(ann, NOTE), await store(ann, NOTE), await store(ann, OTHER)
        await examine(desk)
        assert len((await ann("list_impacts", {}))[1]["impacts"]) == 2
        await ann("supersede_knowledge", {"oldId": old, "newId": new})
        await root("erase", {"entry": erased})
        assert (await ann("list_impacts", {}))[1]["impacts"] == []
        base = (await desk.get_base()).knowledge_base
        left = await base.store.list_all_metadata(None, 1000)
        assert [record.key for record in left if erased in record.key.name] == []


async def test_pages_follow_each_other(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *WRITER) as ann:
        ids = {await store(ann, {**NOTE, "title": f"Crawlers {number}"}) for number in range(5)}
        await examine(desk)
        pages = [(await ann("list_impacts", {"limit": 2, "offset": offset}))[1] for offset in (0, 2, 4)]
    assert [page["hasMore"] for page in pages] == [True, True, False]
    assert {impact["id"] for page in pages for impact in page["impacts"]} == ids
