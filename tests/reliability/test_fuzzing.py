"""Tens of thousands of messages that nobody should send: none breaks the server, and the good client is served.

Over each transport, by the real command. A bug shows as a status of 500 and more, as an answer that owns up to one, as
an entry in the log, or as a process that ends or grows.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import httpx2
import pytest

from tests.acceptance.processes import HANDSHAKE, Running, run, shake_hands, start, watching
from tests.reliability.counting import count
from tests.reliability.fuzzing import Fuzz

Send: TypeAlias = Callable[[int, bytes], Awaitable[tuple[int, str]]]
Open: TypeAlias = Callable[["Watched"], AbstractAsyncContextManager[Send]]

SOAK = os.environ.get("REFDESK_SOAK") == "1"
MESSAGES = 30_000 if SOAK else 240
WORKERS = 8
GROWTH_BYTES = 100 * 2**20
"""How much a server may grow from a tenth of the messages on: caches fill up, and notes are stored."""

LAST = "the-last-message"
BROKEN = ("INTERNAL_ERROR", "Internal error", '"code":-32603')
UNLIMITED = {"REFDESK_AGENT_RATE": "100000000", "REFDESK_ORG_RATE": "100000000", "REFDESK_EMBEDDER": "hashing"}
PLAIN = ("-m", "refdesk")
BUGGY = """
import runpy
from refdesk.server import calls
validate = calls.validate
def validate_badly(operation, arguments):
    if len(repr(arguments)) % 3 == 0:
        raise ZeroDivisionError
    return validate(operation, arguments)
calls.validate = validate_badly
runpy.run_module("refdesk", run_name="__main__", alter_sys=True)
"""
LEAKY = """
import runpy
from refdesk.server import calls
kept, validate = [], calls.validate
def validate_and_keep(*arguments):
    kept.append(bytearray(b"x" * 4 * 2**20))
    return validate(*arguments)
