"""Keys over HTTP: who calls is said by every request, on MCP and REST alike."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette

from refdesk.app import Desk, open_desk
from refdesk.core.clock import FixedClock, SystemClock
from refdesk.discovery import list_scopes
from refdesk.factories.toolsets import load_toolsets
from refdesk.server import credentials, http
from refdesk.server.limits import attempts
from tests.core.fakes import NOW
from tests.server.conftest import URL, open_http
from tests.server.echo import READER, make_settings
from tests.server.test_eras import HANDSHAKE, MODERN_META

ALL_SCOPES = tuple(list_scopes())
CHALLENGE = 'Bearer realm="refdesk"'
CANARY = "refdesk_canary-0123456789abcdefghijklmnopqrstuvwxyz"
ACCEPT = {"accept": "application/json, text/event-stream"}


async def make_key(desk: Desk, agent: str = "ann", org: str = "acme", scopes: tuple[str, ...] = ALL_SCOPES) -> str:
    ring = (await desk.get_base()).keys
    return (await ring.create(org=org, agent=agent, scopes=scopes))[1]


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture
async def locked(desk: Desk) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a server of the echo toolsets that nobody may call without a key."""
    async with open_http(desk, None, sse=True) as client:
        yield client


@pytest.fixture
async def real(tmp_path: Path) -> AsyncGenerator[Desk]:
    """A desk with everything that is served."""
    async with open_desk(make_settings(tmp_path), load_toolsets(), in_background=False) as opened:
        yield opened


@asynccontextmanager
async def connect(desk: Desk, secret: str, era: str) -> AsyncGenerator[Client]:
    """An MCP client over HTTP, in this process, with a key."""
    gate = http.build_app(desk, None)
    assert isinstance(gate.app, Starlette)
    async with (
        gate.app.router.lifespan_context(gate.app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=gate), headers=bearer(secret)) as client,
        Client(streamable_http_client(f"{URL}/mcp", http_client=client), mode=era) as connected,
    ):
        yield connected


async def test_a_key_tells_who_calls_on_every_request(desk: Desk, locked: httpx2.AsyncClient) -> None:
    for org, agent in (("acme", "ann"), ("other", "bob"), ("acme", "cat")):
        secret = await make_key(desk, agent, org)
        assert (await locked.get("/echo/guide", headers=bearer(secret))).json() == {"said": "guide", "by": org}


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_key_tells_who_calls_over_mcp_whatever_the_client_calls_itself(real: Desk, era: str) -> None:
    async with connect(real, await make_key(real), era) as client:
        stored = (await client.call_tool("store_knowledge", {"title": "A", "body": "B"})).structured_content
        assert stored is not None
        entry = (await client.call_tool("get_knowledge", {"id": stored["id"]})).structured_content
    assert entry is not None
    assert entry["author"] == "ann"


