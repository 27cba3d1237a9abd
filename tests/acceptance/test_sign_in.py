"""Signing in as a team has it: the server and the issuer as processes, and MCP clients that find their own way."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from refdesk.cli.doctor import check_sign_in
from tests.acceptance.processes import Running, run, start
from tests.emulators.issuer import CLIENT, CLIENT_SECRET, RunningIssuer, running_issuer
from tests.server.echo import make_settings

MINUTE = 60


class Pocket:
    """Where a client keeps its token."""

    def __init__(self) -> None:
        self.token: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.token

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.token = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass(frozen=True)
class World:
    """A server that people of an issuer may sign in to, both running."""

    url: str
    issuer: RunningIssuer
    server: Running

    def make_provider(self, pocket: Pocket) -> ClientCredentialsOAuthProvider:
        return ClientCredentialsOAuthProvider(f"{self.url}/mcp", pocket, CLIENT, CLIENT_SECRET, issuer=self.issuer.url)

    async def sign(self, **changed: object) -> dict[str, str]:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer.url,
            "aud": f"{self.url}/mcp",
            "sub": "ann",
            "client_id": "app",
            "org_id": "acme",
            "scope": "knowledge:read",
            "exp": now + MINUTE,
            **changed,
        }
        return {"authorization": f"Bearer {await self.issuer.sign(claims)}"}


def find_port() -> int:
    """A port that is free now: the server's address must be known before it starts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@asynccontextmanager
async def open_world(home: Path) -> AsyncGenerator[World]:
    port = find_port()
    url = f"http://127.0.0.1:{port}"
    async with running_issuer("/realms/desk") as issuer:
        variables = {
            "REFDESK_EMBEDDER": "hashing",
            "REFDESK_OAUTH_ISSUER": issuer.url,
            "REFDESK_OAUTH_AUDIENCE": f"{url}/mcp",
            "REFDESK_OAUTH_AGENT_PREFIX": "sso:",
        }
        arguments = ["-m", "refdesk", "serve", "--port", str(port), "--sse"]
        with start(arguments, home, **variables) as server:
            assert server.read_log("listening")["issuer"] == issuer.url
            yield World(url, issuer, server)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(timeout=120) == 0
            log = server.close()[2]
            assert "no key opens this server yet" not in log
            assert "eyJ" not in log


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    async with open_world(tmp_path_factory.mktemp("home")) as opened:
        yield opened


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_that_knows_only_the_address_finds_the_issuer_signs_in_and_works(world: World, era: str) -> None:
    await world.issuer.describe()
    pocket = Pocket()
    async with (
        httpx2.AsyncClient(auth=world.make_provider(pocket)) as http,
        Client(streamable_http_client(f"{world.url}/mcp", http_client=http), mode=era) as client,
    ):
        stored = (await client.call_tool("store_knowledge", {"title": "A", "body": "B"})).structured_content
        assert stored is not None
        entry = (await client.call_tool("get_knowledge", {"id": stored["id"]})).structured_content
        assert entry is not None
        assert entry["author"] == f"sso:{CLIENT}"
    assert pocket.token is not None
    assert "knowledge:write" in (pocket.token.scope or "")


async def test_a_client_whose_issuer_gives_less_is_told_what_is_missing(world: World) -> None:
    await world.issuer.describe(refused_scopes=["knowledge:write"])
    async with httpx2.AsyncClient(auth=world.make_provider(Pocket())) as http:
        denied = await http.post(f"{world.url}/knowledge", json={"title": "A", "body": "B"})
    assert denied.status_code == 403
    assert 'scope="knowledge:write"' in denied.headers["www-authenticate"]
    assert (
        f'resource_metadata="{world.url}/.well-known/oauth-protected-resource/mcp"'
        in denied.headers["www-authenticate"]
    )


async def test_a_stream_of_the_retired_transport_is_its_own_callers(world: World) -> None:
    ann, bob, other = await world.sign(), await world.sign(sub="bob"), await world.sign(org_id="other")
    expired = await world.sign(exp=1)
    async with httpx2.AsyncClient() as http, http.stream("GET", f"{world.url}/sse", headers=ann) as events:
        lines = events.aiter_lines()
        address = (await anext(line async for line in lines if line.startswith("data: "))).removeprefix("data: ")
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        renewed = await world.sign(exp=int(time.time()) + 2 * MINUTE)
        for headers, status in ((expired, 401), (bob, 404), (other, 404), ({}, 401), (ann, 202), (renewed, 202)):
            assert (await http.post(world.url + address, json=message, headers=headers)).status_code == status


def test_the_server_does_not_start_on_half_of_the_settings(tmp_path: Path) -> None:
    done = run(["serve", "--port", "0"], tmp_path, REFDESK_OAUTH_ISSUER="https://id.example.com")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: REFDESK_OAUTH_ISSUER needs REFDESK_OAUTH_AUDIENCE")
    assert done.stderr.count("\n") == 1


def test_the_server_starts_whether_or_not_the_issuer_is_there(tmp_path: Path) -> None:
    variables = {"REFDESK_OAUTH_ISSUER": "http://127.0.0.1:9", "REFDESK_OAUTH_AUDIENCE": "http://127.0.0.1/mcp"}
    with start(["-m", "refdesk", "serve", "--port", "0"], tmp_path, REFDESK_EMBEDDER="hashing", **variables) as server:
        url = server.read_log("listening")["url"]
        assert httpx2.get(f"{url}/health").status_code in (200, 503)
        assert httpx2.get(f"{url}/.well-known/oauth-protected-resource").json()["resource"] == "http://127.0.0.1/mcp"
        answer = httpx2.get(f"{url}/azure-updates/guide", headers={"authorization": "Bearer e30.e30.e30"})
        assert answer.status_code == 401


async def test_the_doctor_asks_the_issuer_for_its_keys(world: World, tmp_path: Path) -> None:
    variables = {"REFDESK_OAUTH_ISSUER": world.issuer.url, "REFDESK_OAUTH_AUDIENCE": "https://desk.example.com/mcp"}
    done = run(["doctor", "--json"], tmp_path, REFDESK_EMBEDDER="hashing", **variables)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert (done.returncode, checks["sign-in"]["status"], checks["public address"]["status"]) == (0, "ok", "warn")
    assert "2 keys" in checks["sign-in"]["found"]
    assert "REFDESK_ALLOWED_HOSTS" in checks["public address"]["advice"]


async def test_the_doctor_says_what_keeps_people_from_signing_in(world: World, tmp_path: Path) -> None:
    async def look(**chosen: object) -> list[tuple[str, str]]:
        found = await check_sign_in(make_settings(tmp_path, **chosen))
        return [(check.status, check.found) for check in found]

    right = {"oauth_issuer": world.issuer.url, "oauth_audience": "https://desk.example.com/mcp"}
    assert await look() == []
    assert [status for status, _ in await look(**right, allowed_hosts="Desk.example.com")] == ["ok"]
    for chosen, found in (
        ({**right, "oauth_issuer": f"{world.issuer.url}/"}, "another issuer"),
        ({**right, "oauth_issuer": "http://127.0.0.1:9"}, "ConnectError"),
        ({**right, "oauth_audience": ""}, "REFDESK_OAUTH_AUDIENCE"),
    ):
        [(status, said)] = await look(**chosen)
        assert status == "fail"
        assert found in said
