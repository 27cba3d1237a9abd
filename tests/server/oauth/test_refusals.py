"""What callers whose token is refused are told, and what the log says of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from refdesk.core.clock import FixedClock
from tests.core.fakes import NOW
from tests.emulators.issuer import RunningIssuer
from tests.server.oauth.test_sign_in import METADATA, open_for, search, serve, sign
from tests.server.test_keys import bearer, open_session, post


@pytest.fixture
async def server(tmp_path: Path, issuer: RunningIssuer) -> AsyncGenerator[httpx2.AsyncClient]:
    async with open_for(tmp_path, issuer) as desk, serve(desk, FixedClock(NOW)) as http:
        yield http


async def test_the_log_has_each_reason_of_a_source_and_each_once(
    server: httpx2.AsyncClient, issuer: RunningIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind a proxy all come from one address: one broken client must not hide why another is refused."""
    for _ in range(3):
        wrong = [bearer("refdesk_x"), await sign(issuer, aud="https://other"), await sign(issuer, org_id=None)]
        assert [(await search(server, token)).status_code for token in wrong] == [401, 401, 403]
    reasons = [vars(record)["reason"] for record in caplog.records if record.message == "key refused"]
    assert len(reasons) == 3
    assert reasons[1:] == [
        "The access token is refused: its `aud` is not this server.",
        "The access token is refused: its `org_id` names no org.",
    ]


@pytest.mark.parametrize("named", [None, [], "No Org"])
async def test_who_signs_in_and_is_in_no_org_is_told_so_and_is_not_sent_to_sign_in_again(
    server: httpx2.AsyncClient, issuer: RunningIssuer, named: object
) -> None:
    stranger = await sign(issuer, org_id=named)
    answers = [await search(server, stranger), await post(server, "tools/list", {}, **stranger)]
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "PERMISSION_DENIED")
        assert "belong to no org of this server" in answer.json()["error"]["message"]
        assert "www-authenticate" not in answer.headers
        assert "org_id" not in answer.text
    forged = await sign(issuer, org_id=named, aud="https://other.example")
    assert (await search(server, forged)).status_code == 401


async def test_a_token_without_the_scope_is_told_which_and_where_to_ask(
    server: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    reader = await sign(issuer, scope="openid knowledge:read")
    wanted = f'Bearer realm="refdesk", error="insufficient_scope", scope="{{}}", resource_metadata="{METADATA}"'
    denied = await server.post("/knowledge", json={"title": "A", "body": "B"}, headers=reader)
    assert (denied.status_code, denied.headers["www-authenticate"]) == (403, wanted.format("knowledge:write"))
    over_mcp = await post(server, "tools/call", {"name": "create_skill", "arguments": {}}, **reader)
    assert (over_mcp.status_code, over_mcp.headers["www-authenticate"]) == (403, wanted.format("skills:write"))
    assert (await search(server, reader)).status_code == 200
    more = await sign(issuer, scope="knowledge:read knowledge:write")
    assert (await server.post("/knowledge", json={"title": "A", "body": "B"}, headers=more)).status_code == 200


async def test_a_client_of_the_earlier_era_is_told_the_scopes_that_it_has_too_since_it_asks_for_no_others(
    server: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    reader = await sign(issuer, scope="openid updates:read knowledge:read")
    session = await open_session(server, reader["authorization"].removeprefix("Bearer "))
    params: dict[str, object] = {"name": "create_skill", "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    unsaid = {name: value for name, value in session.items() if name != "mcp-protocol-version"}
    for headers in (session, unsaid):
        denied = await server.post("/mcp", json=message, headers={**reader, **headers})
        assert denied.status_code == 403
        assert 'scope="knowledge:read skills:write updates:read"' in denied.headers["www-authenticate"]
        assert denied.json()["error"]["data"]["error"]["details"] == {"missingScopes": ["skills:write"]}
