"""Cases of entries that contradict each other, over REST and MCP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from refdesk.app import Desk
from refdesk.factories.impact import choose_examiner
from tests.server.test_on_record import FACES, Ask, call_as, open_own

AGENT = ("knowledge:read", "knowledge:write")
ONE = {"title": "Limits of the API", "body": "Owner is Dana. The public API allows 60 requests a minute per key."}
OTHER = {"title": "Limits of the API", "body": "The public API allows 100 requests a minute per key."}
SAME = {"title": "Limits of the API", "body": "The public API allows 60 requests a minute per key. Owner is Dana."}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_own(tmp_path) as opened:
        yield opened


async def examine(desk: Desk) -> None:
    base = await desk.get_base()
    examiner = choose_examiner(lambda name: base.of(name).knowledge_base.store)
    await examiner.run_until_done()


async def store(ask: Ask, note: dict[str, str]) -> str:
    return str((await ask("store_knowledge", dict(note)))[1]["id"])


@pytest.mark.parametrize("face", FACES)
async def test_a_case_lists_both_sides_until_it_is_settled(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *AGENT) as ann, call_as(desk, face, "eve", *AGENT, org="other") as eve:
        first, second = await store(ann, ONE), await store(ann, OTHER)
        await store(eve, OTHER)
        await examine(desk)
        [case] = (await ann("list_cases", {}))[1]["cases"]
        assert (case["one"]["id"], case["other"]["id"], case["way"]) == (first, second, "value")
        assert "60 requests" in case["one"]["passage"]
        assert "100 requests" in case["other"]["passage"]
        assert second in (await ann("get_knowledge", {"id": first}))[1]["caution"]
        [*_, found] = (await ann("search_knowledge", {"query": "requests a minute"}))[1]["results"]
        assert "list_cases" in found["caution"]
        assert (await eve("list_cases", {}))[1]["cases"] == []
        settled = {"oneId": second, "otherId": first, "verdict": "both_hold", "reason": "The second for partners."}
        assert (await eve("settle_case", settled))[0] == "NOT_FOUND"
        assert (await ann("settle_case", settled))[1]["standing"] == "both_hold"
        assert (await ann("list_cases", {}))[1]["cases"] == []
        assert "caution" not in (await ann("get_knowledge", {"id": first}))[1]
        [kept] = (await ann("list_cases", {"standing": "both_hold", "id": first}))[1]["cases"]
        assert (kept["settledBy"], kept["reason"]) == ("ann", "The second for partners.")


async def test_who_is_superseded_or_erased_contradicts_nobody(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *AGENT) as ann, call_as(desk, "rest", "root", "admin") as root:
        first, second = await store(ann, ONE), await store(ann, OTHER)
        third = await store(ann, {**OTHER, "body": "The public API allows 300 requests a minute per key."})
        await examine(desk)
        assert len((await ann("list_cases", {}))[1]["cases"]) == 3
        await root("erase", {"entry": third})
        assert len((await ann("list_cases", {}))[1]["cases"]) == 1
        await ann("supersede_knowledge", {"oldId": first, "newId": second})
        assert (await ann("list_cases", {}))[1]["cases"] == []
        assert "caution" not in (await ann("get_knowledge", {"id": second}))[1]


async def test_who_says_the_same_is_named(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *AGENT) as ann:
        first, second = await store(ann, ONE), await store(ann, SAME)
        await examine(desk)
        assert (await ann("get_knowledge", {"id": second}))[1]["caution"] == f"Says the same as {first}."
        assert (await ann("list_cases", {}))[1]["cases"] == []


async def test_what_cites_an_entry_that_holds_no_more_is_marked(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *AGENT) as ann:
        base = await store(ann, ONE)
        citing = await store(ann, {"title": "Sizing", "body": f"Sized by the limit in {base}: one key is enough."})
        assert "caution" not in (await ann("get_knowledge", {"id": citing}))[1]
        new = await store(ann, {"title": "Limits of the API", "body": "There are no limits."})
        await ann("supersede_knowledge", {"oldId": base, "newId": new})
        assert f"{base}, superseded by {new}" in (await ann("get_knowledge", {"id": citing}))[1]["caution"]
        await ann("restore_knowledge", {"id": base})
        await ann("withdraw_knowledge", {"id": base})
        assert f"{base}, withdrawn" in (await ann("get_knowledge", {"id": citing}))[1]["caution"]
