"""One org moves to a store where others live: whatever it could ask before, it is answered the same there."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import pytest
from click.testing import Result

from refdesk.app import Desk
from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import SystemClock
from refdesk.core.keeping import erasing, migrating, removing
from refdesk.core.keeping.unfinished import find_unfinished
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing import audit
from refdesk.errors import ConflictError, StoreError
from refdesk.model import Collection, Metadata, MetadataKey
from refdesk.protocols import Store, Transaction
from refdesk.stores.sqlite import open_store
from tests.core.fakes import ScriptedEmbedder
from tests.reliability.delegates import DelegatingStore
from tests.server.conftest import open_http
from tests.server.test_keys import bearer, make_key
from tests.server.test_on_record import Ask, ask_rest, open_own
from tests.stores.samples import NOTES, make_document, put
from tests.test_cli import refdesk
from tests.toolsets.gaps.test_operations import QUESTION, embed, group
from tests.toolsets.impact.test_operations import NOTE, examine
from tests.toolsets.watches.test_operations import CONVERSATION, look, put_update

ORG, OTHERS = "acme", "zenith"
SCOPES = ("knowledge:read", "knowledge:write", "skills:read", "skills:write", "updates:read", "admin")
TOKEN = "0d3b2f6e-8a4e-4c0e-9d0f-5b1f3f0c9a11"
_VARYING = re.compile(r'"(?:search_time_ms|tookMs|times_used)": ?[\d.e-]+|"lastUsedAt": ?"[^"]+"|[0-9]+ uses')
"""What differs whenever one asks again."""


@asynccontextmanager
async def ask_with(desk: Desk, key: str) -> AsyncGenerator[Ask]:
    async with open_http(desk, None) as client:
        client.headers.update(bearer(key))
        yield lambda name, arguments: ask_rest(desk, client, name, arguments)


async def fill(desk: Desk, ask: Ask, name: str) -> dict[str, str]:
    """Do everything that an agent can do and that keeps something; return the ids of what can be asked for."""

    async def do(operation: str, **arguments: object) -> dict[str, Any]:
        code, answer = await ask(operation, arguments)
        assert code == "", answer
        return answer

    watch = await do("create_watch", kind="search", subject="crawlers", label=name)
    task = {"taskId": f"T-{name}", "kind": "produced"}
    note = (await do("store_knowledge", **NOTE, tags=[name], taskRef=task, clientToken=TOKEN))["id"]
    edited = (await do("edit_knowledge", id=note, body=f"{NOTE['body']} {name}"))["id"]
    other = (await do("store_knowledge", title=f"Gate code of {name}", body="The gate code is 12."))["id"]
    third = (await do("store_knowledge", title=f"Gate code of {name}", body="The gate code is 14."))["id"]
    gone = (await do("store_knowledge", title="To withdraw", body="Text."))["id"]
    await do("withdraw_knowledge", id=gone)
    erased = (await do("store_knowledge", title="To erase", body="Text."))["id"]
    await do("erase", entry=erased)
    skill = (await do("create_skill", conversation=CONVERSATION))["skill_id"]
    await do("report_outcome", skill_id=skill, outcome="resolved")
    await do("search_knowledge", query=QUESTION)
    await group(desk)
    await embed(desk)
    await examine(desk)
    await look(desk)
    impacts = (await do("list_impacts"))["impacts"]
    assert [impact["id"] for impact in impacts] == [edited]
    await do("judge_impact", announcement="499", toolset="knowledge", id=edited, verdict="confirm")
    assert (await do("list_gaps"))["gaps"]
    assert (await do("list_cases"))["cases"]
    assert (await do("list_news", after=0))["news"]
    return {"note": edited, "old": note, "other": other, "third": third, "skill": skill, "watch": watch["id"]}


def list_questions(ids: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    notes = [ids[name] for name in ("note", "old", "other", "third")]
    return [
        *(("get_knowledge", {"id": id}) for id in notes),
        *(("list_impacts", {"id": id, "status": "all"}) for id in notes),
        *(("list_cases", {"id": id}) for id in notes),
        ("search_knowledge", {"query": "gate code", "includeSuperseded": True}),
        ("search_knowledge", {"query": "machines that crawl"}),
        ("search_everything", {"query": "crawlers", "deadlineMs": 10_000, "toolsets": ["knowledge", "skills"]}),
        ("list_knowledge", {"includeSuperseded": True}),
        ("list_tags", {}),
        ("list_authors", {}),
        ("list_skills", {}),
        ("get_skill", {"skill_id": ids["skill"]}),
        ("get_skill_history", {"skill_id": ids["skill"]}),
        ("list_outcomes", {"skill_id": ids["skill"]}),
        ("search_skills", {"query": "parcel tracker zebra map"}),
        ("export_skills", {}),
        ("list_watches", {}),
        ("list_news", {"after": 0}),
        ("list_gaps", {"status": "all"}),
        ("show_audit", {}),
        ("verify_audit", {}),
        ("export_audit", {}),
        ("list_keys", {}),
        # A write that is repeated gets the first answer.
        ("store_knowledge", {**NOTE, "tags": [ORG], "taskRef": {"taskId": f"T-{ORG}", "kind": "produced"}}
            | {"clientToken": TOKEN}),
    ]  # fmt: skip


def find_differences(answers: dict[str, str], others: dict[str, str]) -> list[tuple[str, str]]:
    return [(answers[name], others[name]) for name in answers if answers[name] != others[name]]


async def collect(ask: Ask, ids: dict[str, str]) -> dict[str, str]:
    answers: dict[str, str] = {}
    for name, arguments in list_questions(ids):
        answer = json.dumps(await ask(name, arguments), sort_keys=True)
        answers[f"{name} {json.dumps(arguments)}"] = _VARYING.sub("", answer)
    return answers


@asynccontextmanager
async def open_filled(folder: Path, org: str) -> AsyncGenerator[tuple[Desk, str, dict[str, str]]]:
    async with open_own(folder, embedder="hashing", max_org_bytes=10**6) as desk:
        await put_update(desk)
        await examine(desk)
        key = await make_key(desk, "ann", org, SCOPES)
        async with ask_with(desk, key) as ask:
            yield desk, key, await fill(desk, ask, org)


async def move(home: Path, *more: str) -> Result:
    source, target = (f"sqlite:///{home / name / 'desk.sqlite3'}" for name in ("old", "new"))
    return await run(home, "migrate", "--from", source, "--to", target, "--org", ORG, *more, "--json")


async def run(home: Path, *arguments: str) -> Result:
    return await anyio.to_thread.run_sync(refdesk, home, arguments)


@asynccontextmanager
async def open_both(home: Path) -> AsyncGenerator[tuple[Store, Store]]:
    stores = (home / name / "desk.sqlite3" for name in ("old", "new"))
    async with open_store(next(stores)) as old, open_store(next(stores)) as new:
        yield old, new


async def list_kinds(store: Store, org: str) -> set[str]:
    return {record.key.kind for record in await store.list_all_metadata(None, 10_000) if record.key.org == org}


async def settle(home: Path) -> tuple[str, dict[str, str], dict[str, str], str, dict[str, str]]:
    """Fill both stores; return key, ids and answers of the org that moves, key and answers of the one that is there."""
    async with open_filled(home / "old", ORG) as (desk, key, ids), ask_with(desk, key) as ask:
        answers = await collect(ask, ids)
    async with open_filled(home / "new", OTHERS) as (desk, others_key, others_ids), ask_with(desk, others_key) as ask:
        # The logs of what is the same for all differ in length.
        for number in range(500, 505):
            await put_update(desk, id=str(number))
        await examine(desk)
        await look(desk)
        return key, ids, answers, others_key, await collect(ask, others_ids) | {"ids": json.dumps(others_ids)}


async def test_an_org_that_moved_is_answered_as_before_and_so_are_the_others(tmp_path: Path) -> None:
    key, ids, answers, others_key, others_answers = await settle(tmp_path)
    async with open_both(tmp_path) as (old, _):
        kinds = await list_kinds(old, ORG)
    assert kinds >= {
        "chain",
        "gap_asked",
        "idempotency",
        "impact",
        "impact_case",
        "quota",
        "size",
        "watch",
        "watch_news",
    }
    done = await move(tmp_path)
    assert done.exit_code == 0, done.output
    async with open_own(tmp_path / "new", embedder="hashing", max_org_bytes=10**6) as desk:
        async with ask_with(desk, key) as ask:
            assert find_differences(await collect(ask, ids), answers) == []
            # What was said before it came is not said again; what comes is, once.
            assert await look(desk) == 0
            await ask("store_knowledge", {"title": "Crawlers in May", "body": "crawlers are moved."})
            assert await look(desk) == 1
        async with ask_with(desk, others_key) as ask:
            others_ids = json.loads(others_answers.pop("ids"))
            assert find_differences(await collect(ask, others_ids), others_answers) == []
    async with open_both(tmp_path) as (old, new):
        assert await list_kinds(new, ORG) >= kinds
    again = await move(tmp_path)
    assert (again.exit_code, "The target holds of the org" in again.output) == (2, True), again.output


async def test_an_org_that_is_there_already_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    for name in ("old", "new"):
        async with open_filled(tmp_path / name, ORG):
            pass
    async with open_both(tmp_path) as (_, new):
        before = await new.list_all_metadata(None, 10_000)
    refused = await move(tmp_path)
    assert (refused.exit_code, "something of the org acme already" in refused.output) == (2, True), refused.output
    async with open_both(tmp_path) as (_, new):
        assert await new.list_all_metadata(None, 10_000) == before


async def test_an_org_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    async with open_filled(tmp_path / "old", OTHERS), open_own(tmp_path / "new"):
        pass
    refused = await move(tmp_path)
    assert (refused.exit_code, "nothing of the org acme" in refused.output) == (2, True), refused.output
    for more in (["--org", "*"], ["--remove"]):
        urls = ["--from", f"sqlite:///{tmp_path / 'a'}", "--to", f"sqlite:///{tmp_path / 'b'}"]
        assert (await run(tmp_path, "migrate", *urls, *more)).exit_code == 2


async def test_an_org_is_removed_from_where_it_was_and_the_others_stay(tmp_path: Path) -> None:
    async with open_filled(tmp_path / "old", OTHERS) as (desk, others_key, others_ids):
        key = await make_key(desk, "ann", ORG, SCOPES)
        async with ask_with(desk, key) as ask:
            ids = await fill(desk, ask, ORG)
            answers = await collect(ask, ids)
        async with ask_with(desk, others_key) as ask:
            others = await collect(ask, others_ids)
    async with open_own(tmp_path / "new"):
        pass
    done = await move(tmp_path, "--remove")
    assert done.exit_code == 0, done.output
    async with open_own(tmp_path / "new", embedder="hashing") as desk, ask_with(desk, key) as ask:
        assert find_differences(await collect(ask, ids), answers) == []
    async with open_own(tmp_path / "old", embedder="hashing") as desk:
        async with ask_with(desk, key) as ask:
            assert (await ask("list_knowledge", {}))[0] == "UNAUTHENTICATED"
        async with ask_with(desk, others_key) as ask:
            assert find_differences(await collect(ask, others_ids), others) == []
    async with open_both(tmp_path) as (old, _):
        kept = [record for record in await old.list_all_metadata(None, 10_000) if ORG in (record.key.org, record.value)]
        assert (kept, await erasing.find(old, erasing.Erasable(ORG))) == ([], {})
        last = await old.get_last_audit(ORG)
        assert last is not None
        assert (last.act["action"], (await audit.verify(old, ORG)).broken) == ("migrate", None)
    # Nothing comes back, and doing it again is nothing to do.
    assert (await move(tmp_path, "--remove")).exit_code == 0


async def test_what_is_written_after_the_comparison_is_not_removed(tmp_path: Path) -> None:
    actor = audit.Actor(ORG, "ann", "test")
    part = migrating.Part(org=ORG)
    async with open_store(tmp_path / "old") as old, open_store(tmp_path / "new") as new:
        clock = SystemClock()
        watched = audit.watch(old, clock, actor, "store_knowledge")
        await put(watched, make_document("a"))
        removal = await removing.begin(old, [(new, part)], clock, actor)
        await migrating.migrate(old, new, "here", part=part)
        await put(watched, make_document("late"))
        with pytest.raises(ConflictError, match="written to while"):
            await removal.run()
        assert sorted(await old.get_digests(NOTES)) == ["a", "late"]
        with pytest.raises(ConflictError, match="written to while"):
            await removing.begin(old, [(new, part)], clock, actor)


async def test_a_removal_that_was_stopped_goes_on(tmp_path: Path) -> None:
    actor = audit.Actor(ORG, "ann", "test")
    part, clock = migrating.Part(org=ORG), SystemClock()
    async with open_store(tmp_path / "old") as old, open_store(tmp_path / "new") as new:
        await put(audit.watch(old, clock, actor, "store_knowledge"), *[make_document(f"d{n}") for n in range(250)])
        for commits in (1, 2, 3):
            failing = cast("Store", Failing(old, commits))
            removal = await removing.begin(failing, [(new, part)], clock, actor)
            assert (await migrating.migrate(old, new, "here", part=part)).documents == 250
            with pytest.raises(StoreError):
                await removal.run()
        await (await removing.begin(old, [(new, part)], clock, actor)).run()
        assert await old.get_digests(NOTES) == {}
        assert len(await new.get_digests(NOTES)) == 250
        assert (await audit.verify(old, ORG)).broken is None


async def test_of_an_org_that_goes_to_two_stores_nothing_is_removed_before_both_are_compared(tmp_path: Path) -> None:
    actor, clock, own = audit.Actor(ORG, "ann", "test"), SystemClock(), frozenset({"skills"})
    parts = [migrating.Part(own, is_rest=is_rest, org=ORG) for is_rest in (True, False)]
    async with AsyncExitStack() as stack:
        names = ("old", "new", "skills")
        old, *targets = [await stack.enter_async_context(open_store(tmp_path / name)) for name in names]
        places = list(zip(targets, parts, strict=True))
        samples = [make_document("a"), make_document("b", collection=Collection(ORG, "skills"))]
        await put(audit.watch(old, clock, actor, "store_knowledge"), *samples)
        stopped = 0
        for commits in range(1, 100):
            removal = await removing.begin(cast("Store", Failing(old, commits)), places, clock, actor)
            for target, part in places:
                assert (await migrating.migrate(old, target, "here", part=part)).documents == 1
            try:
                await removal.run()
                break
            except StoreError:
                stopped += 1
                assert ["not all removed" in each.found for new in targets for each in await find_unfinished(new)] == [
                    True,
                    True,
                ]
        assert stopped > len(places), "it was stopped in each of them"
        assert await erasing.find(old, erasing.Erasable(ORG)) == {}
        assert [each for new in targets for each in await find_unfinished(new)] == []
        assert (await audit.verify(old, ORG)).broken is None


async def test_a_server_of_the_target_may_work_on_what_arrives_by_a_model_of_its_own(tmp_path: Path) -> None:
    clock, part = SystemClock(), migrating.Part(org=ORG, worked_on=("impact",))
    ours, theirs = ScriptedEmbedder("ours"), ScriptedEmbedder("theirs", poison=frozenset({"venom"}))
    pending, quota = (Metadata(MetadataKey(ORG, kind, "d1"), {"n": 1}) for kind in ("impact_pending", "quota"))
    async with open_store(tmp_path / "old") as old, open_store(tmp_path / "new") as new:
        serving = Indexer(new, Semantics(new, theirs), clock)
        await put(new, make_document("x", collection=Collection(OTHERS, "notes")))
        await serving.run_once()
        await put(old, make_document("d3", "venom"), *[make_document(f"d{number}") for number in (1, 2, 4, 5)])
        await Indexer(old, Semantics(old, ours), clock).run_once()
        async with old.transaction() as transaction:
            await transaction.put_metadata([pending, quota])

        await migrating.copy(old, new, "here", part=part)
        await serving.run_once()
        async with new.transaction() as transaction:
            await transaction.remove_metadata([pending.key])
        assert [failure.id for failure in await serving.list_failures()] == ["d3"]
        moved = await migrating.migrate(old, new, "here", part=part)
        assert (moved.documents, moved.records) == (5, 1)
        counts = {each.collection.org: dict(each.embedded) for each in await new.get_statistics()}
        assert counts == {ORG: {"theirs": 4}, OTHERS: {"theirs": 1}}, "no vector that nobody would search by"

        async with new.transaction() as transaction:
            await transaction.put_metadata([replace(quota, value={"n": 2})])
        with pytest.raises(ConflictError, match="The target holds of the org"):
            await migrating.migrate(old, new, "here", part=part)


async def test_vectors_of_the_model_that_the_target_searches_by_move_along(tmp_path: Path) -> None:
    clock, part, model = SystemClock(), migrating.Part(org=ORG), ScriptedEmbedder("same")
    async with open_store(tmp_path / "old") as old, open_store(tmp_path / "new") as new:
        for store, org in ((old, ORG), (new, OTHERS)):
            await put(store, make_document("a", collection=Collection(org, "notes")))
            await Indexer(store, Semantics(store, model), clock).run_once()
        assert (await migrating.migrate(old, new, "here", part=part)).vectors == 1
        assert await Indexer(new, Semantics(new, model), clock).run_once() == 0


class Failing(DelegatingStore):
    """A store whose transactions fail from some one on."""

    def __init__(self, inner: Store, commits: int) -> None:
        super().__init__(inner)
        self._left = commits

    def wrap(self, transaction: Transaction) -> Transaction:
        self._left -= 1
        if self._left <= 0:
            raise StoreError("The engine is gone.")
        return transaction