@pytest.mark.parametrize(
    "path", ["/echo/guide", "/mcp", "/sse", "/messages/", "/nowhere", "/health/", "/assets", "/docs/x", "/HEALTH"]
)
async def test_nothing_private_is_told_without_a_key(locked: httpx2.AsyncClient, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = await locked.request(method, path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
        assert answer.headers["www-authenticate"] == CHALLENGE


async def test_whoever_looks_for_a_sign_in_page_learns_that_there_is_none(locked: httpx2.AsyncClient) -> None:
    for name in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"):
        assert (await locked.get(f"/.well-known/{name}")).status_code == 404


async def refused_headers(desk: Desk) -> list[list[tuple[bytes, bytes]]]:
    """Every way not to have a valid key."""
    clock = FixedClock(SystemClock().now() - timedelta(days=9))
    ring = (await desk.get_base()).keys
    past = replace(ring, clock=clock)
    _, expired = await past.create(
        org="acme", agent="ann", scopes=["admin"], expires_at=clock.now() + timedelta(days=1)
    )
    key, revoked = await ring.create(org="acme", agent="ann", scopes=ALL_SCOPES)
    await ring.revoke(key.id)
    valid = await make_key(desk)
    values = [
        *("Bearer refdesk_guess", f"Bearer {expired}", f"Bearer {revoked}", "Bearer", "Bearer ", ""),
        *(f"Basic {valid}", valid, f"Bearer {valid[:-1]}", f"Bearer {valid}x", f"Bearer {key.id}", "Bearer ä" * 100),
    ]
    headers = [[(b"authorization", value.encode())] for value in values]
    return [[], *headers, [(b"authorization", f"Bearer {valid}".encode())] * 2, [(b"x-api-key", valid.encode())]]


async def test_whatever_is_no_valid_key_gets_one_and_the_same_answer(desk: Desk, locked: httpx2.AsyncClient) -> None:
    answers = [await locked.get("/echo/guide", headers=headers) for headers in await refused_headers(desk)]
    said = {(a.status_code, a.text, tuple((n, v) for n, v in a.headers.items() if n != "date")) for a in answers}
    assert len(said) == 1
    assert answers[0].status_code == 401


async def test_a_revoked_key_opens_nothing_from_the_next_request_on(real: Desk) -> None:
    ring = (await real.get_base()).keys
    key, secret = await ring.create(org="acme", agent="ann", scopes=ALL_SCOPES)
    async with connect(real, secret, "legacy") as client:
        await client.list_tools()
        await ring.revoke(key.id)
        with pytest.raises(MCPError):
            await client.list_tools()


def rest_cases() -> list[tuple[str, str, frozenset[str]]]:
    return [
        (entry.route.method, entry.route.path.replace("{", "").replace("}", ""), entry.scopes)
        for toolset in load_toolsets()
        for entry in (*toolset.operations, *toolset.resources)
    ]


async def test_every_route_wants_a_key_and_its_scopes(real: Desk) -> None:
    bad = await refused_headers(real)
    async with open_http(real, None) as rest:
        for method, path, scopes in rest_cases():
            for headers in bad:
                assert (await rest.request(method, path, headers=headers)).status_code == 401
            others = await make_key(real, scopes=tuple(set(list_scopes()) - scopes))
            denied = await rest.request(method, path, headers=bearer(others))
            wanted = f'{CHALLENGE}, error="insufficient_scope", scope="{" ".join(sorted(scopes))}"'
            assert (denied.status_code, denied.headers["www-authenticate"]) == (403, wanted)
            assert '"PERMISSION_DENIED"' in denied.text
            own = await make_key(real, scopes=tuple(scopes))
            assert (await rest.request(method, path, headers=bearer(own))).status_code not in (401, 403)


def calls(desk: Desk) -> list[tuple[str, dict[str, Any], frozenset[str]]]:
    """Every message that needs a scope, and which."""
    found: list[tuple[str, dict[str, Any], frozenset[str]]] = []
    for toolset in desk.toolsets:
        found += [
            ("tools/call", {"name": op.name, "arguments": {}}, op.scopes or op.any_scopes) for op in toolset.listed
        ]
        found += [
            ("resources/read", {"uri": resource.uri}, resource.scopes)
            for resource in toolset.resources
            if resource.scopes
        ]
        found += [
            ("resources/read", {"uri": template.uri.replace("{id}", "x")}, template.operation.scopes)
            for template in toolset.templates
        ]
    return found


async def post(rest: httpx2.AsyncClient, method: str, params: Mapping[str, Any], **headers: str) -> httpx2.Response:
    """Send one message of the later era."""
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": MODERN_META}}
    name = params.get("name") or params.get("uri") or ""
    own = {"mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": name, **ACCEPT}
    return await rest.post("/mcp", json=message, headers={**own, **headers})


async def test_every_message_wants_a_key_and_its_scopes(real: Desk) -> None:
    async with open_http(real, None) as rest:
        for method, params, scopes in calls(real):
            assert (await post(rest, method, params)).status_code == 401
            others = await make_key(real, scopes=tuple(set(list_scopes()) - scopes))
            denied = await post(rest, method, params, **bearer(others))
            assert denied.status_code == 403
            assert 'error="insufficient_scope"' in denied.headers["www-authenticate"]
            error = denied.json()["error"]
            assert denied.json()["id"] == 7
            assert error["data"]["error"]["details"] == {"missingScopes": sorted(scopes)}
            own = await make_key(real, scopes=tuple(scopes))
            allowed = await post(rest, method, params, **bearer(own))
            assert "scope" not in allowed.text
            assert allowed.status_code in (200, 400)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_caller_is_shown_what_its_scopes_allow(real: Desk, era: str) -> None:
    async with connect(real, await make_key(real, scopes=("knowledge:read",)), era) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            *("search_knowledge", "get_knowledge", "search_everything")
        ]
        # What these show is what the caller may read.
        shown = {str(each.uri) for each in (await client.list_resources()).resources}
        assert shown == {"gaps://open", "gaps://answered", "watches://news"}
        assert len((await client.list_resource_templates()).resource_templates) == 1
        with pytest.raises(MCPError, match="knowledge:write"):
            await client.call_tool("store_knowledge", {"title": "A", "body": "B"})
    async with connect(real, await make_key(real, scopes=("updates:read",)), era) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            *("search_azure_updates", "search_everything")
        ]
        assert len((await client.list_resources()).resources) == 4 + len(shown)
        assert (await client.list_resource_templates()).resource_templates == []


