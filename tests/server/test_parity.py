"""One table, one answer: every operation and resource gives the same JSON on every transport."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest
from click.testing import CliRunner
from mcp_types import TextContent, TextResourceContents

from refdesk.app import Desk, open_desk
from refdesk.cli import cli
from refdesk.core.operations import Operation, Resource
from refdesk.factories.toolsets import load_toolsets
from refdesk.server.principals import local_principal
from refdesk.toolsets.azure_updates.records import to_document
from tests.server.conftest import connect, open_http
from tests.server.echo import make_settings

ERAS = ("legacy", "2026-07-28")
FEED = "azure-updates"
NOW = datetime(2026, 3, 1, tzinfo=UTC)

RECORDS: list[dict[str, Any]] = [
    {
        "id": str(500_000 + n),
        "title": f"{words} {n}",
        "description": f"<p>About <b>{words}</b>.</p>",
        "status": status,
        "tags": [tag],
        "products": ["Virtual Machines"],
        "productCategories": ["Compute"],
        "created": (NOW - timedelta(days=n)).isoformat().replace("+00:00", "Z"),
        "modified": (NOW - timedelta(days=n)).isoformat().replace("+00:00", "Z"),
        "availabilities": [{"ring": ring, "year": 2026, "month": "February"}],
    }
    for n, (words, status, tag, ring) in enumerate(
        [
            ("OAuth authentication for machines", "Launched", "Security", "General Availability"),
            ("Machine learning preview", "In preview", "Features", "Preview"),
            ("Older sizes retire", None, "Retirements", "Retirement"),
            ("Keep secrets out of code", "In development", "Security", "Private Preview"),
        ]
    )
]


WRONG: list[dict[str, Any]] = [{}, {"limit": -1}, {"nonsense": True}, {"query": "\x00"}]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    settings = make_settings(tmp_path, store=f"sqlite:///{tmp_path / 'desk.sqlite3'}", tools="all")
    async with open_desk(settings, load_toolsets(), in_background=False) as opened:
        store = (await opened.get_base()).knowledge_base.store
        async with store.transaction() as transaction:
            await transaction.put_documents([to_document(record) for record in RECORDS])
        # As the command line would, before it searches.
        await (await opened.get_base()).indexer.run_once()
        yield opened


def entries() -> list[tuple[Operation, dict[str, Any]]]:
    """Every operation with each of its examples, and with what must be refused."""
    return [
        (operation, dict(arguments))
        for toolset in load_toolsets([FEED])
        for operation in toolset.operations
        for arguments in (*operation.examples, *(WRONG if "{" not in operation.route.path else ()))
    ]


async def ask_mcp(desk: Desk, era: str, operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    async with connect(desk, era, local_principal(desk.settings, desk.toolsets, "tester")) as client:
        result = await client.call_tool(operation.name, arguments)
    [content] = result.content
    assert isinstance(content, TextContent)
    answer = json.loads(content.text)
    assert result.structured_content == (None if result.is_error else answer)
    return answer


async def ask_rest(rest: httpx2.AsyncClient, operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    if operation.route.method == "GET":
        path = operation.route.path.format_map(arguments)
        rest_of_them = {name: value for name, value in arguments.items() if f"{{{name}}}" not in operation.route.path}
        response = await rest.get(path, params=rest_of_them)
    else:
        response = await rest.request(operation.route.method, operation.route.path, json=arguments)
    assert response.is_success is ("error" not in response.json())
    return response.json()


@pytest.mark.parametrize(("operation", "arguments"), entries())
async def test_an_operation_answers_alike_on_every_face(
    desk: Desk, operation: Operation, arguments: dict[str, Any]
) -> None:
    async with open_http(desk, local_principal(desk.settings, desk.toolsets, "tester")) as rest:
        expected = await ask_rest(rest, operation, arguments)
    for era in ERAS:
        assert await ask_mcp(desk, era, operation, arguments) == expected


async def test_there_is_something_to_answer_with(desk: Desk) -> None:
    toolset = desk.toolsets[0]
    assert (await ask_mcp(desk, "legacy", toolset.operations[0], {}))["total"] == len(RECORDS)


@pytest.mark.parametrize("resource", [r for toolset in load_toolsets() for r in toolset.resources], ids=lambda r: r.uri)
async def test_a_resource_reads_alike_on_every_face(desk: Desk, resource: Resource) -> None:
    principal = local_principal(desk.settings, desk.toolsets, "tester")
    async with open_http(desk, principal) as rest:
        expected = (await rest.get(resource.route.path)).json()
    for era in ERAS:
        async with connect(desk, era, principal) as client:
            [contents] = (await client.read_resource(resource.uri)).contents
        assert isinstance(contents, TextResourceContents)
        assert json.loads(contents.text) == expected


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (["machines"], {"query": "machines"}),
        (["machine learning", "--limit", "2"], {"query": "machine learning", "limit": 2}),
        (["--limit", "1", "--offset", "1"], {"limit": 1, "offset": 1}),
        (["--filter", "tags=security", "--filter", "dateFrom=2026-01-01"], None),
        (["secrets", "--semantic"], {"query": "secrets", "semantic": True}),
        (["secrets", "--keyword"], {"query": "secrets", "semantic": False}),
    ],
)
async def test_the_command_line_answers_what_an_agent_gets(
    desk: Desk, command: list[str], arguments: dict[str, Any] | None
) -> None:
    arguments = arguments or {"filters": {"tags": ["security"], "dateFrom": "2026-01-01"}}
    toolset = desk.toolsets[0]
    operation, *_ = toolset.operations
    expected = await ask_mcp(desk, "legacy", operation, {"limit": 10, **arguments})
    environment = {
        "REFDESK_HOME": str(desk.settings.home),
        "REFDESK_STORE": desk.settings.store_url,
        "REFDESK_EMBEDDER": "hashing",
    }
    done = await anyio.to_thread.run_sync(
        lambda: CliRunner().invoke(cli, ["search", "--toolset", FEED, "--json", *command], env=environment)
    )
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    # A cursor holds the instant at which its walk began, and these are two walks.
    assert bool(answer.pop("nextCursor", "")) is bool(expected.pop("nextCursor", ""))
    assert answer == expected
