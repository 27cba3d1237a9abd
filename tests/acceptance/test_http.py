"""The server as a team runs it: over HTTP."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from refdesk.server.mcp import MESSAGE_BYTES
from tests.acceptance.processes import TOOLS, Running, start
from tests.test_cli import refdesk

SERVE = ["-m", "refdesk", "serve", "--no-auth", "--port", "0"]
READERS = ["search_knowledge", "get_knowledge", "search_everything"]
WRITERS = [*(tool for tool in TOOLS if "knowledge" in tool), "search_everything"]


@contextmanager
def serve(home: Path, *options: str) -> Generator[tuple[Running, str]]:
    with start([*SERVE, *options], home, REFDESK_EMBEDDER="hashing") as server:
        yield server, server.read_log("listening")["url"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with serve(tmp_path_factory.mktemp("home")) as (server, address):
        yield address
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=120) == 0


@pytest.mark.parametrize("era", ["legacy", "auto", "2026-07-28"])
async def test_mcp_is_served_in_both_eras(url: str, era: str) -> None:
    async with Client(f"{url}/mcp", mode=era) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        result = await client.call_tool("search_azure_updates", {"query": "storage"})
        assert result.structured_content is not None
        assert result.structured_content["total"] == 0


def test_the_retired_transport_is_not_served_unless_asked_for(url: str) -> None:
    assert httpx2.get(f"{url}/sse").status_code == 404


def test_rest_answers(url: str) -> None:
    answer = httpx2.post(f"{url}/azure-updates/search", json={"query": "storage", "limit": 1})
    assert answer.status_code == 200
    assert answer.json()["limit"] == 1


def test_pages_and_descriptions_are_served(url: str) -> None:
    for path in ("/", "/docs", "/openapi.json", "/health", "/assets/page.css", "/assets/try.js"):
        assert httpx2.get(url + path).status_code == 200


def exchange(url: str, request: bytes) -> bytes:
    """Send bytes as they are and return the status line of the answer."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(request)
        return connection.recv(65536).split(b"\r\n")[0]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"", b"400"),
        (b"Host: localhost\r\nHost: localhost\r\n", b"400"),
        (b"Host: evil.example\r\n", b"421"),
        (b"Host: localhost/x\r\n", b"421"),
        (b"Host: localhost\r\nOrigin: http://evil.example\r\n", b"403"),
        (b"Host: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"400"),
        (b"Host: localhost\r\nX: " + b"y" * 70_000 + b"\r\n", b"431"),
    ],
)
def test_requests_that_try_to_slip_past_are_refused(url: str, headers: bytes, status: bytes) -> None:
    assert exchange(url, b"GET /health HTTP/1.1\r\n" + headers + b"\r\n").split()[1] == status
    assert httpx2.get(f"{url}/health").status_code == 200


def test_a_body_that_is_too_large_is_refused_on_every_path(url: str) -> None:
    for path, size in (("/azure-updates/search", 1_100_000), ("/mcp", MESSAGE_BYTES)):
        body = b'{"query": "' + b"x" * size + b'"}'
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        assert httpx2.post(url + path, content=body, headers=headers).status_code == 413


@dataclass
class Locked:
    """A server that wants keys, and headers that carry one: of a reader and a writer, and of another org's reader."""

    url: str
    reader: dict[str, str]
    writer: dict[str, str]
    other: dict[str, str]
    home: Path


def make_key(home: Path, *options: str) -> tuple[str, dict[str, str]]:
    """Return a new key's id, and the header that carries it."""
    made = json.loads(refdesk(home, ["keys", "create", "--agent", "ann", "--json", *options]).stdout)
    return made["id"], {"authorization": f"Bearer {made['key']}"}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Generator[Locked]:
    """In the end it has stopped in order, although a client listens, and has told nobody a key."""
    home = tmp_path_factory.mktemp("home")
    with start(["-m", "refdesk", "serve", "--port", "0", "--sse"], home, REFDESK_EMBEDDER="hashing") as server:
        url = server.read_log("listening")["url"]
        assert "refdesk keys create" in server.read_log("no key opens this server yet")["make one with"]
        scopes = ["--scope", "knowledge:read"]
        keys = [make_key(home, *scopes, *more)[1] for more in ([], ["--scope", "knowledge:write"], ["--org", "other"])]
        yield Locked(url, keys[0], keys[1], keys[2], home)
        with httpx2.stream("GET", f"{url}/sse", headers=keys[0]) as events:
            assert events.status_code == 200
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(timeout=120) == 0
        log = server.close()[2]
    assert not [key for key in keys if key["authorization"].partition("_")[2] in log]


