"""How much one key at full speed slows another org down: `python -m benchmarks.fairness`.

One server process with 100 notes for each of two orgs. One agent of the good org searches, one question after the
other, first alone and then while the other org's one key does its worst; the windows alternate, so that what else the
machine does meanwhile falls on all of them. Printed are the 95th percentile of the good agent's answers over that of
the windows in which it is alone.

In the last row the server embeds with the packaged model, and what the good agent searches beside is the embedding of
5,000 notes that the other org has imported.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

WORDS = (
    *("storage", "network", "backup", "identity", "region", "quota"),
    *("billing", "latency", "cache", "index", "queue", "token"),
)
NOTES = 100
IMPORTED = 5_000
HALF = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
OPEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "hoarder", "version": "1"},
    },
}


@dataclass(frozen=True)
class Served:
    """A server and the headers of the two orgs' keys."""

    url: str
    good: dict[str, str]
    bad: dict[str, str]

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)


def question(number: int) -> dict[str, object]:
    """Return one of many questions."""
    return {"query": f"{WORDS[number % 12]} {WORDS[number // 12 % 12]} {number}", "limit": 10}


@asynccontextmanager
async def alone(_: Served) -> AsyncGenerator[None]:
    """Nobody else asks."""
    yield


@asynccontextmanager
async def sessions(served: Served) -> AsyncGenerator[None]:
    """One key opens 1,000 sessions, and goes on."""
    async with httpx2.AsyncClient(headers=served.bad | {"accept": "application/json, text/event-stream"}) as client:

        async def hoard() -> None:
            while True:
                await client.post(f"{served.url}/mcp", json=OPEN)
                await asyncio.sleep(0.05)

        for _ in range(1000):
            (await client.post(f"{served.url}/mcp", json=OPEN)).raise_for_status()
        async with _meanwhile([hoard]):
            yield


@asynccontextmanager
async def slow_sockets(served: Served) -> AsyncGenerator[None]:
    """1,200 connections send half a request each, without a key, and open others when they are closed."""
    writers = list[asyncio.StreamWriter]()
    for _ in range(1200):
        _, writer = await asyncio.open_connection(*served.address)
        writer.write(HALF)
        writers.append(writer)
    yield
    for writer in writers:
        writer.close()


@asynccontextmanager
async def full_speed(served: Served) -> AsyncGenerator[None]:
    """One key asks over 32 connections, each as fast as it is answered."""
    async with httpx2.AsyncClient(headers=served.bad, timeout=60, limits=httpx2.Limits(max_connections=32)) as client:

        async def flood() -> None:
            for number in range(10**9):
                await client.post(f"{served.url}/knowledge/search", json=question(number))

        async with _meanwhile([flood] * 32):
            yield


