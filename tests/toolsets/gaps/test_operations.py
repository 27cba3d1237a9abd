"""Questions without an answer over REST and MCP: listed for who may see them, closed by what answers them later."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from refdesk.app import Desk
from refdesk.gaps import records
from refdesk.toolsets.azure_updates.records import to_document
from tests.server.test_on_record import FACES, Ask, call_as, open_own

WRITER = ("knowledge:read", "knowledge:write", "skills:read", "skills:write", "updates:read")
QUESTION = "who rotates the signing certificate of the gateway"
NOTE = {"title": "Signing certificate of the gateway", "body": "Dana rotates the signing certificate every March."}
OTHER = {"title": "Canteen", "body": "Lunch is served from noon on; bring a badge."}
RECORD: dict[str, Any] = {
    "id": "499",
    "title": "Generally available: signing certificate rotation for the gateway",
    "description": "<p>The gateway rotates its signing certificate.</p>",
    "tags": [],
    "products": [],
    "productCategories": [],
    "availabilities": [],
    "created": "2026-11-01T00:00:00Z",
    "modified": "2026-11-01T00:00:00Z",
}


async def group(desk: Desk) -> None:
    keeper = desk.make_gap_keeper(await desk.get_base())
    assert keeper is not None
    await keeper.run_until_done()


async def embed(desk: Desk) -> None:
    """Do what happens in the background after a write."""
    base = await desk.get_base()
    for each in base.each():
        while await each.indexer.run_once():
            pass
    await desk.make_examiner(base).run_until_done()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_own(tmp_path) as opened:
        yield opened


async def list_gaps(ask: Ask, **asked: object) -> list[dict[str, Any]]:
    code, answer = await ask("list_gaps", asked)
    assert code == ""
    return answer["gaps"]


@pytest.mark.parametrize("face", FACES)
async def test_a_question_without_an_answer_is_listed_until_a_note_answers_it(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *WRITER) as ann, call_as(desk, face, "bob", *WRITER) as bob:
        await ann("store_knowledge", OTHER)
        await ann("search_knowledge", {"query": QUESTION})
        await bob("search_everything", {"query": f"{QUESTION}?"})
        await bob("search_knowledge", {"query": QUESTION})
        await group(desk)
        [gap] = await list_gaps(ann)
        assert (gap["question"], gap["count"], gap["status"]) == (QUESTION, 3, "open")
        assert (sorted(gap["agents"]), gap["wordings"]) == (["ann", "bob"], [f"{QUESTION}?"])
        assert gap["firstAsked"] <= gap["lastAsked"]
        id = (await ann("store_knowledge", NOTE))[1]["id"]
        await embed(desk)
        assert await list_gaps(bob) == []
        [answered] = await list_gaps(bob, status="answered", mine=True)
        assert answered["answer"] == {"toolset": "knowledge", "id": id, "title": NOTE["title"]}
        assert "judgedBy" not in answered


async def test_what_is_answered_is_no_gap(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *WRITER) as ann:
        await ann("store_knowledge", NOTE)
        await embed(desk)
        for operation in ("search_knowledge", "search_everything"):
            await ann(operation, {"query": QUESTION})
        await ann("search_skills", {"query": QUESTION})  # answered elsewhere, where who asks may read
        await ann("search_knowledge", {"query": "holidays in May", "tags": ["leave"]})  # a filter left it out
        await group(desk)
        assert await list_gaps(ann, status="all") == []


@pytest.mark.parametrize("face", FACES)
async def test_nobody_sees_what_was_asked_of_what_they_may_not_read(desk: Desk, face: str) -> None:
    async with (
        call_as(desk, face, "ann", *WRITER) as ann,
        call_as(desk, face, "eve", *WRITER, org="other") as eve,
        call_as(desk, face, "half", "knowledge:read", "knowledge:write") as half,
        call_as(desk, face, "none", "articles:read") as none,
    ):
        await ann("search_skills", {"query": QUESTION})
        await group(desk)
        [gap] = await list_gaps(ann)
        assert await list_gaps(eve) == await list_gaps(half) == []
        assert (await none("list_gaps", {}))[0] == "PERMISSION_DENIED" or await list_gaps(none) == []
        for caller in (eve, half):
            assert (await caller("judge_gap", {"id": gap["id"], "verdict": "dismiss"}))[0] == "NOT_FOUND"
        await half("search_knowledge", {"query": QUESTION})
        await group(desk)
        [seen] = await list_gaps(half)
        assert (seen["count"], seen["agents"], seen["toolsets"]) == (1, ["half"], ["knowledge"])
        assert (await list_gaps(ann))[0]["count"] == 2
        assert len(await list_gaps(eve, status="all")) == 0


@pytest.mark.parametrize("face", FACES)
async def test_a_gap_is_dismissed_answered_and_reopened(desk: Desk, face: str) -> None:
    async with (
        call_as(desk, face, "ann", *WRITER) as ann,
        call_as(desk, face, "bob", "knowledge:read", "skills:read", "updates:read") as bob,
    ):
        await ann("search_knowledge", {"query": QUESTION})
        await group(desk)
        id = (await list_gaps(ann))[0]["id"]
        assert (await bob("judge_gap", {"id": id, "verdict": "dismiss"}))[0] == "PERMISSION_DENIED"
        await ann("judge_gap", {"id": id, "verdict": "dismiss", "reason": "A test."})
        [dismissed] = await list_gaps(bob, status="dismissed")
        assert (dismissed["judgedBy"], dismissed["reason"]) == ("ann", "A test.")
        await bob("search_knowledge", {"query": QUESTION})
        await group(desk)
        assert await list_gaps(ann) == []
        assert (await ann("judge_gap", {"id": id, "verdict": "reopen"}))[1]["status"] == "open"
        assert (await list_gaps(ann))[0]["count"] == 2
        note = (await ann("store_knowledge", OTHER))[1]["id"]
        wrong = {"id": id, "verdict": "answer", "toolset": "knowledge"}
        assert (await ann("judge_gap", wrong))[0] == "INVALID_INPUT"
        assert (await ann("judge_gap", {**wrong, "answerId": f"{note[:-3]}fff"}))[0] == "NOT_FOUND"
        assert (await ann("judge_gap", {**wrong, "answerId": note}))[1]["status"] == "answered"
        assert (await list_gaps(bob, status="answered"))[0]["answer"]["id"] == note
        # Asked in vain again by somebody who may read that: it is no answer.
        await bob("search_knowledge", {"query": QUESTION})
        await group(desk)
        assert (await list_gaps(bob))[0]["count"] == 3


async def test_personal_data_is_masked(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *WRITER) as ann:
        await ann("search_knowledge", {"query": "why was 4111 1111 1111 1111 of jo.doe@example.com charged twice"})
        await group(desk)
        [gap] = await list_gaps(ann)
        assert gap["question"] == "why was [card number] of [e-mail] charged twice"
        kept = await (await desk.get_base()).knowledge_base.store.list_all_metadata(None, 1000)
        assert not [each for each in kept if "jo.doe" in str(each) or "4111" in str(each)]


async def test_an_announcement_closes_the_gaps_of_all_orgs_that_may_read_it(desk: Desk) -> None:
    async with (
        call_as(desk, "rest", "ann", *WRITER) as ann,
        call_as(desk, "rest", "eve", *WRITER, org="other") as eve,
        call_as(desk, "rest", "half", "knowledge:read", org="third") as half,
    ):
        for caller in (ann, eve, half):
            await caller("search_knowledge", {"query": QUESTION})
        await group(desk)
        base = await desk.get_base()
        async with base.knowledge_base.store.transaction() as transaction:
            await transaction.put_documents([to_document(RECORD)])
        await embed(desk)
        for caller in (ann, eve):
            assert (await list_gaps(caller, status="answered"))[0]["answer"]["toolset"] == "azure-updates"
        assert len(await list_gaps(half)) == 1


async def test_erasing_takes_away_what_an_agent_asked_and_opens_what_the_erased_answered(desk: Desk) -> None:
    async with (
        call_as(desk, "rest", "ann", *WRITER) as ann,
        call_as(desk, "rest", "bob", *WRITER) as bob,
        call_as(desk, "rest", "root", "admin") as root,
    ):
        for caller in (ann, bob):
            await caller("search_knowledge", {"query": QUESTION})
        await group(desk)
        id = (await ann("store_knowledge", NOTE))[1]["id"]
        await embed(desk)
        assert len(await list_gaps(bob, status="answered")) == 1
        await root("erase", {"entry": id})
        [gap] = await list_gaps(bob)
        assert gap["count"] == 2
        await root("erase", {"agent": "bob"})
        [gap] = await list_gaps(ann)
        assert (gap["count"], gap["agents"]) == (1, ["ann"])
        await root("erase", {"org": "acme"})
        store = (await desk.get_base()).knowledge_base.store
        assert await records.list_gaps(store, "acme") == []


async def test_more_than_can_wait_are_dropped_and_that_is_told(desk: Desk) -> None:
    assert desk.waiting is not None
    desk.waiting.most = 3
    async with call_as(desk, "rest", "ann", *WRITER) as ann:
        for name in ("Lisbon", "Quito", "Osaka", "Perth", "Accra"):
            await ann("search_knowledge", {"query": f"opening hours in {name}"})
        await group(desk)
        code, answer = await ann("list_gaps", {})
        assert (code, answer["dropped"], sum(gap["count"] for gap in answer["gaps"])) == ("", 2, 3)


async def test_gaps_survive_the_end_of_a_server_and_can_be_switched_off(tmp_path: Path) -> None:
    async with open_own(tmp_path) as desk, call_as(desk, "rest", "ann", *WRITER) as ann:
        await ann("search_knowledge", {"query": QUESTION})
        await group(desk)
        id = (await list_gaps(ann))[0]["id"]
        await ann("judge_gap", {"id": id, "verdict": "dismiss"})
    async with open_own(tmp_path, gaps=False) as desk, call_as(desk, "rest", "cleo", *WRITER) as cleo:
        await cleo("search_knowledge", {"query": "where do the spare batteries lie"})
        assert desk.make_gap_keeper(await desk.get_base()) is None
        [gap] = await list_gaps(cleo, status="all")
        assert (gap["id"], gap["status"]) == (id, "dismissed")


async def test_pages_follow_each_other_and_the_most_asked_comes_first(desk: Desk) -> None:
    places = ("Lisbon harbour", "Quito airport", "Osaka castle", "Perth station", "Accra market")
    async with call_as(desk, "rest", "ann", *WRITER) as ann:
        for place in places:
            await ann("search_knowledge", {"query": place})
        await ann("search_knowledge", {"query": places[3]})
        await group(desk)
        pages = [(await ann("list_gaps", {"limit": 2, "offset": offset}))[1] for offset in (0, 2, 4)]
    assert [page["hasMore"] for page in pages] == [True, True, False]
    assert pages[0]["gaps"][0]["question"] == places[3]
    assert {gap["question"] for page in pages for gap in page["gaps"]} == set(places)


async def test_gaps_judged_between_two_pages_leave_none_out(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *WRITER) as ann:
        subjects = ("certificate gateway", "canteen lunch", "parking badge", "printer toner", "holiday calendar")
        for subject in subjects:
            await ann("search_knowledge", {"query": f"who is responsible for the {subject}"})
        await group(desk)
        _, page = await ann("list_gaps", {"limit": 2})
        seen = [gap["id"] for gap in page["gaps"]]
        for id in seen:
            await ann("judge_gap", {"id": id, "verdict": "dismiss"})
        while page["hasMore"]:
            _, page = await ann("list_gaps", {"limit": 2, "cursor": page["nextCursor"]})
            seen += [gap["id"] for gap in page["gaps"]]
        assert len(seen) == len(set(seen)) == len(subjects)


async def test_a_gap_asked_again_between_two_pages_is_never_left_out(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *WRITER) as ann:
        for subject in ("certificate gateway", "canteen lunch", "parking badge"):
            await ann("search_knowledge", {"query": f"who is responsible for the {subject}"})
        await group(desk)
        _, page = await ann("list_gaps", {"limit": 1})
        shown = [gap["question"] for gap in page["gaps"]]
        for _ in range(2):
            await ann("search_knowledge", {"query": "who is responsible for the certificate gateway"})
        await group(desk)
        while page["hasMore"]:
            _, page = await ann("list_gaps", {"limit": 1, "cursor": page["nextCursor"]})
            shown += [gap["question"] for gap in page["gaps"]]
        assert len(set(shown)) == 3


async def test_of_an_erased_judge_it_is_said_that_it_was_erased(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *WRITER) as ann, call_as(desk, "rest", "bob", *WRITER, "admin") as bob:
        await bob("search_knowledge", {"query": QUESTION})
        await group(desk)
        [gap] = await list_gaps(bob)
        id = (await bob("store_knowledge", OTHER))[1]["id"]
        answer = {"toolset": "knowledge", "answerId": id, "reason": "It says so."}
        await ann("judge_gap", {"id": gap["id"], "verdict": "answer", **answer})
        assert (await bob("erase", {"agent": "ann"}))[0] == ""
        [answered] = await list_gaps(bob, status="answered")
        assert (answered["answer"]["id"], answered["judgedBy"]) == (id, "(erased)")
        assert "reason" not in answered
