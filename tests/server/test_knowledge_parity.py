"""The same conversation with the knowledge toolset, held on every transport, has the same answers."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import httpx2
import pytest
from click.testing import CliRunner
from mcp_types import TextContent, TextResourceContents

from refdesk.app import Desk, open_desk
from refdesk.cli import cli
from refdesk.core.operations import Operation
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from tests.server.conftest import connect, open_http
from tests.server.echo import make_settings

PRINCIPAL = Principal("acme", "tester", frozenset({"knowledge:read", "knowledge:write"}))
TOKEN = "0190163d-8694-739b-aea5-966c26f8ad91"
NOBODY = "01930000-0000-7000-8000-000000000001"
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")

Answer: TypeAlias = dict[str, Any]
Ask: TypeAlias = Callable[[Operation, Answer], Awaitable[Answer]]

FIRST = {"title": "Refund limit is 500 EUR", "body": "Ask a lead.\r\nÄ 😀", "tags": ["Refund Policy"], "confidence": 95}
SECOND = {"title": "Refund limit is 600 EUR", "body": "Since May.", "expiresAt": "2999-01-01T00:00:00Z"}

CONVERSATION: list[tuple[str, Answer]] = [
    ("store_knowledge", {**FIRST, "taskRef": {"taskId": "T-1", "kind": "produced"}}),
    ("store_knowledge", {**SECOND, "clientToken": TOKEN}),
    ("store_knowledge", {**SECOND, "clientToken": TOKEN}),
    ("store_knowledge", {**FIRST, "clientToken": TOKEN}),
    ("store_knowledge", {"title": " ", "body": "b"}),
    ("store_knowledge", {"title": "t", "body": "b", "expiresAt": "2001-01-01T00:00:00Z"}),
    ("store_knowledge", {"title": "t", "body": "b", "confidence": 101}),
    ("store_knowledge", {"title": "t", "body": "b", "tags": ["a--b"]}),
    ("search_knowledge", {"query": "refund limit", "limit": 10}),
    ("supersede_knowledge", {"oldId": "$0", "newId": "$1"}),
    ("supersede_knowledge", {"oldId": "$0", "newId": "$1"}),
    ("supersede_knowledge", {"oldId": "$1", "newId": "$0"}),
    ("supersede_knowledge", {"oldId": "$1", "newId": "$1"}),
    ("supersede_knowledge", {"oldId": "$1", "newId": NOBODY}),
    ("search_knowledge", {"query": "500", "limit": 10}),
    ("search_knowledge", {"query": "500", "limit": 10, "includeSuperseded": True, "tags": ["refund policy"]}),
    ("search_knowledge", {"query": "limit", "limit": 10, "minScore": 2}),
    ("search_knowledge", {"query": "a\x00b", "limit": 10}),
    ("get_knowledge", {"id": "$0"}),
    ("get_knowledge", {"id": "$1"}),
    ("get_knowledge", {"id": NOBODY}),
    ("get_knowledge", {"id": "nonsense"}),
]


async def hold(ask: Ask) -> list[Answer]:
    """Return the answers of the conversation, with ids and instants replaced by which one it is."""
    [toolset] = load_toolsets(["knowledge"])
    operations = {operation.name: operation for operation in toolset.operations}
    ids: list[str] = []
    answers: list[Answer] = []
    for name, arguments in CONVERSATION:
        given = {key: ids[int(value[1:])] if str(value).startswith("$") else value for key, value in arguments.items()}
        answer = await ask(operations[name], given)
        if name == "store_knowledge" and "id" in answer and not answer["replayed"]:
            ids.append(answer["id"])
        answers.append(answer)
    return json.loads(anonymise(json.dumps(answers)))


def anonymise(text: str) -> str:
    known: dict[str, str] = {NOBODY: NOBODY}
    text = UUID.sub(lambda match: known.setdefault(match.group(), f"id {len(known)}"), text)
    return INSTANT.sub(lambda match: match.group() if match.group().startswith("2999") else "instant", text)


@asynccontextmanager
async def open_new(home: Path) -> AsyncGenerator[Desk]:
    await anyio.Path(home).mkdir()
    settings = make_settings(home, store=f"sqlite:///{home / 'desk.sqlite3'}", org="acme", agent="tester")
    async with open_desk(settings, load_toolsets(["knowledge"]), in_background=False) as desk:
        yield desk


async def embed(desk: Desk, operation: Operation) -> None:
    """Do before a search what the command line does, beside which nothing works in the background."""
    if operation.name == "search_knowledge":
        await (await desk.get_base()).indexer.run_once()


async def hold_over_rest(home: Path) -> list[Answer]:
    async with open_new(home) as desk, open_http(desk, PRINCIPAL) as rest:

        async def ask(operation: Operation, arguments: Answer) -> Answer:
            await embed(desk, operation)
            names = re.findall(r"\{(\w+)\}", operation.route.path)
            path = operation.route.path.format(**{name: arguments[name] for name in names})
            body = {name: value for name, value in arguments.items() if name not in names}
            response = await rest.request(operation.route.method, path, json=body if body else None)
            assert response.is_success is ("error" not in response.json())
            return response.json()

        return await hold(ask)


async def hold_over_mcp(home: Path, era: str) -> list[Answer]:
    async with open_new(home) as desk, connect(desk, era, PRINCIPAL) as client:

        async def ask(operation: Operation, arguments: Answer) -> Answer:
            await embed(desk, operation)
            result = await client.call_tool(operation.name, arguments)
            [content] = result.content
            assert isinstance(content, TextContent)
            assert result.structured_content == (None if result.is_error else json.loads(content.text))
            return json.loads(content.text)

        return await hold(ask)


async def hold_on_the_command_line(home: Path) -> list[Answer]:
    environment = {
        "REFDESK_HOME": str(home),
        "REFDESK_STORE": f"sqlite:///{home / 'desk.sqlite3'}",
        "REFDESK_EMBEDDER": "hashing",
        "REFDESK_ORG": "acme",
        "REFDESK_AGENT": "tester",
    }

    async def ask(operation: Operation, arguments: Answer) -> Answer:
        command = to_command(operation.name, arguments)
        done = await anyio.to_thread.run_sync(lambda: CliRunner().invoke(cli, command, env=environment))
        if done.exit_code == 0:
            return json.loads(done.stdout)
        assert done.exit_code == 2
        return {"error": done.stderr.rstrip().removeprefix("Error: ")}

    return await hold(ask)


OPTIONS = {"expiresAt": "--expires-at", "clientToken": "--client-token"}


def to_command(name: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the command that says the same."""
    match name:
        case "store_knowledge":
            options = [part for tag in arguments.get("tags", []) for part in ("--tag", tag)]
            task = arguments.get("taskRef")
            options += ["--task", task["taskId"], "--task-kind", task["kind"]] if task else []
            for key in ("title", "body", "confidence", "expiresAt", "clientToken"):
                if key in arguments:
                    options += [OPTIONS.get(key, f"--{key}"), str(arguments[key])]
            return ["knowledge", "store", "--json", *options]
        case "search_knowledge":
            filters = {key: value for key, value in arguments.items() if key not in ("query", "limit")}
            pairs = [
                f"{key}={each}" for key, value in filters.items() for each in (value if key == "tags" else [value])
            ]
            options = [part for pair in pairs for part in ("--filter", pair)]
            return ["search", "--toolset", "knowledge", "--json", *options, arguments["query"]]
        case "supersede_knowledge":
            return ["knowledge", "supersede", "--json", arguments["oldId"], arguments["newId"]]
        case _:
            return ["knowledge", "get", "--json", arguments["id"]]


