"""Open streams and sessions end when their key opens nothing any more, and nobody else's do."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.acceptance.processes import ENVELOPE, HANDSHAKE, WAIT_SECONDS, Running, run, start
from tests.test_cli import refdesk

SETTINGS = {"REFDESK_EMBEDDER": "hashing", "REFDESK_KEY_CHECK_SECONDS": "0.2"}
EVENTS = {"accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Served:
    server: Running
    url: str
    home: Path
    keys_file: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    home = tmp_path_factory.mktemp("home")
    keys = home / "keys"
    keys.touch()
    with start(
        ["-m", "refdesk", "serve", "--port", "0", "--sse", "--toolset", "knowledge"],
        home,
        **SETTINGS,
        REFDESK_KEYS_FILE=str(keys),
    ) as server:
        yield Served(server, server.read_log("listening")["url"], home, keys)


@dataclass(frozen=True)
class Opened:
    """A stream, and what it has sent that is not read yet."""

    stream: httpx2.Response
    chunks: Iterator[bytes]


@contextmanager
def open_legacy(client: httpx2.Client) -> Generator[Opened]:
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
    session = client.post("/mcp", json=opening, headers=EVENTS).headers["mcp-session-id"]
    with client.stream("GET", "/mcp", headers={**EVENTS, "mcp-session-id": session}) as stream:
        yield Opened(stream, stream.iter_bytes())


@contextmanager
def open_sse(client: httpx2.Client) -> Generator[Opened]:
    with client.stream("GET", "/sse") as stream:
        chunks = stream.iter_bytes()
        assert b"session_id=" in next(chunks)  # from then on it is a session
        yield Opened(stream, chunks)


@contextmanager
def open_listen(client: httpx2.Client) -> Generator[Opened]:
    params: dict[str, Any] = {**ENVELOPE, "notifications": {"resourceSubscriptions": []}}
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    named = {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
    with client.stream("POST", "/mcp", json=message, headers={**EVENTS, **named}) as stream:
        yield Opened(stream, stream.iter_bytes())


def revoke(served: Served) -> tuple[str, Callable[[], object]]:
    key = make_key(served)
    return key["key"], lambda: succeed(served, "keys", "revoke", key["id"])


def rotate(served: Served) -> tuple[str, Callable[[], object]]:
    key = make_key(served)
    return key["key"], lambda: succeed(served, "keys", "rotate", key["id"], "--overlap", "0h")


def remove_line(served: Served) -> tuple[str, Callable[[], object]]:
    made = run(["keys", "make", "--agent", "ann", "--scope", "knowledge:read", "--json"], served.home)
    key: dict[str, Any] = json.loads(made.stdout)
    served.keys_file.write_text(key["line"] + "\n")
    return key["key"], lambda: served.keys_file.write_text("")


def make_key(served: Served) -> dict[str, Any]:
    return json.loads(succeed(served, "keys", "create", "--agent", "ann", "--scope", "knowledge:read", "--json"))


def succeed(served: Served, *arguments: str) -> str:
    done = refdesk(served.home, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("end", [revoke, rotate, remove_line])
def test_streams_and_sessions_end_with_their_key(
    served: Served, end: Callable[[Served], tuple[str, Callable[[], object]]]
) -> None:
    secret, take_away = end(served)
    with ExitStack() as stack:
        good, bad = (
            stack.enter_context(
                httpx2.Client(base_url=served.url, headers={"authorization": f"Bearer {key}"}, timeout=WAIT_SECONDS)
            )
            for key in (make_key(served)["key"], secret)
        )
        kinds = (open_legacy, open_sse, open_listen)
        kept = [stack.enter_context(kind(good)) for kind in kinds]
        ending = [stack.enter_context(kind(bad)) for kind in kinds]
        assert [each.stream.status_code for each in (*kept, *ending)] == [200] * 6
        take_away()
        for each in ending:
            for _ in each.chunks:
                pass  # to its end, which is in order
        entry = served.server.read_log("ended with their key")
        assert (entry["sessions"], entry["streams"]) == (2, 3)
        assert bad.post("/knowledge/search", json={"query": "x"}).status_code == 401
        assert [each.stream.is_closed for each in kept] == [False] * 3
        good.post("/knowledge/search", json={"query": "x"}).raise_for_status()
