"""The server as a team runs it: over HTTP."""

from __future__ import annotations

import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from mcp.client import Client
from mcp.client.sse import sse_client

from tests.acceptance.processes import TOOLS, Running, run, start

SERVE = ["-m", "refdesk", "serve", "--no-auth", "--port", "0"]


@contextmanager
def serve(home: Path, *options: str) -> Generator[tuple[Running, str]]:
    with start([*SERVE, *options], home, REFDESK_EMBEDDER="hashing") as server:
        yield server, server.read_log("listening")["url"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with serve(tmp_path_factory.mktemp("home"), "--sse") as (_, address):
        yield address


@pytest.mark.parametrize("era", ["legacy", "auto", "2026-07-28"])
async def test_mcp_is_served_in_both_eras(url: str, era: str) -> None:
    async with Client(f"{url}/mcp", mode=era) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        result = await client.call_tool("search_azure_updates", {"query": "storage"})
        assert result.structured_content is not None
        assert result.structured_content["total"] == 0


async def test_the_retired_transport_is_served_where_it_is_asked_for(url: str) -> None:
    async with Client(sse_client(f"{url}/sse"), mode="legacy") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS


def test_the_retired_transport_is_not_served_otherwise(tmp_path: Path) -> None:
    with serve(tmp_path) as (_, url):
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
    with socket.create_connection((host, int(port)), timeout=20) as connection:
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
    body = b'{"query": "' + b"x" * 1_100_000 + b'"}'
    for path in ("/azure-updates/search", "/mcp"):
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        assert httpx2.post(url + path, content=body, headers=headers).status_code == 413


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with serve(tmp_path, "--sse") as (server, url), httpx2.stream("GET", f"{url}/sse") as events:
        assert events.status_code == 200
        server.process.send_signal(number)
        assert server.process.wait(timeout=20) == 0


def test_a_port_that_is_taken_is_said_in_one_sentence(url: str, tmp_path: Path) -> None:
    port = url.rpartition(":")[2]
    done = run(["serve", "--no-auth", "--port", port], tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: Port {port} on 127.0.0.1 cannot be used")
    assert "Traceback" not in done.stderr


def test_a_server_that_nobody_has_a_key_for_says_how_to_make_one(tmp_path: Path) -> None:
    with start(["-m", "refdesk", "serve", "--port", "0"], tmp_path, REFDESK_EMBEDDER="hashing") as server:
        assert "refdesk keys create" in server.read_log("no key opens this server yet")["make one with"]


def test_http_without_keys_serves_this_machine_only(tmp_path: Path) -> None:
    done = run(["serve", "--no-auth", "--host", "0.0.0.0", "--port", "0"], tmp_path)
    assert done.returncode == 1
    assert "127.0.0.1" in done.stderr