@asynccontextmanager
async def _meanwhile(work: Sequence[Callable[[], Coroutine[None, None, None]]]) -> AsyncGenerator[None]:
    tasks = [asyncio.create_task(each()) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


LOADS: dict[str, Callable[[Served], AbstractAsyncContextManager[None]]] = {
    "1,000 sessions of one key": sessions,
    "1,200 half-sent requests": slow_sockets,
    "one key at full speed, 32 connections": full_speed,
}


async def measure(served: Served, count: int) -> list[float]:
    """Return how long each of the good agent's searches took, in seconds; every one must be answered."""
    took = list[float]()
    async with httpx2.AsyncClient(headers=served.good, timeout=60) as client:
        for number in range(count):
            began = time.perf_counter()
            answer = await client.post(f"{served.url}/knowledge/search", json=question(number))
            took.append(time.perf_counter() - began)
            answer.raise_for_status()
    return took


def percentile(values: list[float], share: float) -> float:
    """Return the value below which that share of them is."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def store_notes(served: Served) -> None:
    """Give each org its notes."""
    for headers in (served.good, served.bad):
        async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
            for number in range(NOTES):
                body = {"title": f"Note {number}", "body": " ".join(WORDS[number % 12 :] * 8)}
                (await client.post(f"{served.url}/knowledge", json=body)).raise_for_status()


async def compare(served: Served, windows: int, count: int) -> None:
    """Print, for each load, the good agent's percentile under it over the one without."""
    await store_notes(served)
    await measure(served, count)
    for name, load in LOADS.items():
        quiet, loaded = list[float](), list[float]()
        for _ in range(windows):
            quiet += await measure(served, count)
            async with load(served):
                loaded += await measure(served, count)
        ratio = percentile(loaded, 0.95) / percentile(quiet, 0.95)
        median = percentile(loaded, 0.5) / percentile(quiet, 0.5)
        print(f"{name:40} p95 {ratio:5.2f} x  p50 {median:5.2f} x  ({len(loaded)} answers, none refused)", flush=True)


async def compare_embedding(served: Served, windows: int, count: int) -> None:
    """Print the same for the time in which the other org's notes are being embedded."""
    await store_notes(served)
    async with httpx2.AsyncClient(headers=served.bad, timeout=600) as client:
        mine = await client.post(f"{served.url}/knowledge", json={"title": "The last", "body": "To wait for."})
        await _await_embedded(client, served, str(mine.json()["id"]))
        await measure(served, count)
        quiet = [took for _ in range(windows) for took in await measure(served, count)]
        last = await import_notes(client, served)
        loaded = list[float]()
        while len(loaded) < windows * count and not await _is_embedded(client, served, last):
            loaded += await measure(served, count // 4)
    ratio = percentile(loaded, 0.95) / percentile(quiet, 0.95)
    median = percentile(loaded, 0.5) / percentile(quiet, 0.5)
    name = f"{IMPORTED:,} notes of another org embedded"
    print(f"{name:40} p95 {ratio:5.2f} x  p50 {median:5.2f} x  ({len(loaded)} answers, none refused)", flush=True)


async def import_notes(client: httpx2.AsyncClient, served: Served) -> str:
    """Import the notes, and return the id of the one that is embedded last."""
    header = {"format": "refdesk-knowledge", "version": 1, "entries": IMPORTED}
    notes = [
        {
            "id": f"018f0000-0000-7000-8000-{number:012x}",
            "title": f"Imported {number}",
            "author": "ann",
            "createdAt": "2026-01-01T00:00:00+00:00",
            "body": " ".join(WORDS[(number * step) % 12] for step in range(1, 81)),
        }
        for number in range(IMPORTED)
    ]
    for start in range(0, IMPORTED, 1000):
        part = [{**header, "entries": 1000}, *notes[start : start + 1000]]
        text = "".join(json.dumps(each) + "\n" for each in part)
        answer = await client.post(f"{served.url}/knowledge/import", json={"format": "jsonl", "text": text})
        answer.raise_for_status()
        assert answer.json()["added"] == 1000, answer.text
    return str(notes[-1]["id"])


async def _is_embedded(client: httpx2.AsyncClient, served: Served, id: str) -> bool:
    answer = await client.get(f"{served.url}/knowledge/{id}")
    answer.raise_for_status()
    return answer.json()["embeddingStatus"] == "ready"


async def _await_embedded(client: httpx2.AsyncClient, served: Served, id: str) -> None:
    for _ in range(600):
        if await _is_embedded(client, served, id):
            return
        await asyncio.sleep(0.5)
    raise TimeoutError


def make_key(environment: dict[str, str], org: str) -> dict[str, str]:
    """Return the header that carries a new key."""
    options = ["--org", org, "--agent", "ann", "--scope", "knowledge:read", "--scope", "knowledge:write"]
    options += ["--scope", "knowledge:write_others", "--json"]
    command = [sys.executable, "-m", "refdesk", "keys", "create", *options]
    made = subprocess.run(command, env=environment, capture_output=True, check=True)
    return {"authorization": f"Bearer {json.loads(made.stdout)['key']}"}


def main() -> None:
    """Start a server, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=3, help="how often each load comes and goes")
    parser.add_argument("--count", type=int, default=100, help="searches in each window")
    parser.add_argument("--only", choices=["embedding"], help="only the last row")
    chosen = parser.parse_args()
    if chosen.only != "embedding":
        with serve("hashing") as served:
            asyncio.run(compare(served, chosen.windows, chosen.count))
    with serve("local") as served:
        asyncio.run(compare_embedding(served, chosen.windows, chosen.count))


@contextmanager
def serve(embedder: str) -> Generator[Served]:
    """Yield a server of its own, which knows nothing yet."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "REFDESK_HOME": str(Path(folder)), "REFDESK_EMBEDDER": embedder}
        command = [sys.executable, "-m", "refdesk", "serve", "--toolset", "knowledge", "--port", "0"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
            try:
                yield await_server(server, environment)
            finally:
                server.terminate()


def await_server(server: subprocess.Popen[bytes], environment: dict[str, str]) -> Served:
    """Return a server once it listens; what it logs from then on is read and forgotten."""
    assert server.stderr is not None
    log = server.stderr
    url = next(entry["url"] for entry in map(json.loads, log) if entry["message"] == "listening")
    threading.Thread(target=lambda: [None for _ in log], daemon=True).start()
    return Served(url, make_key(environment, "good"), make_key(environment, "bad"))


if __name__ == "__main__":
    main()