async def test_a_message_is_refused_whole_however_it_is_cut(real: Desk) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "store_knowledge"}}
    body = json.dumps(message).encode()
    headers = {**bearer(await make_key(real, scopes=("updates:read",))), "content-type": "application/json", **ACCEPT}

    async def pieces() -> AsyncGenerator[bytes]:
        for n in range(0, len(body), 10):
            yield body[n : n + 10]

    async with open_http(real, None) as rest:
        assert (await rest.post("/mcp", content=pieces(), headers=headers)).status_code == 403
        for other in (
            b"",
            b"[]",
            b"[" * 100_000,
            b'{"method": "tools/call"}',
            b'{"method": "tools/call", "params": 1}',
        ):
            assert (await rest.post("/mcp", content=other, headers=headers)).status_code == 400


async def open_session(rest: httpx2.AsyncClient, secret: str) -> dict[str, str]:
    """Shake hands and return the headers of the session, without the key."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
    opened = await rest.post("/mcp", json=message, headers={**bearer(secret), **ACCEPT})
    assert opened.status_code == 200
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25", **ACCEPT}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await rest.post("/mcp", json=ready, headers={**bearer(secret), **session})).status_code == 202
    return session


async def test_a_session_is_nothing_without_the_key_that_opened_it(real: Desk) -> None:
    ann, twin, bob = await make_key(real), await make_key(real), await make_key(real, "bob", "other")
    listing: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    async with open_http(real, None) as rest:
        session = await open_session(rest, ann)
        assert (await rest.post("/mcp", json=listing, headers={**bearer(ann), **session})).status_code == 200
        unknown = {**session, "mcp-session-id": "0" * 32}
        missing = await rest.post("/mcp", json=listing, headers={**bearer(bob), **unknown})
        for thief in (twin, bob):
            stolen = await rest.post("/mcp", json=listing, headers={**bearer(thief), **session})
            assert (stolen.status_code, stolen.text) == (404, missing.text)
            assert (await rest.delete("/mcp", headers={**bearer(thief), **session})).status_code == 404
            assert (await rest.get("/mcp", headers={**bearer(thief), **session})).status_code == 404
        assert (await rest.post("/mcp", json=listing, headers=session)).status_code == 401
        assert (await rest.post("/mcp", json=listing, headers={**bearer(ann), **session})).status_code == 200


async def test_open_pages_show_no_counts_to_anybody_but_those_who_run_the_server(real: Desk) -> None:
    admin, reader = await make_key(real, scopes=("admin",)), await make_key(real, scopes=("knowledge:read",))
    async with open_http(real, None) as rest:
        whole = (await rest.get("/health", headers=bearer(admin))).json()
        assert whole["toolsets"]["knowledge"]["documents"] == 0
        assert whole["pendingEmbeddings"] == 0
        for headers in ({}, bearer(reader)):
            part = (await rest.get("/health", headers=headers)).json()
            assert part["status"] == whole["status"]
            assert part["problems"] == whole["problems"]
            assert "documents" not in json.dumps(part)
            assert "pendingEmbeddings" not in part
            assert '<p class="figure">–</p>' in (await rest.get("/", headers=headers)).text
        assert (await rest.get("/health", headers=bearer("refdesk_guess"))).status_code == 401


async def test_without_keys_a_key_that_is_sent_still_counts(desk: Desk) -> None:
    async with open_http(desk, READER) as rest:
        assert (await rest.get("/echo/guide")).json()["by"] == "local"
        assert (await rest.get("/echo/guide", headers=bearer(await make_key(desk)))).json()["by"] == "acme"
        assert (await rest.get("/echo/guide", headers=bearer("refdesk_guess"))).status_code == 401


async def test_a_flat_toolset_refuses_in_its_own_form(locked: httpx2.AsyncClient) -> None:
    answer = await locked.post("/flat/fail", json={})
    assert answer.status_code == 401
    assert answer.json()["error"] == "UNAUTHENTICATED"


async def test_secrets_are_in_no_log_and_no_reply(real: Desk, caplog: pytest.LogCaptureFixture) -> None:
    base = await real.get_base()
    ring = replace(base.keys, random_text=lambda: CANARY.removeprefix("refdesk_"))
    _, secret = await ring.create(org="acme", agent="ann", scopes=["updates:read"])
    assert secret == CANARY
    guess = CANARY.replace("canary", "canard")
    replies: list[str] = []
    with caplog.at_level(logging.DEBUG):
        async with open_http(real, None) as rest:
            for key in (CANARY, guess):
                answers = [await rest.request(method, path, headers=bearer(key)) for method, path, _ in rest_cases()]
                answers += [await post(rest, method, params, **bearer(key)) for method, params, _ in calls(real)]
                replies += [answer.text + repr(answer.headers) for answer in answers]
    written = caplog.text + json.dumps([vars(record) for record in caplog.records], default=str)
    assert "key refused" in written
    for text in (written, *replies):
        assert "0123456789abcdef" not in text


async def test_a_source_that_keeps_failing_is_told_to_wait_and_a_valid_key_still_opens(
    desk: Desk, locked: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    statuses = [
        (await locked.get("/mcp", headers=bearer("refdesk_x"))).status_code
        for _ in range(credentials.MOST_FAILURES + 1)
    ]
    assert statuses == [401] * credentials.MOST_FAILURES + [429]
    refused = await locked.get("/mcp", headers=bearer("refdesk_x"))
    assert (refused.headers["retry-after"], refused.headers["www-authenticate"]) == ("60", CHALLENGE)
    newcomer = await locked.get("/mcp")
    assert (newcomer.status_code, newcomer.headers["www-authenticate"]) == (401, CHALLENGE)
    assert (await locked.get("/echo/guide", headers=bearer(await make_key(desk)))).status_code == 200
    assert len([record for record in caplog.records if record.message == "key refused"]) == 2


def test_failures_are_counted_by_source_and_forgotten_after_a_while() -> None:
    limit, clock = attempts.Attempts(), FixedClock(NOW)
    assert [limit.count("a", clock.now()), limit.count("b", clock.now()), limit.count("a", clock.now())] == [1, 1, 2]
    clock.advance(attempts.WINDOW)
    assert limit.count("a", clock.now()) == 1


def test_the_sources_that_are_remembered_are_bounded() -> None:
    limit = attempts.Attempts()
    limit.count("first", NOW)
    for n in range(attempts.MOST_SOURCES):
        limit.count(str(n), NOW)
    assert limit.count("first", NOW) == 1


async def test_another_orgs_entries_do_not_exist(real: Desk) -> None:
    ann, bob = await make_key(real), await make_key(real, "bob", "other")
    async with open_http(real, None) as rest:
        mine = (await rest.post("/knowledge", json={"title": "A", "body": "B"}, headers=bearer(ann))).json()["id"]
        his = (await rest.post("/knowledge", json={"title": "A", "body": "B"}, headers=bearer(bob))).json()["id"]
        nobody = "00000000-0000-7000-8000-000000000000"
        for path in ("/knowledge/{}", "/knowledge/{}/supersede"):
            method = "POST" if path.endswith("supersede") else "GET"
            answers = [
                await rest.request(
                    method, path.format(id), json={"newId": his} if method == "POST" else None, headers=bearer(bob)
                )
                for id in (mine, nobody)
            ]
            assert [answer.status_code for answer in answers] == [404, 404]
            assert answers[0].text.replace(mine, "") == answers[1].text.replace(nobody, "")
        found = (await rest.post("/knowledge/search", json={"query": "A"}, headers=bearer(bob))).json()
        assert [result["id"] for result in found["results"]] == [his]
