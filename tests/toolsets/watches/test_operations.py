"""Watches and what they tell, over REST and MCP: each thing once, to who may read it, in its org."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from xml.etree.ElementTree import fromstring

import pytest

from refdesk.app import Desk
from refdesk.core.clock import FixedClock, SystemClock
from refdesk.core.writing import audit
from refdesk.factories.watching import choose_watcher
from refdesk.model import JsonObject
from refdesk.toolsets.azure_updates.records import to_document
from refdesk.watching import happenings
from refdesk.watching.watches import make_progress_key
from tests.server.conftest import open_http
from tests.server.test_keys import bearer, make_key
from tests.server.test_on_record import FACES, Ask, call_as, open_own
from tests.toolsets.impact.test_operations import NOTE, RECORD, examine

EVERYTHING = ("knowledge:read", "knowledge:write", "skills:read", "skills:write", "updates:read")
UUID = re.compile(r"[0-9a-f-]{36}")
CONVERSATION = (
    "Customer: My parcel tracker shows a zebra instead of the map.\n"
    "Agent: Please clear the cache under Settings, then open the map again.\n"
    "Customer: That worked, thank you!"
)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_own(tmp_path, embedder="hashing") as opened:
        yield opened


async def look(desk: Desk) -> int:
    """Tell what is to be told, as the background work does."""
    return await choose_watcher(await desk.get_base()).run_once()


async def put_update(desk: Desk, version: int = 1, **changed: object) -> None:
    """Write an update of the feed as a sync does: with its place on the record."""
    base = (await desk.get_base()).knowledge_base
    store = audit.watch(base.store, SystemClock(), audit.SERVER, "sync azure-updates", documents_only=True)
    async with store.transaction() as transaction:
        await transaction.put_documents(
            [replace(to_document(cast("JsonObject", {**RECORD, **changed})), version=version)]
        )


async def watch(ask: Ask, kind: str, subject: str, **more: object) -> str:
    code, answer = await ask("create_watch", {"kind": kind, "subject": subject, **more})
    assert code == "", answer
    return str(answer["id"])


async def list_news(ask: Ask, **asked: object) -> list[dict[str, Any]]:
    code, answer = await ask("list_news", asked)
    assert code == "", answer
    return list(answer["news"])


async def store(ask: Ask, title: str, body: str = "Text.", **more: object) -> str:
    return str((await ask("store_knowledge", {"title": title, "body": body, **more}))[1]["id"])


@pytest.mark.parametrize("face", FACES)
async def test_a_search_tells_once_of_what_comes_to_match_it(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *EVERYTHING) as ann, call_as(desk, face, "bob", *EVERYTHING) as bob:
        await store(bob, "Refund limit for business customers", "It was there before.")
        mine = await watch(ann, "search", "refund limit for business customers", label="refunds")
        new = await store(bob, "Refund limit for business customers is 500", "Since May.")
        other = await store(bob, "Opening hours in winter", "We open at ten.")
        assert await look(desk) == 1
        assert await look(desk) == 0
        [told] = await list_news(ann)
        assert (told["what"], told["id"], told["watch"], told["label"]) == ("new", new, mine, "refunds")
        assert (told["title"], told["toolset"]) == ("Refund limit for business customers is 500", "knowledge")
        assert await list_news(bob) == []
        edited = (await bob("edit_knowledge", {"id": other, "title": "Refund limit for business customers"}))[1]
        await look(desk)
        [again] = await list_news(ann, after=told["number"])
        assert (again["what"], again["id"], again["number"]) == ("new", edited["id"], 2)


@pytest.mark.parametrize("face", FACES)
async def test_a_paused_watch_tells_nothing_and_goes_on_where_what_it_watches_is(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *EVERYTHING) as ann, call_as(desk, face, "bob", *EVERYTHING) as bob:
        note = await store(ann, "Gate code")
        id = await watch(ann, "entry", note)
        assert (await bob("pause_watch", {"id": id}))[0] == "NOT_FOUND"
        assert await ann("pause_watch", {"id": id}) == ("", {"id": id, "paused": True})
        assert await ann("pause_watch", {"id": id}) == ("", {"id": id, "paused": True})
        assert [each["paused"] for each in (await ann("list_watches", {}))[1]["watches"]] == [True]
        edited = (await ann("edit_knowledge", {"id": note, "body": "It is 12."}))[1]["id"]
        assert await look(desk) == 0
        again = (await ann("edit_knowledge", {"id": edited, "title": "The gate code"}))[1]["id"]
        assert await look(desk) == 0
        assert await ann("pause_watch", {"id": id, "paused": False}) == ("", {"id": id, "paused": False})
        await ann("withdraw_knowledge", {"id": again})
        await look(desk)
        assert [(each["what"], each["id"]) for each in await list_news(ann)] == [("withdrawn", again)]


@pytest.mark.parametrize("face", FACES)
async def test_news_of_a_watch_that_one_has_not_are_not_found(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *EVERYTHING) as ann, call_as(desk, face, "bob", *EVERYTHING) as bob:
        mine = await watch(ann, "search", "gate code")
        assert await list_news(ann, watch=mine) == []
        assert (await bob("list_news", {"watch": mine}))[0] == "NOT_FOUND"
        assert (await ann("list_news", {"watch": "mine"}))[0] == "NOT_FOUND"
        await store(bob, "Gate code")
        await look(desk)
        await ann("delete_watch", {"id": mine})
        assert len(await list_news(ann, watch=mine)) == 1, "what it told stays"


@pytest.mark.parametrize("face", FACES)
async def test_an_entry_tells_what_becomes_of_it(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *EVERYTHING) as ann:
        await put_update(desk)
        note, better = await store(ann, "Gate code"), await store(ann, "Gate code of May", "It is 12.")
        await watch(ann, "entry", note)
        # It follows what it watches to what supersedes that, also where both happen before it looks.
        edited = (await ann("edit_knowledge", {"id": note, **NOTE}))[1]["id"]
        await look(desk)
        await examine(desk)
        await look(desk)
        again = (await ann("edit_knowledge", {"id": edited, "tags": ["crawlers"]}))[1]["id"]
        await ann("supersede_knowledge", {"oldId": again, "newId": better})
        await ann("withdraw_knowledge", {"id": better})
        await look(desk)
        assert [(each["what"], each["id"], each.get("other")) for each in await list_news(ann)] == [
            ("superseded", note, edited),
            ("impacted", edited, "499"),
            ("superseded", edited, again),
            ("superseded", again, better),
            ("withdrawn", better, None),
        ]
        gone = await store(ann, "Door code")
        await watch(ann, "entry", gone)
        await ann("withdraw_knowledge", {"id": gone})
        await ann("restore_knowledge", {"id": gone})
        await look(desk)
        told = await list_news(ann, after=5)
        assert [each["what"] for each in told] == ["withdrawn", "restored"]


@pytest.mark.parametrize("face", FACES)
async def test_a_product_tells_under_any_of_its_names_and_of_other_days(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *EVERYTHING) as ann:
        await watch(ann, "product", "AKS")
        mine = await watch(ann, "product", "VMs")
        await put_update(desk)
        await put_update(desk, 2, modified="2026-11-02T00:00:00Z")
        later = [{"ring": "Retirement", "year": 2028, "month": "May"}]
        await put_update(desk, 3, availabilities=later)
        await look(desk)
        told = await list_news(ann)
        assert [(each["what"], each["id"], each["watch"]) for each in told] == [
            ("new", "499", mine),
            ("dated", "499", mine),
        ]
        assert (told[1]["daysBefore"], told[1]["daysNow"]) == (["2027-05-01"], ["2028-05-01"])


@pytest.mark.parametrize("face", FACES)
async def test_a_skill_tells_of_new_versions_and_outcomes(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *EVERYTHING) as ann:
        skill = str((await ann("create_skill", {"conversation": CONVERSATION}))[1]["skill_id"])
        await watch(ann, "skill", skill)
        more = CONVERSATION.replace("That worked", "It also took a restart of the app, then that worked")
        await ann("update_skill", {"skill_id": skill, "conversation": more})
        await ann("report_outcome", {"skill_id": skill, "outcome": "resolved"})
        await look(desk)
        assert [(each["what"], each["id"]) for each in await list_news(ann)] == [("changed", skill), ("outcome", skill)]


async def test_a_single_word_finds_what_has_it(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        await watch(ann, "search", "refunds")
        await watch(ann, "search", "refunds of gift cards in May", match="partial")
        note = await store(ann, "What to know", "Refunds of vouchers take a week.")
        await store(ann, "Opening hours in May")
        await look(desk)
        assert [each["id"] for each in await list_news(ann)] == [note]


async def test_what_words_miss_is_told_by_its_meaning_once_it_is_embedded(tmp_path: Path) -> None:
    async with open_own(tmp_path, embedder="local") as desk, call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        base = await desk.get_base()
        await base.semantics.wanted.load()
        await watch(ann, "search", "How do I get my money back?")
        note = await store(
            ann, "Getting a refund", "How customers get refunds: ask within 14 days and the money is returned."
        )
        assert await look(desk) == 0
        await base.indexer.run_once()
        assert await look(desk) == 1
        assert await look(desk) == 0
        [told] = await list_news(ann)
        assert (told["what"], told["id"]) == ("new", note)


async def test_what_is_not_embedded_in_time_is_told_by_its_meaning_later(tmp_path: Path) -> None:
    async with open_own(tmp_path, embedder="local") as desk, call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        base = await desk.get_base()
        await base.semantics.wanted.load()
        await watch(ann, "search", "How do I get my money back?")
        await store(ann, "Getting a refund", "How customers get refunds: ask within 14 days and the money is returned.")
        await base.indexer.run_once()
        base.semantics.question_seconds = 0.0
        assert await look(desk) == 0
        base.semantics.question_seconds = 120.0
        assert await look(desk) == 1


async def test_the_feed_has_each_thing_once_under_its_own_id(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann, open_http(desk, None) as client:
        mine = await watch(ann, "search", "gate code", label="gates")
        await store(ann, "Gate code <1> & more")
        await look(desk)
        assert (await client.get("/watches/news.atom")).status_code == 401
        key = bearer(await make_key(desk, "ann", "acme", EVERYTHING))
        first = await client.get("/watches/news.atom", headers=key)
        assert first.headers["content-type"].startswith("application/atom+xml")
        tag = {"if-none-match": first.headers["etag"]}
        assert (await client.get("/watches/news.atom", headers={**key, **tag})).status_code == 304
        await store(ann, "Gate code 2")
        await look(desk)
        second = await client.get("/watches/news.atom", headers={**key, **tag}, params={"watch": mine})
        ids = [read_ids(answer.text) for answer in (first, second)]
        assert ids[1][1:] == ids[0]
        assert len(set(ids[1])) == 2
        other = bearer(await make_key(desk, "eve", "other", EVERYTHING))
        assert read_ids((await client.get("/watches/news.atom", headers=other)).text) == []
        wrong = await client.get("/watches/news.atom", headers=key, params={"limit": "1"})
        assert wrong.json()["error"]["code"] == "INVALID_INPUT"


def read_ids(feed: str) -> list[str | None]:
    atom = "{http://www.w3.org/2005/Atom}"
    root = fromstring(feed)
    assert root.tag == f"{atom}feed"
    assert all(root.find(f"{atom}{name}") is not None for name in ("id", "title", "updated"))
    return [entry.findtext(f"{atom}id") for entry in root.iter(f"{atom}entry")]


async def test_cursors_read_each_thing_once_and_say_what_is_gone(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        await watch(ann, "search", "gate code")
        ids = [await store(ann, f"Gate code {number}") for number in range(7)]
        await look(desk)
        seen, cursor = list[str](), 0
        while True:
            answer = (await ann("list_news", {"after": cursor, "limit": 3}))[1]
            seen += [each["id"] for each in answer["news"]]
            cursor = answer["cursor"]
            if not answer["hasMore"]:
                break
        assert seen == ids
        assert await list_news(ann, after=cursor) == []
        newest = (await ann("list_news", {"limit": 2}))[1]
        assert ([each["id"] for each in newest["news"]], newest["hasMore"]) == (ids[-2:], False)
        since = (await list_news(ann, after=0))[4]["at"]
        assert [each["id"] for each in await list_news(ann, since=since)] == ids[4:]


async def test_an_agent_has_so_many_watches_and_the_same_only_once(tmp_path: Path) -> None:
    async with (
        open_own(tmp_path, embedder="hashing", watches_agent_quota=2) as desk,
        call_as(desk, "rest", "ann", *EVERYTHING) as ann,
        call_as(desk, "rest", "bob", *EVERYTHING) as bob,
    ):
        one = await watch(ann, "product", "AKS")
        code, same = await ann("create_watch", {"kind": "product", "subject": "AKS"})
        assert (code, same["id"], same["created"]) == ("", one, False)
        await watch(ann, "product", "Azure Functions")
        code, refused = await ann("create_watch", {"kind": "product", "subject": "Key Vault"})
        assert (code, refused["error"]["details"]["used"]) == ("QUOTA_EXCEEDED", 2)
        await watch(bob, "product", "AKS")
        assert (await ann("delete_watch", {"id": one}))[1]["deleted"]
        await watch(ann, "product", "Key Vault")
        listed = (await ann("list_watches", {}))[1]
        assert ([each["subject"] for each in listed["watches"]], listed["most"]) == (
            ["Azure Functions", "Key Vault"],
            2,
        )


@pytest.mark.parametrize("face", FACES)
async def test_nobody_is_told_of_what_they_may_not_read(desk: Desk, face: str) -> None:
    async with (
        call_as(desk, face, "ann", *EVERYTHING) as ann,
        call_as(desk, face, "eve", *EVERYTHING, org="other") as eve,
        call_as(desk, face, "feed", "updates:read") as feed,
    ):
        note = await store(ann, "Vault code 4711")
        for other in (eve, feed):
            assert (await other("create_watch", {"kind": "entry", "subject": note}))[0] == "NOT_FOUND"
            await watch(other, "search", "vault code")
        assert (await feed("create_watch", {"kind": "search", "subject": "x", "toolsets": ["knowledge"]}))[0] == (
            "PERMISSION_DENIED"
        )
        mine = await watch(ann, "search", "vault code")
        await store(ann, "Vault code 4712")
        await put_update(desk, title="Vault code of Azure")
        await look(desk)
        assert len(await list_news(ann)) == 2
        assert [each["toolset"] for each in await list_news(feed)] == ["azure-updates"]
        assert [each["toolset"] for each in await list_news(eve)] == ["azure-updates"]
        for other in (eve, feed):
            assert (await other("delete_watch", {"id": mine}))[0] == "NOT_FOUND"
        # Who may read less than before is shown less.
        async with call_as(desk, face, "ann", "updates:read") as narrowed:
            assert [each["toolset"] for each in await list_news(narrowed)] == ["azure-updates"]


async def test_what_is_erased_leaves_no_news_and_no_watch(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann, call_as(desk, "rest", "root", "admin") as root:
        note = await store(ann, "Gate code")
        await watch(ann, "entry", note)
        await watch(ann, "search", "gate code")
        other = await store(ann, "Gate code in winter")
        await look(desk)
        edited = (await ann("edit_knowledge", {"id": note, "body": "Of May."}))[1]["id"]
        for id in (note, edited):
            await root("erase", {"entry": id})
        await look(desk)
        assert [each["id"] for each in await list_news(ann)] == [other]
        base = (await desk.get_base()).knowledge_base
        kept = await base.store.list_all_metadata(None, 10_000)
        left = [each.key for each in kept if {note, edited} & set(UUID.findall(str(each)))]
        assert [key for key in left if key.kind.startswith("watch")] == []
        await root("erase", {"agent": "ann"})
        kept = await base.store.list_all_metadata(None, 10_000)
        assert [each.key for each in kept if each.key.kind.startswith("watch") and each.value.get("agent")] == []


async def test_what_happened_while_nobody_looked_is_told_and_what_was_before_is_not(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        first = await watch(ann, "search", "gate code")
        await ann("delete_watch", {"id": first})
        await store(ann, "Gate code before")
        await watch(ann, "search", "gate code")
        ids = [await store(ann, f"Gate code {number}") for number in range(3)]
        # A watcher that begins now, as after a restart; and a second one that is late.
        one, other = [choose_watcher(await desk.get_base()) for _ in range(2)]
        assert (await one.run_once(), await other.run_once()) == (3, 0)
        assert [each["id"] for each in await list_news(ann)] == ids


async def test_an_entry_that_expires_is_told_once(desk: Desk) -> None:
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        soon = datetime.now(UTC) + timedelta(hours=1)
        note = await store(ann, "Party", expiresAt=soon.isoformat())
        other = await store(ann, "Party too", expiresAt=soon.isoformat())
        for id in (note, other):
            await watch(ann, "entry", id)
        await ann("withdraw_knowledge", {"id": other})
        watcher = choose_watcher(await desk.get_base())
        assert await watcher.run_once() == 1
        watcher.clock = FixedClock(soon)
        assert (await watcher.run_once(), await watcher.run_once()) == (1, 0)
        assert [(each["what"], each["id"]) for each in await list_news(ann)] == [
            ("withdrawn", other),
            ("expired", note),
        ]


async def test_a_watcher_that_forgets_how_far_it_came_is_caught(desk: Desk) -> None:
    """The planted fault: what is told and how far that goes are no longer committed together."""
    async with call_as(desk, "rest", "ann", *EVERYTHING) as ann:
        await watch(ann, "search", "gate code")
        await store(ann, "Gate code")
        await look(desk)
        base = (await desk.get_base()).knowledge_base
        for org in ("acme",):
            logs = await happenings.read_ends({"main": base.store}, org)
            async with base.store.transaction() as transaction:
                await transaction.remove_metadata([make_progress_key(org, log) for log in logs])
        await look(desk)
        assert len(await list_news(ann)) == 2
