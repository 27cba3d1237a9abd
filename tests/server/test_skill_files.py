"""The Skills extension: what hosts list, verify and read, bound to the caller's org and scopes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PaginatedRequestParams, TextResourceContents

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from refdesk.server.skill_files import SkillFiles
from tests.acceptance.processes import ENVELOPE
from tests.server.conftest import connect, open_http
from tests.server.echo import make_settings

READER = Principal("local", "ann", frozenset({"skills:read"}))
WRITER = Principal("local", "ann", frozenset({"skills:read", "skills:write"}))
MODERN = "2026-07-28"
TOPICS = ("The toaster smokes.", "The kettle hums.", "The fridge is warm.")


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_desk(make_settings(tmp_path), load_toolsets(["skills"]), in_background=False) as opened:
        async with connect(opened, MODERN, WRITER) as client:
            for topic in TOPICS:
                conversation = f"Customer: {topic}\nAgent: Please unplug it.\nCustomer: Thanks, solved.\n"
                await client.call_tool("create_skill", {"conversation": conversation})
        yield opened


async def ask(desk: Desk, principal: Principal, method: str, **params: Any) -> httpx2.Response:  # noqa: ANN401 - any JSON value
    """The answer over HTTP, as a host's own implementation would ask for it."""
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
    }
    if "uri" in params:
        headers["mcp-name"] = params["uri"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **ENVELOPE}}
    async with open_http(desk, principal) as client:
        return await client.post("/mcp", json=body, headers=headers)


async def list_skills(desk: Desk, **params: object) -> dict[str, Any]:
    return (await ask(desk, READER, "skills/list", **params)).json()["result"]


async def read(client: Client, uri: str) -> str:
    [contents] = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    assert contents.mime_type == "text/markdown"
    return contents.text


async def test_the_extension_is_told_of_where_skills_are_served(desk: Desk, tmp_path: Path) -> None:
    told = (await ask(desk, READER, "server/discover")).json()["result"]["capabilities"]
    assert told["extensions"] == {"io.modelcontextprotocol/skills": {}, "io.modelcontextprotocol/tasks": {}}
    assert "resources" in told
    async with open_desk(make_settings(tmp_path), load_toolsets(["knowledge"]), in_background=False) as other:
        assert "extensions" not in (await ask(other, READER, "server/discover")).json()["result"]["capabilities"]
        assert "error" in (await ask(other, READER, "skills/list")).json()


async def test_every_file_is_what_its_entry_says(desk: Desk) -> None:
    listed = await list_skills(desk)
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    assert listed["ttlMs"] > 0
    assert len(listed["skills"]) == len(TOPICS)
    async with connect(desk, MODERN, READER) as client:
        for entry in listed["skills"]:
            assert entry["uri"].split("/")[-2:] == [entry["frontmatter"]["name"], "SKILL.md"]
            [file] = entry["resources"]
            assert file["uri"] == entry["uri"]
            content = (await read(client, file["uri"])).encode()
            assert file["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
            assert file["size"] == len(content)
            assert json.dumps(entry["frontmatter"]["description"], ensure_ascii=False) in content.decode()


async def test_what_stands_has_the_same_digest_however_often_it_is_found(desk: Desk) -> None:
    before = await list_skills(desk)
    async with connect(desk, MODERN, WRITER) as client:
        found = await client.call_tool("search_skills", {"query": "the toaster smokes"})
        assert found.structured_content is not None
        skill_id = found.structured_content["matches"][0]["skill_id"]
        await client.call_tool("report_outcome", {"skill_id": skill_id, "outcome": "resolved"})
    assert await list_skills(desk) == before


async def test_files_beside_a_skill_are_listed_and_read_in_both_eras(desk: Desk) -> None:
    texts = {
        "SKILL.md": "---\nname: forms\ndescription: Fill forms.\n---\nSee references/a b.md.\n",
        "references/a b.md": "# Fields",
        "scripts/fill.py": "print(1)",
    }
    folder = {"name": "forms", "files": [{"path": path, "text": text} for path, text in texts.items()]}
    async with open_http(desk, WRITER) as client:
        done = await client.post("/skills/import", json={"folders": [folder]})
    assert done.json()["folders"][0]["result"] == "added"
    [entry] = [each for each in (await list_skills(desk))["skills"] if each["frontmatter"]["name"] == "forms"]
    uris = [file["uri"].removeprefix("skill://refdesk/forms/") for file in entry["resources"]]
    assert uris == ["SKILL.md", "references/a%20b.md", "scripts/fill.py"]
    for era in (MODERN, "legacy"):
        async with connect(desk, era, READER) as client:
            for file, text, kind in zip(
                entry["resources"], texts.values(), ("markdown", "markdown", "plain"), strict=True
            ):
                [contents] = (await client.read_resource(file["uri"])).contents
                assert isinstance(contents, TextResourceContents)
                assert contents.mime_type == f"text/{kind}"
                assert file["digest"] == f"sha256:{hashlib.sha256(contents.text.encode()).hexdigest()}"
                assert contents.text.endswith(text[-12:])


async def test_one_skill_is_got_by_its_address(desk: Desk) -> None:
    entry = (await list_skills(desk))["skills"][1]
    got = (await ask(desk, READER, "skills/get", uri=entry["uri"])).json()["result"]
    assert got["skill"] == entry
    assert (got["resultType"], got["cacheScope"]) == ("complete", "private")


async def test_a_long_listing_comes_in_pages(desk: Desk) -> None:
    async def read_other(_context: object, _params: object) -> None:
        return None

    files = SkillFiles(desk, lambda _: READER, read_other, page=2)
    context = cast("Any", SimpleNamespace(meta=None, request=None))
    whole = (await list_skills(desk))["skills"]
    first = await files.list(context, PaginatedRequestParams())
    second = await files.list(context, PaginatedRequestParams(cursor=first["nextCursor"]))
    assert first["skills"] + second["skills"] == whole
    assert "nextCursor" not in second


@pytest.mark.parametrize("uri", ["skill://refdesk/nothing/SKILL.md", "skill://refdesk/SKILL.md", "knowledge://1", ""])
async def test_an_unknown_skill_is_invalid_params(desk: Desk, uri: str) -> None:
    answer = (await ask(desk, READER, "skills/get", uri=uri)).json()
    assert answer["error"]["code"] == INVALID_PARAMS


async def test_another_org_sees_and_reads_none_of_them(desk: Desk) -> None:
    uri = (await list_skills(desk))["skills"][0]["uri"]
    stranger = Principal("elsewhere", "eve", frozenset({"skills:read"}))
    assert (await ask(desk, stranger, "skills/list")).json()["result"]["skills"] == []
    assert (await ask(desk, stranger, "skills/get", uri=uri)).json()["error"]["code"] == INVALID_PARAMS
    async with connect(desk, MODERN, stranger) as client:
        with pytest.raises(MCPError, match="No such resource"):
            await read(client, uri)


async def test_without_the_scope_nothing_is_told(desk: Desk) -> None:
    uri = (await list_skills(desk))["skills"][0]["uri"]
    blind = Principal("local", "bob", frozenset({"skills:write"}))
    for method, params in (("skills/list", {}), ("skills/get", {"uri": uri}), ("resources/read", {"uri": uri})):
        answer = await ask(desk, blind, method, **params)
        assert answer.status_code == 403
        assert "skills:read" in answer.headers["www-authenticate"]
    async with connect(desk, MODERN, blind) as client:
        with pytest.raises(MCPError, match="skills:read"):
            await read(client, uri)
