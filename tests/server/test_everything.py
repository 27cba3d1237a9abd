"""One search over all toolsets, through every transport; the help desk is an emulator in a process of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp_types import TextContent, TextResourceContents
from pydantic import SecretStr

from refdesk import errors
from refdesk.app import Desk, open_desk
from refdesk.core.context import Context
from refdesk.core.operations import Toolset
from refdesk.core.search.matching import NOTHING_BETTER
from refdesk.core.search.providers import ProviderAnswer, Question, SearchProvider
from refdesk.core.search.semantics import MISSING_MEANING
from refdesk.factories.toolsets import list_names, load_toolsets
from refdesk.model import Principal
from refdesk.server.calls import Caller
from refdesk.server.principals import local_principal
from refdesk.toolsets.azure_updates.records import to_document
from sample_world.salesforce.process import RunningEmulator
from tests.server.conftest import connect, open_http
from tests.server.echo import make_settings
from tests.toolsets.azure_updates.samples import make_record

NAME = "search_everything"
QUESTION = "reset a forgotten password"
ASKED = {"query": QUESTION, "deadlineMs": 10_000}
"""So long that on a busy machine, too, whoever does not hang answers."""

TALK = """\
Customer: I have to reset a forgotten password of my Marrowby account.
Agent: Please open the app and choose Forgotten password, then follow the mail.
Customer: That worked, thank you.
"""
BODY = "Who resets a forgotten password twice within an hour is locked out. " * 20
NOTE = {
    "title": "Reset a forgotten password twice",
    "body": BODY,
    "tags": ["accounts", "sign in"],
}
UPDATE = make_record(
    "77",
    title="Generally Available: Reset a forgotten password in Entra",
    description="<p>Users reset a forgotten password themselves.</p>",
    tags=["Sign In"],
    modified="2026-02-28T15:00:00Z",
)
FAR = "2999-01-01"


@asynccontextmanager
async def open_all(home: Path, emulator: RunningEmulator, **chosen: object) -> AsyncGenerator[Desk]:
    """Yield a desk whose four toolsets each know something about `QUESTION`."""
    settings = make_settings(
        home,
        salesforce_instance_url=emulator.url,
        salesforce_client_id=emulator.client_id,
        salesforce_client_secret=SecretStr(emulator.client_secret),
        **chosen,
    )
    async with open_desk(settings, load_toolsets((), settings), in_background=False) as desk:
        base = await desk.get_base()
        async with base.knowledge_base.store.transaction() as transaction:
            await transaction.put_documents([to_document(UPDATE)])
        await run(desk, "store_knowledge", NOTE)
        await run(desk, "create_skill", {"conversation": TALK, "metadata": {"product_area": "accounts"}})
        for each in base.each():
            await each.indexer.run_once()
        yield desk


@pytest.fixture
async def desk(tmp_path: Path, emulator: RunningEmulator) -> AsyncGenerator[Desk]:
    async with open_all(tmp_path, emulator) as opened:
        yield opened


def get_all(desk: Desk) -> Principal:
    return local_principal(desk.settings, desk.toolsets, "tester")


async def run(desk: Desk, name: str, arguments: Mapping[str, Any], *scopes: str) -> dict[str, Any]:
    [operation] = [each for toolset in desk.toolsets for each in toolset.operations if each.name == name]
    caller = Caller(desk, replace(get_all(desk), scopes=frozenset(scopes)) if scopes else get_all(desk), "test")
    return (await caller.run(operation, arguments)).value


async def ask(desk: Desk, *scopes: str, **arguments: object) -> dict[str, Any]:
    return await run(desk, NAME, {**ASKED, **arguments}, *scopes)


def get_statuses(answer: Mapping[str, Any]) -> dict[str, str]:
    return {line["toolset"]: line["status"] for line in answer["coverage"]}


def get_toolsets(answer: Mapping[str, Any]) -> set[str]:
    return {result["toolset"] for result in answer["results"]}


def get_note(answer: Mapping[str, Any], toolset: str) -> str:
    [note] = [line.get("note", "") for line in answer["coverage"] if line["toolset"] == toolset]
    return note


def without_times(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "coverage": [{**line, "tookMs": 0} for line in answer["coverage"]]}


async def test_all_answer_and_every_face_gives_the_same_list(desk: Desk) -> None:
    expected = without_times(await ask(desk))
    assert get_toolsets(expected) == set(list_names())
    assert get_statuses(expected) == dict.fromkeys(list_names(), "answered")
    async with open_http(desk, get_all(desk)) as rest:
        told = await rest.post("/everything/search", json=ASKED)
    assert (told.status_code, without_times(told.json())) == (200, expected)
    for era in ("legacy", "2026-07-28"):
        async with connect(desk, era, get_all(desk)) as client:
            result = await client.call_tool(NAME, ASKED)
        [content] = result.content
        assert isinstance(content, TextContent)
        assert json.loads(content.text) == result.structured_content
        assert without_times(json.loads(content.text)) == expected


async def test_what_is_about_the_question_comes_before_what_is_not(desk: Desk) -> None:
    answer = await ask(desk, limit=50)
    titles = [result["title"] for result in answer["results"]]
    assert all("orgotten password" in title for title in titles[:4])
    assert {result["toolset"] for result in answer["results"][:4]} == set(list_names())
    scores = [result["score"] for result in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert 0.0 <= scores[-1] < scores[0] <= 1.0
    assert sum(line["hits"] for line in answer["coverage"]) == len(titles)


async def test_results_are_short_and_the_limit_is_that_of_the_whole_list(desk: Desk) -> None:
    everything = (await ask(desk, limit=50))["results"]
    assert 10 < len(everything) <= 50
    assert max(len(result["snippet"]) for result in everything) <= 240
    assert "…" in next(result["snippet"] for result in everything if result["toolset"] == "knowledge")
    assert not {"body", "description", "resolution"} & {key for result in everything for key in result}
    two = (await ask(desk, limit=2))["results"]
    assert len(two) == 2
    assert len(json.dumps((await ask(desk))["results"])) < 10_000


async def test_each_result_says_from_when_and_of_whom_it_is(desk: Desk) -> None:
    for result in (await ask(desk, limit=50))["results"]:
        assert result["freshness"] >= "2024"
        assert result.get("author") == ("tester" if result["toolset"] in ("knowledge", "skills") else None)
        assert ("source" in result) is (result["toolset"] not in ("knowledge", "skills"))


async def test_every_result_is_read_whole_by_what_it_names(desk: Desk) -> None:
    best = {result["toolset"]: result for result in reversed((await ask(desk))["results"])}
    whole = {
        name: json.dumps(await run(desk, result["read"]["tool"], result["read"]["arguments"]))
        for name, result in best.items()
    }
    assert all(best[name]["id"] in text for name, text in whole.items())
    assert BODY in whole["knowledge"]
    assert "## Steps" in whole["skills"]
    async with connect(desk, "legacy", get_all(desk)) as client:
        for name in ("knowledge", "skills"):
            [contents] = (await client.read_resource(best[name]["uri"])).contents
            assert isinstance(contents, TextResourceContents)
            assert best[name]["id"] in contents.text
    assert best["azure-updates"]["uri"].endswith("id=77")


async def test_being_found_among_everything_is_no_use_of_a_skill(desk: Desk) -> None:
    await ask(desk)
    found = await run(desk, "search_skills", {"query": QUESTION})
    assert "(0 uses" in found["matches"][0]["resolution"]


@pytest.mark.parametrize(
    ("filters", "toolsets", "left_out"),
    [
        ({"tags": ["accounts"]}, {"knowledge", "skills"}, {"salesforce-knowledge"}),
        ({"tags": ["Sign_In"]}, {"knowledge", "azure-updates"}, {"salesforce-knowledge"}),
        ({"tags": ["sign-in", "accounts"]}, {"knowledge"}, {"salesforce-knowledge"}),
        ({"tags": ["R&D"]}, set[str](), {"salesforce-knowledge", "knowledge"}),
        ({"since": FAR}, set[str](), set[str]()),
        ({"until": "2001-01-01"}, set[str](), set[str]()),
        ({"since": "2026-02-28", "until": "2026-02-28"}, {"azure-updates"}, set[str]()),
        ({"since": "2026-02-28T15:00:00Z", "until": "2026-02-28T15:00:00Z"}, {"azure-updates"}, set[str]()),
        ({"since": "2026-02-27", "until": "2026-02-28T14:59:59Z"}, set[str](), set[str]()),
        ({"since": "2025-03-02", "until": "2025-03-02"}, {"salesforce-knowledge"}, set[str]()),
    ],
)
async def test_no_result_violates_a_filter(
    desk: Desk, filters: dict[str, Any], toolsets: set[str], left_out: set[str]
) -> None:
    answer = await ask(desk, filters=filters, limit=50)
    assert get_toolsets(answer) == toolsets
    statuses = get_statuses(answer)
    assert {name for name, status in statuses.items() if status == "left_out"} == left_out
    assert all(get_note(answer, name) for name in left_out)
    for result in answer["results"]:
        assert filters.get("since", "")[:10] <= result["freshness"][:10] <= filters.get("until", FAR)[:10]


async def test_filters_never_eat_result_slots(desk: Desk, emulator: RunningEmulator) -> None:
    for number in range(12):
        await run(desk, "store_knowledge", {"title": f"{QUESTION} {number}", "body": QUESTION * 3})
    await run(desk, "store_knowledge", {"title": "Passwords", "body": "They expire.", "tags": ["rare"]})
    tagged = await ask(desk, toolsets=["knowledge"], filters={"tags": ["rare"]}, limit=1)
    assert [result["title"] for result in tagged["results"]] == ["Passwords"]
    # The best articles are older: the period is part of what Salesforce is asked.
    await emulator.forget_requests()
    dated = await ask(desk, toolsets=["salesforce-knowledge"], filters={"since": "2025-10-01"}, limit=1)
    assert len(dated["results"]) == 1
    assert any("LastPublishedDate >= 2025-10-01T00:00:00.000Z" in str(each) for each in await emulator.requests())


async def test_superseded_and_expired_entries_are_not_found(desk: Desk) -> None:
    old = await run(desk, "store_knowledge", {"title": "Parcel lockers open at six", "body": "Since January."})
    new = await run(desk, "store_knowledge", {"title": "Lockers open at eight", "body": "Since May."})
    await run(desk, "supersede_knowledge", {"oldId": old["id"], "newId": new["id"]})
    answer = await run(desk, NAME, {"query": "parcel lockers open at six", "toolsets": ["knowledge"], "limit": 50})
    assert answer["results"][0]["id"] == new["id"]
    assert old["id"] not in json.dumps(answer)


async def test_who_hangs_is_late_and_costs_its_own_results_only(desk: Desk, emulator: RunningEmulator) -> None:
    await ask(desk)
    await emulator.set_faults([{"fault": "hang"}])
    # Salesforce itself would be given up after 15 seconds, and then it had failed.
    answer = await ask(desk, deadlineMs=4_000)
    others = set(list_names()) - {"salesforce-knowledge"}
    assert get_toolsets(answer) == others
    assert get_statuses(answer) == {**dict.fromkeys(others, "answered"), "salesforce-knowledge": "late"}
    assert "deadlineMs" in get_note(answer, "salesforce-knowledge")
    await emulator.set_faults([])
    assert "salesforce-knowledge" in get_toolsets(await ask(desk))


async def test_who_refuses_says_why_and_costs_its_own_results_only(desk: Desk, emulator: RunningEmulator) -> None:
    await emulator.set_usage(15_000)
    answer = await ask(desk)
    assert get_statuses(answer)["salesforce-knowledge"] == "failed"
    assert "allowance" in get_note(answer, "salesforce-knowledge")
    assert len(get_toolsets(answer)) == 3


async def test_a_copy_says_from_when_it_is_and_that_it_was_never_made(desk: Desk) -> None:
    assert "No sync has succeeded" in get_note(await ask(desk), "azure-updates")


async def test_only_those_named_are_asked_and_what_is_not_served_is_said(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    async with open_desk(settings, load_toolsets(["knowledge", "skills"], settings), in_background=False) as desk:
        await run(desk, "store_knowledge", NOTE)
        answer = await ask(desk, toolsets=["salesforce-knowledge", "knowledge", "knowledge"])
        assert list(get_statuses(answer).items()) == [
            ("salesforce-knowledge", "not_served"),
            ("knowledge", "answered"),
        ]
        assert get_toolsets(answer) == {"knowledge"}
        assert get_statuses(await ask(desk)).keys() == {"knowledge", "skills"}
        with pytest.raises(errors.InvalidInputError, match=r"azure-updates.*knowledge.*skills"):
            await ask(desk, toolsets=["astrology"])


async def test_one_toolset_alone_has_its_own_search_only(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    async with open_desk(settings, load_toolsets(["knowledge"], settings), in_background=False) as desk:
        assert [toolset.name for toolset in desk.toolsets] == ["knowledge"]


async def test_who_may_not_read_a_toolset_is_told_so_and_sees_nothing_of_it(desk: Desk) -> None:
    answer = await ask(desk, "knowledge:read", "updates:read")
    assert get_toolsets(answer) == {"knowledge", "azure-updates"}
    statuses = get_statuses(answer)
    assert {name for name, status in statuses.items() if status == "forbidden"} == {"skills", "salesforce-knowledge"}
    assert "skills:read" in get_note(answer, "skills")


async def test_who_may_read_none_is_refused_with_the_scopes(desk: Desk) -> None:
    with pytest.raises(errors.PermissionDeniedError, match="one of the scopes") as refused:
        await ask(desk, "knowledge:write")
    reading = ["articles:read", "knowledge:read", "skills:read", "updates:read"]
    assert refused.value.details == {"missingScopes": reading}
    with pytest.raises(errors.PermissionDeniedError) as refused:
        await ask(desk, "knowledge:read", toolsets=["skills"])
    assert refused.value.details == {"missingScopes": ["skills:read"]}
    writer = replace(get_all(desk), scopes=frozenset({"knowledge:write"}))
    async with open_http(desk, writer) as rest:
        denied = await rest.post("/everything/search", json={"query": "x"})
    assert (denied.status_code, denied.json()["error"]["code"]) == (403, "PERMISSION_DENIED")
    async with connect(desk, "legacy", writer) as client:
        assert NAME not in [tool.name for tool in (await client.list_tools()).tools]
        assert (await client.call_tool(NAME, {"query": "x"})).is_error


async def test_skills_are_asked_in_the_store_where_they_are_kept(tmp_path: Path, emulator: RunningEmulator) -> None:
    main, own = (f"sqlite:///{tmp_path / name}" for name in ("main.sqlite3", "skills.sqlite3"))
    async with open_all(tmp_path, emulator, store=main, skills_store=own) as desk:
        assert get_toolsets(await ask(desk)) == set(list_names())


async def find_nothing(_context: Context, _question: Question) -> ProviderAnswer:
    return ProviderAnswer()


async def break_down(_context: Context, _question: Question) -> ProviderAnswer:
    raise ZeroDivisionError("hunter2")


def make_member(name: str, provider: SearchProvider) -> Toolset:
    return Toolset(name, "A test's own.", (), provider=provider)


async def test_a_bug_in_one_toolset_is_an_incident_and_costs_its_own_results_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = make_settings(tmp_path)
    broken = make_member("skills", SearchProvider("x", frozenset({"skills:read"}), break_down))
    members = (*load_toolsets(["knowledge"], settings), broken)
    async with open_desk(settings, members, in_background=False) as desk:
        await run(desk, "store_knowledge", NOTE)
        answer = await ask(desk, "knowledge:read", "knowledge:write", "skills:read")
    assert get_toolsets(answer) == {"knowledge"}
    assert "incident" in get_note(answer, "skills")
    assert "hunter2" not in json.dumps(answer)
    [logged] = [record for record in caplog.records if record.exc_info]
    assert logged.__dict__["incident"] in get_note(answer, "skills")


async def test_a_desk_closes_although_a_question_is_still_being_asked(tmp_path: Path) -> None:
    settings, ended = make_settings(tmp_path), anyio.Event()

    async def hang(_context: Context, _question: Question) -> ProviderAnswer:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            ended.set()
        return ProviderAnswer()

    scopes = frozenset({"skills:read"})
    members = (
        make_member("skills", SearchProvider("x", scopes, hang)),
        make_member("knowledge", SearchProvider("y", scopes, find_nothing)),
    )
    with anyio.fail_after(120):
        async with open_desk(settings, members, in_background=False) as desk:
            answer = await ask(desk, "skills:read", deadlineMs=100)
        assert get_statuses(answer) == {"skills": "late", "knowledge": "answered"}
        assert ended.is_set()


async def test_an_answer_by_keywords_alone_says_so_and_not_that_nothing_is_known(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    async with open_desk(settings, load_toolsets(("knowledge", "skills"), settings), in_background=False) as desk:
        assert "notice" not in await run(desk, NAME, ASKED)
        await run(desk, "store_knowledge", NOTE)
        for query in ("eclipse of the moon", "twice upon a time"):
            assert (await run(desk, NAME, ASKED | {"query": query}))["notice"] == MISSING_MEANING["missing"]
        assert "notice" not in await run(desk, NAME, ASKED)
        for each in (await desk.get_base()).each():
            await each.indexer.run_once()
        assert (await run(desk, NAME, ASKED | {"query": "twice upon a time"}))["notice"] == NOTHING_BETTER
