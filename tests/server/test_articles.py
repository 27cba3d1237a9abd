"""The help desk's articles through every transport, live from an emulator of Salesforce in a process of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from click.testing import CliRunner, Result
from mcp_types import TextContent
from pydantic import SecretStr

from refdesk import errors
from refdesk.app import Desk, open_desk
from refdesk.cli import cli
from refdesk.factories.toolsets import load_toolsets
from refdesk.server.principals import local_principal
from refdesk.server.rest import WARNING
from refdesk.toolsets.salesforce_knowledge.operations import ERROR_FORMAT
from sample_world.salesforce.process import RunningEmulator
from tests.server.conftest import connect, open_http
from tests.server.echo import make_settings

NAME = "salesforce-knowledge"
SEARCH, GET = "search_articles", "get_article_by_id"
CODES = {
    *("NOT_FOUND", "PERMISSION_DENIED", "RATE_LIMIT_WARNING", "RATE_LIMIT_EXCEEDED"),
    *("INVALID_INPUT", "SF_API_ERROR", "AUTH_ERROR", "KNOWLEDGE_DISABLED"),
}


@pytest.fixture
async def desk(tmp_path: Path, emulator: RunningEmulator) -> AsyncGenerator[Desk]:
    settings = make_settings(
        tmp_path,
        salesforce_instance_url=emulator.url,
        salesforce_client_id=emulator.client_id,
        salesforce_client_secret=SecretStr(emulator.client_secret),
    )
    async with open_desk(settings, load_toolsets([NAME], settings), in_background=False) as opened:
        yield opened


def environment(emulator: RunningEmulator, home: Path) -> dict[str, str]:
    return {
        "REFDESK_HOME": str(home),
        "REFDESK_EMBEDDER": "hashing",
        **emulator.settings,
    }


async def ask(desk: Desk, name: str, arguments: dict[str, Any], era: str = "legacy") -> dict[str, Any]:
    async with connect(desk, era, local_principal(desk.settings, desk.toolsets, "tester")) as client:
        result = await client.call_tool(name, arguments)
    [content] = result.content
    assert isinstance(content, TextContent)
    answer = json.loads(content.text)
    assert result.structured_content == (None if result.is_error else answer)
    return {"answer": answer, "meta": result.model_dump(mode="json", by_alias=True).get("_meta") or {}}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (SEARCH, {"query": "reset password"}),
        (SEARCH, {"query": "Passwort", "language": "de", "limit": 3}),
        (SEARCH, {"query": "zxqvw"}),
        (SEARCH, {}),
        (SEARCH, {"query": "x", "limit": 26}),
        (SEARCH, {"query": "router", "sort": "new"}),
        (GET, {"article_id": "ka05g0000004MoLAAU"}),
        (GET, {"article_id": "ka05g0000009999"}),
        (GET, {"article_id": "nonsense"}),
    ],
)
async def test_a_question_is_answered_alike_on_every_face(desk: Desk, name: str, arguments: dict[str, Any]) -> None:
    [operation] = [each for each in desk.toolsets[0].operations if each.name == name]
    async with open_http(desk, local_principal(desk.settings, desk.toolsets, "tester")) as rest:
        path = operation.route.path.replace("{article_id}", str(arguments.get("article_id")))
        is_post = operation.route.method == "POST"
        expected = (await (rest.post(path, json=arguments) if is_post else rest.get(path))).json()
    for era in ("legacy", "2026-07-28"):
        assert (await ask(desk, name, arguments, era))["answer"] == expected


async def run(arguments: list[str], variables: dict[str, str]) -> Result:
    return await anyio.to_thread.run_sync(lambda: CliRunner().invoke(cli, arguments, env=variables))


async def test_the_command_line_answers_what_an_agent_gets(
    desk: Desk, emulator: RunningEmulator, tmp_path: Path
) -> None:
    expected = (await ask(desk, SEARCH, {"query": "reset password", "limit": 10}))["answer"]
    variables = environment(emulator, tmp_path)
    found = await run(["search", "--toolset", NAME, "--json", "reset", "password"], variables)
    assert json.loads(found.stdout) == expected
    id = expected["articles"][0]["id"]
    shown = await run(["articles", "show", "--json", id], variables)
    assert json.loads(shown.stdout) == (await ask(desk, GET, {"article_id": id}))["answer"]
    missing = await run(["articles", "show", "ka05g0000009999"], variables)
    assert (missing.exit_code, missing.stderr.startswith("Error: There is no published article")) == (2, True)


async def test_a_nearly_used_up_allowance_goes_beside_the_answer(
    desk: Desk, emulator: RunningEmulator, tmp_path: Path
) -> None:
    assert "refdesk/warnings" not in (await ask(desk, SEARCH, {"query": "reset password"}))["meta"]
    await emulator.set_usage(12_500)
    told = await ask(desk, SEARCH, {"query": "reset password"})
    assert told["answer"].keys() == {"articles", "total_count", "search_method"}
    [warning] = told["meta"]["refdesk/warnings"]
    assert warning["code"] == "RATE_LIMIT_WARNING"
    async with open_http(desk, local_principal(desk.settings, desk.toolsets, "tester")) as rest:
        answer = await rest.post("/articles/search", json={"query": "reset password"})
    assert (answer.status_code, answer.headers[WARNING].startswith("RATE_LIMIT_WARNING: ")) == (200, True)
    found = await run(["search", "--toolset", NAME, "reset", "password"], environment(emulator, tmp_path))
    assert "RATE_LIMIT_WARNING" in found.stderr


async def test_errors_of_the_faces_have_the_codes_of_the_contract(desk: Desk, emulator: RunningEmulator) -> None:
    async with open_http(desk, None) as rest:
        assert (await rest.post("/articles/search", json={})).json()["error"]["code"] == "AUTH_ERROR"
        assert (await rest.get("/articles/search")).json()["error"]["code"] == "AUTH_ERROR"
        # Where every toolset that is served has one form of errors, whatever is at no address has it, too.
        assert (await rest.get("/elsewhere")).json()["error"]["code"] == "AUTH_ERROR"
    principal = local_principal(desk.settings, desk.toolsets, "tester")
    async with open_http(desk, principal) as rest:
        large = await rest.post("/articles/search", json={"query": "x" * 2_000_000})
        assert (large.status_code, large.json()["error"]["code"]) == (413, "INVALID_INPUT")
        await emulator.set_usage(15_000)
        spent = await rest.post("/articles/search", json={"query": "reset password"})
    assert (spent.status_code, spent.json()["error"]["code"]) == (429, "RATE_LIMIT_EXCEEDED")
    assert int(spent.headers["retry-after"]) >= 1


def test_every_error_of_refdesks_own_goes_under_one_of_the_eight_codes() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.RefdeskError)]
    assert len(kinds) > 10
    assert {ERROR_FORMAT.name(kind.code) for kind in kinds} <= CODES


async def test_health_tells_what_kept_the_help_desk_from_answering(desk: Desk, emulator: RunningEmulator) -> None:
    assert (await desk.get_health()).toolsets[NAME].problem is None
    await emulator.set_usage(15_000)
    await ask(desk, SEARCH, {"query": "reset password"})
    health = await desk.get_health()
    assert health.status == "degraded"
    assert "allowance" in (health.toolsets[NAME].problem or "")


async def test_other_toolsets_answer_while_salesforce_hangs(emulator: RunningEmulator, tmp_path: Path) -> None:
    settings = make_settings(
        tmp_path,
        salesforce_instance_url=emulator.url,
        salesforce_access_token=SecretStr(emulator.access_token),
        salesforce_timeout_seconds=300,
        request_timeout_seconds=300,
    )
    async with open_desk(settings, load_toolsets((), settings), in_background=False) as desk:
        await emulator.set_faults([{"fault": "hang"}])
        await emulator.forget_requests()
        done, found = anyio.Event(), dict[str, Any]()

        async def ask_salesforce() -> None:
            await ask(desk, SEARCH, {"query": "reset password"})
            done.set()

        async with anyio.create_task_group() as group:
            group.start_soon(ask_salesforce)
            with anyio.fail_after(120):
                while not await emulator.requests():
                    await anyio.lowlevel.checkpoint()
            found = await ask(desk, "search_knowledge", {"query": "anything"})
            assert not done.is_set()
            group.cancel_scope.cancel()
    assert found["answer"]["results"] == []


def test_the_help_desk_is_served_when_it_is_configured_or_asked_for(tmp_path: Path) -> None:
    without = make_settings(tmp_path)
    there = make_settings(tmp_path, salesforce_instance_url="https://example.my.salesforce.com")
    assert NAME not in [toolset.name for toolset in load_toolsets((), without)]
    assert NAME in [toolset.name for toolset in load_toolsets((), there)]
    assert [toolset.name for toolset in load_toolsets([NAME], without)] == [NAME]


async def test_a_desk_without_an_org_says_what_to_set(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    async with open_desk(settings, load_toolsets([NAME], settings), in_background=False) as desk:
        error = (await ask(desk, SEARCH, {"query": "reset password"}))["answer"]["error"]
    assert error["code"] == "AUTH_ERROR"
    assert "REFDESK_SALESFORCE_INSTANCE_URL" in error["message"]


async def test_the_doctor_walks_every_step_of_connecting(emulator: RunningEmulator, tmp_path: Path) -> None:
    variables = {**environment(emulator, tmp_path), "REFDESK_AZURE_UPDATES_URL": "http://127.0.0.1:9/feed"}
    checks = json.loads((await run(["doctor", "--json"], variables)).stdout)["checks"]
    steps = [check for check in checks if check["name"].startswith(("salesforce", "sf "))]
    assert [step["status"] for step in steps] == ["ok"] * 7
    variables["REFDESK_SALESFORCE_CLIENT_SECRET"] = "wrong"
    done = await run(["doctor", "--json"], variables)
    failed = [check for check in json.loads(done.stdout)["checks"] if check["status"] == "fail"]
    assert (done.exit_code, [check["name"] for check in failed]) == (1, ["sf sign-in"])
    assert "wrong" not in done.stdout