calls.validate = validate_and_keep
runpy.run_module("refdesk", run_name="__main__", alter_sys=True)
"""


@dataclass
class Watched:
    """A server process, and what it owned up to in its log."""

    running: Running
    url: str = ""
    good: dict[str, str] = field(default_factory=dict[str, str])
    bad: dict[str, str] = field(default_factory=dict[str, str])
    faults: list[str] = field(default_factory=list[str])
    size: int = 0

    def watch(self) -> None:
        """Read the log to its end, in a thread of its own."""
        for line in self.running.said:
            try:
                entry = json.loads(line)
            except ValueError:
                self.faults.append(f"log: no JSON: {line[:300]!r}")
                continue
            if entry["level"] in ("ERROR", "error", "CRITICAL", "critical"):
                self.faults.append(f"log: {entry['message']}: {str(entry)[-300:]}")

    def note(self, number: int, message: bytes, status: int, text: str) -> None:
        """Note what is wrong with an answer."""
        if status >= 500 or any(sign in text for sign in BROKEN):
            self.faults.append(f"{number} {message[:300]!r}: {status} {text[:300]}")

    def measure(self) -> int:
        """Return how much memory the process has in use."""
        pages = Path(f"/proc/{self.running.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def look(self, number: int, count: int) -> None:
        """Note from a tenth of the messages on how much the process grew."""
        if number == count // 10:
            self.size = self.measure()
        elif number == count - 1 and self.measure() > self.size + GROWTH_BYTES:
            self.faults.append(f"it grew from {self.size} to {self.measure()} bytes")


@contextmanager
def serve(home: Path, *python: str) -> Generator[Watched]:
    """Yield a server over HTTP, with a key for the good client and one for the other."""
    with start([*python, "serve", "--port", "0", "--sse"], home, **UNLIMITED) as running:
        watched = Watched(running, running.read_log("listening")["url"])
        watched.good, watched.bad = make_key(home, "good"), make_key(home, "bad")
        with watching(running, watched.watch):
            yield watched


def make_key(home: Path, org: str) -> dict[str, str]:
    scopes = ("admin", "knowledge:read", "knowledge:write", "skills:read", "skills:write", "updates:read")
    options = [part for scope in scopes for part in ("--scope", scope)]
    made = run(["keys", "create", "--org", org, "--agent", "ann", *options, "--json"], home, **UNLIMITED)
    return {"authorization": f"Bearer {json.loads(made.stdout)['key']}"}


async def serve_the_good_client(watched: Watched, title: str) -> None:
    """Store a note and find it again, as somebody of another org does meanwhile."""
    async with httpx2.AsyncClient(base_url=watched.url, headers=watched.good, timeout=60) as client:
        await client.post("/knowledge", json={"title": title, "body": "The good client's words."})
        answer = await client.post("/knowledge/search", json={"query": title})
    if answer.status_code != 200 or answer.json()["results"][0]["title"] != title:
        watched.faults.append(f"the good client got {answer.status_code} {answer.text[:200]}")


async def send_all(watched: Watched, count: int, send: Open) -> None:
    """Send so many messages by several workers, each with a `send` of its own, and serve the good client in between."""
    numbers, fuzz = iter(range(count)), Fuzz(1)

    async def work() -> None:
        async with send(watched) as send_one:
            for number in numbers:
                message = fuzz.make(number)
                status, text = await send_one(number, message)
                watched.note(number, message, status, text)
                watched.look(number, count)
                if number % max(1, count // 20) == 0:
                    await serve_the_good_client(watched, f"Good note {number}")

    async with anyio.create_task_group() as group:
        for _ in range(WORKERS):
            group.start_soon(work)


@asynccontextmanager
async def over_http(watched: Watched) -> AsyncGenerator[Send]:
    """Yield what posts a message to `/mcp`, in a session of the handshake era, a later one, or one there is not."""
    sessions = itertools.count()
    headers = {**watched.bad, "accept": "application/json, text/event-stream", "content-type": "application/json"}
    async with httpx2.AsyncClient(base_url=watched.url, headers=headers, timeout=60) as client:
        opened = await client.post(
            "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
        )
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        none = {"mcp-session-id": "none"}
        kinds: tuple[dict[str, str] | None, ...] = (session, None, session, None, none, session, {})

        async def send(number: int, message: bytes) -> tuple[int, str]:
            more = kinds[next(sessions) % len(kinds)]
            answer = await client.post(
                "/mcp", content=message, headers=name_in_headers(message) if more is None else more
            )
            return answer.status_code, answer.text

        yield send


def name_in_headers(message: bytes) -> dict[str, str]:
    """Return the headers that a client of the later era sends with a message, as far as it is one."""
    try:
        value: Any = json.loads(message)
        method, name = value["method"], value["params"].get("name") or value["params"].get("uri")
    except (ValueError, KeyError, TypeError, AttributeError):
        method = name = "tools/list"
    named = {"mcp-method": method, "mcp-name": name, "mcp-protocol-version": "2026-07-28"}
    return {key: text for key, text in named.items() if isinstance(text, str) and re.fullmatch(r"[!-~]+", text)}


@asynccontextmanager
async def over_sse(watched: Watched) -> AsyncGenerator[Send]:
    """Yield what posts a message to a stream of events; what comes over the stream is read beside it."""
    async with (
        httpx2.AsyncClient(base_url=watched.url, headers=watched.bad, timeout=60) as client,
        anyio.create_task_group() as group,
    ):
        place, ready, over = [""], anyio.Event(), anyio.Event()

        async def listen() -> None:
            async with client.stream("GET", "/sse") as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("data: /"):
                        place[0] = line.removeprefix("data: ")
                        ready.set()
                    watched.note(-1, b"over the stream", 200, line)
                    if LAST in line:
                        over.set()

        async def send(_: int, message: bytes) -> tuple[int, str]:
            answer = await client.post(place[0], content=message, headers={"content-type": "application/json"})
            return answer.status_code, answer.text

        group.start_soon(listen)
        await ready.wait()
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HANDSHAKE}
        assert (await client.post(place[0], json=opening)).status_code == 202
        await client.post(place[0], json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield send
        # What was answered before is read by then.
        await client.post(place[0], json={"jsonrpc": "2.0", "id": LAST, "method": "ping"})
        await over.wait()
        group.cancel_scope.cancel()


def fuzz_stdio(home: Path, count: int, *python: str) -> list[str]:
    """Send so many lines to a server over stdio, a ping after each few, which must be answered; return the faults."""
    # A desk would be another process, without the bug that is planted in this one.
    isolated = [] if python == PLAIN else ["--isolated"]
    with start([*python, "serve", "--stdio", *isolated], home, **UNLIMITED) as running:
        watched, fuzz = Watched(running), Fuzz(2)
        thread = threading.Thread(target=watched.watch)
        thread.start()
        shake_hands(running)
        for number in range(count):
            message = fuzz.make(number).replace(b"\n", b" ").replace(b"\r", b" ")
            running.send(message)
            watched.look(number, count)
            if number % 20 == 19 and not is_answered(watched, running, f"good-{number}"):
                break
        assert running.process.stdin is not None
        running.process.stdin.close()
        running.process.stdin = None
        assert running.process.wait(60) == 0
        thread.join()
    return watched.faults


def is_answered(watched: Watched, running: Running, id: str) -> bool:
    running.send({"jsonrpc": "2.0", "id": id, "method": "ping"})
    while True:
        answer = running.receive()
        watched.note(-1, b"over stdio", 200, running.received.pop())
        if answer.get("id") == id:
            return "result" in answer


async def fuzz(home: Path, transport: str, count: int, *python: str) -> list[str]:
    """Return what went wrong."""
    if transport == "stdio":
        return await anyio.to_thread.run_sync(fuzz_stdio, home, count, *python)
    with serve(home, *python) as watched:
        await send_all(watched, count, over_http if transport == "http" else over_sse)
    return watched.faults


@pytest.mark.timeout(3600 if SOAK else 120)
@pytest.mark.parametrize("transport", ["http", "sse", "stdio"])
async def test_nothing_that_is_sent_breaks_the_server_and_the_good_client_is_served(
    tmp_path: Path, transport: str
) -> None:
    assert await fuzz(tmp_path, transport, MESSAGES, *PLAIN) == []
    count("fuzzed messages", MESSAGES)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("transport", ["http", "sse", "stdio"])
async def test_a_planted_bug_is_found_over_each_transport(tmp_path: Path, transport: str) -> None:
    faults = await fuzz(tmp_path, transport, 240, "-c", BUGGY)
    assert any(sign in fault for fault in faults for sign in ("500", "broke", *BROKEN)), faults


@pytest.mark.timeout(120)
async def test_a_planted_leak_is_found(tmp_path: Path) -> None:
    faults = await fuzz(tmp_path, "http", 240, "-c", LEAKY)
    assert any("it grew" in fault for fault in faults), faults