def test_a_key_opens_at_once_and_nothing_any_more_once_it_is_revoked(locked: Locked) -> None:
    address = f"{locked.url}/knowledge/search"
    assert httpx2.post(address, json={"query": "x"}).status_code == 401
    id, headers = make_key(locked.home, "--scope", "knowledge:read")
    assert httpx2.post(address, json={"query": "x"}, headers=headers).status_code == 200
    assert refdesk(locked.home, ["keys", "revoke", id]).exit_code == 0
    assert httpx2.post(address, json={"query": "x"}, headers=headers).status_code == 401


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_mcp_wants_a_key_and_shows_what_it_allows(locked: Locked, era: str) -> None:
    async with (
        httpx2.AsyncClient(headers=locked.writer) as http,
        Client(streamable_http_client(f"{locked.url}/mcp", http_client=http), mode=era) as client,
    ):
        assert [tool.name for tool in (await client.list_tools()).tools] == WRITERS
        stored = await client.call_tool("store_knowledge", {"title": "A", "body": "B"})
        assert stored.structured_content is not None


async def test_the_retired_transport_wants_a_key_and_its_own_stream(locked: Locked) -> None:
    mine = locked.reader
    async with Client(sse_client(f"{locked.url}/sse", headers=mine), mode="legacy") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == READERS
    async with httpx2.AsyncClient() as http, http.stream("GET", f"{locked.url}/sse", headers=mine) as events:
        lines = events.aiter_lines()
        address = (await anext(line async for line in lines if line.startswith("data: "))).removeprefix("data: ")
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for headers, status in (({}, 401), (locked.other, 404), (locked.writer, 404), (mine, 202)):
            assert (await http.post(locked.url + address, json=message, headers=headers)).status_code == status


def test_a_port_that_is_taken_is_said_in_one_sentence(url: str, tmp_path: Path) -> None:
    done = refdesk(tmp_path, ["serve", "--no-auth", "--port", url.rpartition(":")[2]])
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: Port ")
    assert done.stderr.count("\n") == 1


def test_http_without_keys_serves_this_machine_only(tmp_path: Path) -> None:
    done = refdesk(tmp_path, ["serve", "--no-auth", "--host", "0.0.0.0", "--port", "0"])
    assert done.exit_code == 1
    assert "127.0.0.1" in done.stderr
    assert "refdesk keys create" in done.stderr


def test_no_line_of_the_log_holds_what_a_caller_wrote(tmp_path: Path) -> None:
    written, ping = "the-callers-own-words", {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with serve(tmp_path, "--sse") as (server, address):
        with httpx2.stream("GET", f"{address}/sse", timeout=120) as events:
            endpoint = next(line.removeprefix("data: ") for line in events.iter_lines() if line.startswith("data: "))
            for body in (f'{{"jsonrpc": "{written}"}}', f"{{{written}", json.dumps([written])):
                headers = {"content-type": "application/json"}
                assert httpx2.post(f"{address}{endpoint}", content=body, headers=headers).status_code < 500
        assert httpx2.post(f"{address}/messages/?session_id={written}", json=ping).status_code < 500
        assert httpx2.get(f"{address}/{written}").status_code == 404
        wrong = {"authorization": "Bearer refdesk_of-nobody"}
        assert httpx2.get(f"{address}/knowledge/{written}", headers=wrong).status_code == 401
        server.process.send_signal(signal.SIGINT)
        _, _, log = server.close()
    assert '"logger": "mcp.server.sse"' in log
    assert '"path": "/knowledge/{id}"' in log
    assert written not in log


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"http://localhost/health", b"localhost", b"200"),
        (b"HTTP://localhost:80/health?x=1", b"evil.example", b"200"),
        (b"http://localhost", b"localhost", b"200"),
        (b"http://evil.example/health", b"localhost", b"421"),
        (b"http:///health", b"localhost", b"421"),
        (b"ftp://localhost/health", b"localhost", b"404"),
    ],
)
def test_a_whole_url_as_the_target_names_path_and_host(url: str, target: bytes, host: bytes, status: bytes) -> None:
    said = exchange(url, b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    assert said.split()[1] == status


def test_a_team_reaches_it_as_the_readme_says(tmp_path: Path) -> None:
    """A page cannot make a name of its own mean an address, so any address will do; other names must be said."""
    with start(["-m", "refdesk", "serve", "--host", "0.0.0.0", "--port", "0"], tmp_path) as server:
        port = server.read_log("listening")["url"].rpartition(":")[2]
        assert "REFDESK_ALLOWED_HOSTS" in server.read_log("reached by")["more"]
        _, headers = make_key(tmp_path, "--scope", "knowledge:read")
        for host in ("192.0.2.7", "[2001:db8::7]", socket.gethostname()):
            named = headers | {"host": f"{host}:{port}"}
            answer = httpx2.post(f"http://127.0.0.1:{port}/knowledge/search", json={"query": "x"}, headers=named)
            assert answer.status_code == 200, host
        for host in ("evil.example", "192.0.2.7.evil.example"):
            answer = httpx2.get(f"http://127.0.0.1:{port}/health", headers={"host": host})
            assert answer.status_code == 421
            assert "REFDESK_ALLOWED_HOSTS=" in answer.json()["error"]["message"]