async def test_every_face_gives_the_same_answers(tmp_path: Path) -> None:
    over_rest = await hold_over_rest(tmp_path / "rest")
    assert await hold_over_mcp(tmp_path / "legacy", "legacy") == over_rest
    assert await hold_over_mcp(tmp_path / "modern", "2026-07-28") == over_rest
    on_the_line = await hold_on_the_command_line(tmp_path / "line")
    # The command line itself refuses what is out of an option's range.
    for told, said in zip(over_rest, on_the_line, strict=True):
        if "error" not in told:
            assert said == told
        elif "Usage:" not in said["error"]:
            assert said["error"] == told["error"]["message"]


async def test_the_conversation_has_answers_and_errors_of_every_kind(tmp_path: Path) -> None:
    answers = await hold_over_rest(tmp_path / "rest")
    codes = {answer["error"]["code"] for answer in answers if "error" in answer}
    assert codes == {"INVALID_INPUT", "NOT_FOUND", "CONFLICT"}
    assert [len(answer["results"]) for answer in answers if "results" in answer] == [2, 1, 1]
    assert answers[2] == {**answers[1], "replayed": True}
    assert answers[14]["results"][0]["matchedVia"] == answers[18]["id"]
    assert [member["id"] for member in answers[19]["chain"]] == [answers[18]["id"], answers[19]["id"]]
    assert answers[18]["taskRefs"] == [{"taskId": "T-1", "kind": "produced"}]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_an_address_reads_what_the_tool_reads(tmp_path: Path, era: str) -> None:
    async with open_new(tmp_path / "home") as desk, connect(desk, era, PRINCIPAL) as client:
        stored = (await client.call_tool("store_knowledge", FIRST)).structured_content
        assert stored is not None
        entry = (await client.call_tool("get_knowledge", {"id": stored["id"]})).structured_content
        [contents] = (await client.read_resource(f"knowledge://{stored['id']}")).contents
    assert isinstance(contents, TextResourceContents)
    assert json.loads(contents.text) == entry


async def test_search_and_get_take_query_parameters_alike(tmp_path: Path) -> None:
    async with open_new(tmp_path / "home") as desk, open_http(desk, PRINCIPAL) as rest:
        id = (await rest.post("/knowledge", json=FIRST)).json()["id"]
        assert (await rest.get(f"/knowledge/{id}")).json()["id"] == id
        refused: httpx2.Response = await rest.get(f"/knowledge/{id}?chain=false")
        assert refused.status_code == 400
        clash = await rest.post(f"/knowledge/{id}/supersede", json={"oldId": NOBODY, "newId": NOBODY})
        assert (clash.status_code, "`oldId`" in clash.text) == (400, True)
