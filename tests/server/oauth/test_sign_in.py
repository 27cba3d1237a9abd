"""Signing in over HTTP, on MCP and REST alike: an issuer in a process of its own, and a clock that the test moves."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.types import Message

from refdesk.app import Desk, open_desk
from refdesk.core.clock import FixedClock
from refdesk.discovery import list_scopes
from refdesk.factories.toolsets import load_toolsets
from refdesk.server import credentials, http
from refdesk.server.gate import Gate
from refdesk.server.oauth.key_set import AFTER_FAILURE, MOST_LOOKS
from tests.acceptance.processes import ENVELOPE
from tests.core.fakes import NOW
from tests.emulators.issuer import RunningIssuer, running_issuer
from tests.emulators.signing import Key, make_key
from tests.server.conftest import URL
from tests.server.echo import READER, make_settings
from tests.server.oauth.samples import AUDIENCE, make_claims
from tests.server.test_keys import ACCEPT, bearer, open_session, post
from tests.server.test_keys import make_key as make_api_key

METADATA = "https://desk.example.com/.well-known/oauth-protected-resource/mcp"
SERVED = "articles:read knowledge:read knowledge:write skills:read skills:write updates:read"
LISTING: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
async def desk(tmp_path: Path, issuer: RunningIssuer) -> AsyncGenerator[Desk]:
    """A desk with everything that is served, where people of the issuer may sign in."""
    async with open_for(tmp_path, issuer) as opened:
        yield opened


@pytest.fixture
async def server(desk: Desk, clock: FixedClock) -> AsyncGenerator[httpx2.AsyncClient]:
    async with serve(desk, clock) as client:
        yield client


@asynccontextmanager
async def open_for(home: Path, issuer: RunningIssuer, **chosen: object) -> AsyncGenerator[Desk]:
    settings = make_settings(home, **{"oauth_issuer": issuer.url, "oauth_audience": AUDIENCE, **chosen})
    async with open_desk(settings, load_toolsets(), in_background=False) as opened:
        yield opened


@asynccontextmanager
async def run(desk: Desk, clock: FixedClock) -> AsyncGenerator[Gate]:
    gate = http.build_app(desk, None, sse=True, clock=clock)
    assert isinstance(gate.app, Starlette)
    async with gate.app.router.lifespan_context(gate.app):
        yield gate


@asynccontextmanager
async def serve(desk: Desk, clock: FixedClock) -> AsyncGenerator[httpx2.AsyncClient]:
    async with (
        run(desk, clock) as gate,
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=gate), base_url=URL) as client,
    ):
        yield client


async def sign(issuer: RunningIssuer, key: str = "rsa-1", **changed: object) -> dict[str, str]:
    """Return the header of somebody who signed in: `ann` of `acme`, who may do everything, for five minutes."""
    return bearer(
        await issuer.sign(make_claims(**{"iss": issuer.url, "scope": " ".join(list_scopes()), **changed}), key)
    )


async def search(server: httpx2.AsyncClient, headers: Mapping[str, str]) -> httpx2.Response:
    return await server.post("/knowledge/search", json={"query": "x"}, headers=headers)


async def test_a_token_opens_and_its_org_and_agent_are_what_is_read_and_written(
    server: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    ann, bob = await sign(issuer), await sign(issuer, sub="bob", org_id="other")
    stored = (await server.post("/knowledge", json={"title": "Mine", "body": "B"}, headers=ann)).json()
    address = f"/knowledge/{stored['id']}"
    assert (await server.get(address, headers=ann)).json()["author"].endswith(":ann")
    assert (await server.get(address, headers=bob)).status_code == 404
    for headers, found in ((ann, 1), (bob, 0)):
        said = await server.post("/knowledge/search", json={"query": "mine"}, headers=headers)
        assert len(said.json()["results"]) == found


async def test_somebody_who_signs_in_is_no_keys_agent_and_no_other_issuers(
    server: httpx2.AsyncClient, issuer: RunningIssuer, desk: Desk, tmp_path: Path, clock: FixedClock
) -> None:
    async def store(server: httpx2.AsyncClient, headers: dict[str, str]) -> str:
        made = (await server.post("/knowledge", json={"title": "T", "body": "B"}, headers=headers)).json()
        return (await server.get(f"/knowledge/{made['id']}", headers=headers)).json()["author"]

    key = bearer(await make_api_key(desk, "ann"))
    authors = [await store(server, await sign(issuer)), await store(server, key)]
    async with running_issuer() as other, open_for(tmp_path, other) as second, serve(second, clock) as elsewhere:
        authors.append(await store(elsewhere, await sign(other)))
    assert len(set(authors)) == 3
    async with open_for(tmp_path, issuer, oauth_agent_prefix="none") as wanted, serve(wanted, clock) as same:
        assert await store(same, await sign(issuer)) == "ann"


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_an_mcp_client_is_who_its_token_says(
    desk: Desk, issuer: RunningIssuer, clock: FixedClock, era: str
) -> None:
    headers = await sign(issuer, scope="knowledge:read knowledge:write")
    async with (
        run(desk, clock) as gate,
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=gate), headers=headers) as client,
        Client(streamable_http_client(f"{URL}/mcp", http_client=client), mode=era) as connected,
    ):
        listed = {tool.name for tool in (await connected.list_tools()).tools}
        assert {"store_knowledge", "search_knowledge"} <= listed
        assert "search_skills" not in listed
        stored = (await connected.call_tool("store_knowledge", {"title": "A", "body": "B"})).structured_content
        assert stored is not None
        entry = (await connected.call_tool("get_knowledge", {"id": stored["id"]})).structured_content
        assert entry is not None
        assert entry["author"].endswith(":ann")
        with pytest.raises(MCPError, match="skills:read"):
            await connected.call_tool("search_skills", {"query": "x"})


@pytest.mark.parametrize("path", ["/mcp", "/knowledge/search", "/search", "/sse", "/messages/", "/nowhere"])
async def test_who_has_not_signed_in_learns_where_and_for_what(server: httpx2.AsyncClient, path: str) -> None:
    answer = await server.post(path, json={}, headers={"host": "localhost", "x-forwarded-host": "evil.example"})
    wanted = f'Bearer realm="refdesk", resource_metadata="{METADATA}", scope="{SERVED}"'
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, wanted)


@pytest.mark.parametrize("suffix", ["", "/mcp"])
async def test_the_metadata_says_who_makes_tokens_for_this_server(
    server: httpx2.AsyncClient, issuer: RunningIssuer, suffix: str
) -> None:
    expired = await sign(issuer, exp=1)
    for headers in ({}, {"host": "localhost:1"}, {"x-forwarded-host": "evil.example"}, expired, bearer("refdesk_x")):
        answer = await server.get(f"/.well-known/oauth-protected-resource{suffix}", headers=headers)
        assert answer.status_code == 200
        assert answer.json() == {
            "resource": AUDIENCE,
            "authorization_servers": [issuer.url],
            "scopes_supported": SERVED.split(),
            "bearer_methods_supported": ["header"],
            "resource_name": "refdesk",
        }
    assert await issuer.requests() == []


async def test_no_other_address_pretends_to_know_where_to_sign_in(server: httpx2.AsyncClient) -> None:
    for name in ("oauth-authorization-server", "openid-configuration", "oauth-protected-resource/other"):
        assert (await server.get(f"/.well-known/{name}")).status_code == 404


async def test_behind_a_proxy_the_public_address_is_what_is_set(
    tmp_path: Path, issuer: RunningIssuer, clock: FixedClock
) -> None:
    public = {"public_url": "https://example.com/team", "oauth_asked_scope_prefix": "api://desk/"}
    async with open_for(tmp_path, issuer, **public) as desk, serve(desk, clock) as server:
        challenge = (await server.get("/mcp")).headers["www-authenticate"]
        assert 'resource_metadata="https://example.com/team/.well-known/oauth-protected-resource/mcp"' in challenge
        assert "api://desk/knowledge:read api://desk/knowledge:write" in challenge
        places = [f"/.well-known/oauth-protected-resource{suffix}" for suffix in ("", "/mcp", "/team/mcp")]
        for place in (*places, f"/team{places[1]}"):
            said = (await server.get(place)).json()
            assert said["resource"] == "https://example.com/team/mcp"
            assert "api://desk/knowledge:read" in said["scopes_supported"]
        denied = await search(server, await sign(issuer, scope="skills:read"))
        assert 'scope="api://desk/knowledge:read"' in denied.headers["www-authenticate"]


async def refused_tokens(issuer: RunningIssuer) -> list[dict[str, str]]:
    thief = Key("rsa-1", "RS256", make_key("thief", "RS256").private)
    wrong: list[dict[str, Any]] = [
        {"exp": 1},
        {"nbf": 2**40},
        {"iss": "https://evil.example"},
        {"aud": "https://other.example/mcp"},
        {"sub": None},
        {"cnf": {"jkt": "x"}},
    ]
    tokens = [await sign(issuer, **changed) for changed in wrong]
    tokens += [bearer(thief.sign(make_claims(iss=issuer.url))), bearer("a.b.c"), bearer("x" * 20_000)]
    return [*tokens, {"authorization": tokens[0]["authorization"].replace("Bearer", "DPoP")}]


async def test_whatever_is_wrong_with_a_token_the_answer_is_that_to_a_wrong_key(
    server: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    sent = [*await refused_tokens(issuer), bearer("refdesk_guess"), bearer(""), {}]
    answers = [await search(server, headers) for headers in sent]
    assert len({(answer.status_code, answer.text, str(answer.headers)) for answer in answers}) == 1
    assert answers[0].status_code == 401
    assert (await search(server, await sign(issuer))).status_code == 200


async def test_tokens_and_keys_that_fail_are_counted_together_and_a_valid_token_still_opens(
    server: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    expired = await sign(issuer, exp=1)
    sent = [expired if n % 2 else bearer("refdesk_x") for n in range(credentials.MOST_FAILURES + 1)]
    statuses = [(await server.get("/mcp", headers=headers)).status_code for headers in sent]
    assert statuses == [401] * credentials.MOST_FAILURES + [429]
    assert (await search(server, await sign(issuer))).status_code == 200


async def test_the_log_says_why_a_token_is_refused_and_the_caller_is_not_told(
    server: httpx2.AsyncClient, issuer: RunningIssuer, clock: FixedClock, caplog: pytest.LogCaptureFixture
) -> None:
    refused = await search(server, await sign(issuer, aud="https://other.example"))
    [entry] = [record for record in caplog.records if record.message == "key refused"]
    assert vars(entry)["reason"] == "The access token is refused: its `aud` is not this server."
    assert "aud" not in refused.text


async def test_a_token_without_a_scope_of_ours_reaches_nothing(
    server: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    nobody = await sign(issuer, scope="openid email Knowledge:Read")
    assert (await search(server, nobody)).status_code == 403
    assert (await post(server, "tools/list", {}, **nobody)).json()["result"]["tools"] == []


@pytest.mark.parametrize("is_granted", [False, True])
async def test_the_inner_state_is_shown_to_a_token_that_has_the_scope_where_tokens_may_carry_it(
    tmp_path: Path, issuer: RunningIssuer, clock: FixedClock, is_granted: bool
) -> None:
    async with open_for(tmp_path, issuer, oauth_server_scopes=is_granted) as desk, serve(desk, clock) as server:
        admin, reader = await sign(issuer, scope="admin"), await sign(issuer, scope="knowledge:read")
        assert ("pendingEmbeddings" in (await server.get("/health", headers=admin)).json()) is is_granted
        assert "pendingEmbeddings" not in (await server.get("/health", headers=reader)).json()


async def test_a_caller_says_for_which_of_its_orgs_it_calls_and_a_key_has_but_one(
    server: httpx2.AsyncClient, desk: Desk, issuer: RunningIssuer
) -> None:
    token = await sign(issuer, org_id=["acme", "zenith"])
    assert (refused := await search(server, token)).status_code == 403
    assert refused.json()["error"]["details"] == {"orgs": ["acme", "zenith"]}
    assert "www-authenticate" not in refused.headers
    for org, status in (("acme", 200), ("zenith", 200), ("other", 403), ("", 403)):
        assert (await search(server, token | {"refdesk-org": org})).status_code == status
    key = bearer(await make_api_key(desk))
    for org, status in (("acme", 200), ("zenith", 403)):
        assert (await search(server, key | {"refdesk-org": org})).status_code == status


async def test_clients_are_told_to_request_the_issuers_own_scopes_too(
    tmp_path: Path, issuer: RunningIssuer, clock: FixedClock
) -> None:
    chosen = {"oauth_more_scopes": ("organization:*",), "oauth_asked_scope_prefix": "api://desk/"}
    async with open_for(tmp_path, issuer, **chosen) as desk, serve(desk, clock) as server:
        metadata = (await server.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert metadata["scopes_supported"][-2:] == ["api://desk/updates:read", "organization:*"]
        challenge = (await server.post("/mcp", json=LISTING)).headers["www-authenticate"]
        assert challenge.endswith(' api://desk/updates:read organization:*"')
        narrow = await sign(issuer, scope="updates:read")
        assert (
            'scope="api://desk/knowledge:read organization:*"'
            in (await search(server, narrow)).headers["www-authenticate"]
        )


async def test_keys_go_on_beside_tokens(server: httpx2.AsyncClient, desk: Desk, issuer: RunningIssuer) -> None:
    assert (await search(server, bearer(await make_api_key(desk)))).status_code == 200
    assert (await search(server, bearer("refdesk_a.b.c"))).status_code == 401
    assert await issuer.requests() == []


async def test_a_token_counts_also_where_nobody_needs_one(
    tmp_path: Path, issuer: RunningIssuer, clock: FixedClock
) -> None:
    async with open_for(tmp_path, issuer) as desk:
        gate = http.build_app(desk, READER, clock=clock)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=gate), base_url=URL) as server:
            assert (await server.get("/azure-updates/guide")).status_code == 200
            assert (await search(server, await sign(issuer))).status_code == 200
            assert (await search(server, await sign(issuer, exp=1))).status_code == 401


async def test_without_an_issuer_a_token_is_no_key(tmp_path: Path, issuer: RunningIssuer, clock: FixedClock) -> None:
    settings = make_settings(tmp_path)
    async with open_desk(settings, load_toolsets(), in_background=False) as desk, serve(desk, clock) as server:
        refused = await search(server, await sign(issuer))
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Bearer realm="refdesk"')
        assert "oauth" not in (await server.get("/openapi.json")).json()["components"]["securitySchemes"]


async def test_new_keys_of_the_issuer_are_found_and_those_taken_back_open_nothing(
    server: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    old = await sign(issuer)
    assert (await search(server, old)).status_code == 200
    await issuer.set_keys(["rsa-2"], made={"rsa-2": "PS256"})
    new = await sign(issuer, "rsa-2")
    assert (await search(server, new)).status_code == 200
    assert (await search(server, old)).status_code == 401


async def test_random_keys_in_tokens_do_not_become_requests_to_the_issuer(
    server: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    claims = make_claims(iss=issuer.url)
    for n in range(40):
        assert (await search(server, bearer(await issuer.sign(claims, kid=f"random-{n}")))).status_code == 401
    assert await issuer.count("/jwks") == 1 + MOST_LOOKS
    assert (await search(server, await sign(issuer))).status_code == 200


async def test_an_issuer_that_is_away_is_the_servers_trouble_and_not_the_callers(
    server: httpx2.AsyncClient,
    desk: Desk,
    issuer: RunningIssuer,
    clock: FixedClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    token, key = await sign(issuer), bearer(await make_api_key(desk))
    await issuer.set_faults([{"fault": "reset"}])
    for _ in range(5):
        answer = await search(server, token)
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "UNAVAILABLE")
        assert "www-authenticate" not in answer.headers
        assert (await search(server, key)).status_code == 200
    assert [record.message for record in caplog.records if "issuer" in record.message] == ["issuer not read"]
    assert len(await issuer.requests()) == 3
    await issuer.set_faults([])
    clock.advance(AFTER_FAILURE)
    assert (await search(server, token)).status_code == 200
    await issuer.set_faults([{"fault": "status", "status": 502}])
    clock.advance(timedelta(minutes=30))
    later = await sign(issuer, exp=int(NOW.timestamp()) + 3600)
    assert (await search(server, later)).status_code == 200


async def test_a_session_ends_with_its_token_and_goes_on_with_the_next_one_of_the_same_caller(
    server: httpx2.AsyncClient, issuer: RunningIssuer, clock: FixedClock
) -> None:
    first = await sign(issuer)
    session = await open_session(server, first["authorization"].removeprefix("Bearer "))
    assert (await server.post("/mcp", json=LISTING, headers={**first, **session})).status_code == 200
    clock.advance(timedelta(minutes=10))
    assert (await server.post("/mcp", json=LISTING, headers={**first, **session})).status_code == 401
    assert (await server.delete("/mcp", headers={**first, **session})).status_code == 401
    renewed = await sign(issuer, exp=int(NOW.timestamp()) + 3600, scope="knowledge:read")
    again = await server.post("/mcp", json=LISTING, headers={**renewed, **session})
    assert again.status_code == 200
    listed = {tool["name"] for tool in again.json()["result"]["tools"]}
    assert "search_knowledge" in listed
    assert "store_knowledge" not in listed


async def test_a_stream_ends_with_the_last_token_of_its_caller(
    tmp_path: Path, issuer: RunningIssuer, clock: FixedClock
) -> None:
    token = await sign(issuer)
    params: dict[str, Any] = {**ENVELOPE, "notifications": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}).encode()
    named = {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen", "host": "localhost"}
    headers = {**ACCEPT, **named, **token, "content-type": "application/json", "content-length": str(len(body))}
    began, over, parts = anyio.Event(), anyio.Event(), [{"type": "http.request", "body": body}]

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200
            began.set()

    async def receive() -> Message:
        if not parts:
            await anyio.sleep_forever()
        return parts.pop()

    async def listen(gate: Gate) -> None:
        scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "client": ("127.0.0.1", 1)}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await gate({**scope, "headers": encoded, "server": ("localhost", 80), "scheme": "http"}, receive, send)
        over.set()

    async with (
        open_for(tmp_path, issuer, key_check_seconds=0.01) as desk,
        run(desk, clock) as gate,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listen, gate)
        await began.wait()
        assert not over.is_set()
        clock.advance(timedelta(minutes=10))
        await over.wait()


async def test_nobody_else_takes_a_session_over(server: httpx2.AsyncClient, desk: Desk, issuer: RunningIssuer) -> None:
    ann = await sign(issuer)
    session = await open_session(server, ann["authorization"].removeprefix("Bearer "))
    unknown = await server.post("/mcp", json=LISTING, headers={**ann, **session, "mcp-session-id": "0" * 32})
    thieves = [await sign(issuer, **changed) for changed in ({"sub": "bob"}, {"org_id": "other"}, {"client_id": "b"})]
    thieves.append(bearer(await make_api_key(desk, "ann")))
    for thief in thieves:
        stolen = await server.post("/mcp", json=LISTING, headers={**thief, **session})
        assert (stolen.status_code, stolen.text) == (404, unknown.text)
        assert (await server.delete("/mcp", headers={**thief, **session})).status_code == 404
    assert (await server.post("/mcp", json=LISTING, headers=session)).status_code == 401
    assert (await server.post("/mcp", json=LISTING, headers={**ann, **session})).status_code == 200


async def test_each_message_of_a_session_is_by_the_token_that_comes_with_it(
    server: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    writer, reader = await sign(issuer), await sign(issuer, scope="knowledge:read")
    session = await open_session(server, writer["authorization"].removeprefix("Bearer "))
    call = {"name": "store_knowledge", "arguments": {"title": "A", "body": "B"}}
    message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}
    for headers, status in ((reader, 403), (writer, 200)):
        assert (await server.post("/mcp", json=message, headers={**headers, **session, **ACCEPT})).status_code == status


async def test_openapi_names_both_ways_to_say_who_calls(server: httpx2.AsyncClient, issuer: RunningIssuer) -> None:
    described = (await server.get("/openapi.json")).json()
    assert described["security"] == [{"key": []}, {"oauth": []}]
    scheme = described["components"]["securitySchemes"]["oauth"]
    assert (scheme["type"], scheme["scheme"], scheme["bearerFormat"]) == ("http", "bearer", "JWT")
    assert issuer.url in scheme["description"]


async def test_no_token_is_in_a_log_or_a_reply(
    server: httpx2.AsyncClient, issuer: RunningIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    sent = [*await refused_tokens(issuer), await sign(issuer), await sign(issuer, scope="openid")]
    with caplog.at_level(logging.DEBUG):
        answers = [await search(server, headers) for headers in sent]
        answers += [await post(server, "tools/list", {}, **headers) for headers in sent]
        await issuer.set_faults([{"fault": "reset"}])
    assert {answer.status_code for answer in answers} == {200, 401, 403}
    written = caplog.text + json.dumps([vars(record) for record in caplog.records], default=str)
    written += "".join(answer.text + repr(answer.headers) for answer in answers)
    assert "key refused" in written
    for headers in sent:
        for part in headers["authorization"].split(" ")[1].split("."):
            assert len(part) < 4 or part not in written
