"""Importing over MCP and REST: what the command does with files, for whoever may write for others."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp_types import TextContent

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from refdesk.server.principals import local_principal
from tests.reliability.worlds import write_export
from tests.server.conftest import connect, open_http
from tests.server.echo import make_settings
from tests.server.test_progress import Seen

ID = "01930000-0000-7000-8000-000000000001"
GRAPH = "\n".join(
    f'{{"type":"entity","name":"Thing {n}","entityType":"kind","observations":["It is {n}."]}}' for n in range(450)
)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    settings = make_settings(tmp_path, tools=("all",))
    async with open_desk(settings, load_toolsets(["knowledge"], settings), in_background=False) as opened:
        yield opened


def everyone(desk: Desk) -> Principal:
    principal = local_principal(desk.settings, desk.toolsets, "tester")
    return replace(principal, scopes=principal.scopes | {"knowledge:write_others"})


async def send(desk: Desk, seen: Seen | None = None, **arguments: object) -> dict[str, Any]:
    async with connect(desk, "legacy", everyone(desk)) as client:
        callback = seen.note if seen is not None else None
        result = await client.call_tool("import_knowledge", arguments, progress_callback=callback)
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content


async def test_entries_keep_their_ids_and_authors_and_twice_is_once(desk: Desk) -> None:
    text = write_export(ID)
    tried = await send(desk, format="jsonl", text=text, dryRun=True)
    assert (tried["added"], tried["dryRun"]) == (1, True)
    assert (await send(desk, format="jsonl", text=text))["added"] == 1
    assert (await send(desk, format="jsonl", text=text))["unchanged"] == 1
    async with open_http(desk, everyone(desk)) as web:
        assert (await web.get(f"/knowledge/{ID}")).json()["author"] == "zoe"
        again = await web.post("/knowledge/import", json={"format": "jsonl", "text": text.replace("Taken", "Other")})
    assert again.json()["conflicts"] == 1
    assert again.json()["problems"][0]["kind"] == "conflict"


async def test_a_long_import_says_how_far_it_is(desk: Desk) -> None:
    seen = Seen()
    report = await send(desk, seen, format="mcp-memory", text=GRAPH)
    assert report["added"] == 450
    numbers = [done for done, _, _ in seen.steps]
    assert len(numbers) >= 3
    assert seen.steps[-1][:2] == (450, 450)


async def test_what_is_no_export_is_refused_whole(desk: Desk) -> None:
    async with connect(desk, "legacy", everyone(desk)) as client:
        for form, text in (("jsonl", "nothing"), ("mem0", "{"), ("csv", "a,b")):
            result = await client.call_tool("import_knowledge", {"format": form, "text": text})
            assert result.is_error
            assert isinstance(result.content[0], TextContent)
            assert "INVALID_INPUT" in result.content[0].text


async def test_who_may_not_write_for_others_may_not_import_what_they_wrote(desk: Desk) -> None:
    async with connect(desk, "legacy", Principal("local", "tester", frozenset({"knowledge:write"}))) as client:
        result = await client.call_tool("import_knowledge", {"format": "jsonl", "text": write_export(ID)})
    assert result.is_error
    assert result.meta is not None
    assert result.meta["refdesk/code"] == "PERMISSION_DENIED"
