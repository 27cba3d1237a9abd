"""What a call over streamable HTTP costs the server: answered in one body, and as a stream because it reports progress.

    python -m benchmarks.streaming [--rounds 5] [--calls 200] [--json]

Calls of each kind are made in turns, in this one run. CPU milliseconds are those of the server's process, user and
system. `REFDESK_BENCHMARK_SOURCE` names another source folder to serve from, so that two versions can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from statistics import median
from typing import Any

import httpx2

KINDS = ("2025 one body", "2025 stream", "2026 one body", "2026 stream")
ACCEPT = {"accept": "application/json, text/event-stream"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "streaming", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "search_knowledge"}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "streaming", "version": "1"}}
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def serve() -> Generator[tuple[int, str]]:
    """Yield the process id and the address of a server with nothing in its store."""
    with tempfile.TemporaryDirectory() as home:
        source = os.environ.get("REFDESK_BENCHMARK_SOURCE")
        chosen = {
            "REFDESK_HOME": home,
            "REFDESK_EMBEDDER": "hashing",
            "REFDESK_AZURE_UPDATES_URL": "http://127.0.0.1:9",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "refdesk", "serve", "--no-auth", "--port", "0"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **chosen, **({"PYTHONPATH": source} if source else {})},
        )
        assert process.stderr is not None
        try:
            while not (found := re.search(rb'"url": "(http:[^"]+)"', process.stderr.readline())):
                assert process.poll() is None
            yield process.pid, found[1].decode()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


def read_cpu(pid: int) -> float:
    """Return the CPU seconds of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def make_call(kind: str, session: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the message and the headers of a call of a kind."""
    is_modern, is_stream = kind.startswith("2026"), kind.endswith("stream")
    meta: dict[str, Any] = {**(ENVELOPE if is_modern else {}), **({"progressToken": 1} if is_stream else {})}
    params = {"name": "search_knowledge", "arguments": {"query": "refund limit"}, "_meta": meta}
    headers = {**ACCEPT, **(MODERN if is_modern else {"mcp-session-id": session})}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}, headers


def measure(web: httpx2.Client, pid: int, kind: str, session: str, calls: int) -> float:
    """Return the server's CPU milliseconds of one call of a kind."""
    message, headers = make_call(kind, session)
    before = read_cpu(pid)
    for _ in range(calls):
        answer = web.post("/mcp", json=message, headers=headers)
        assert '"isError":true' not in answer.text
        assert answer.status_code == 200, answer.text
    return (read_cpu(pid) - before) / calls * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with serve() as (pid, url), httpx2.Client(base_url=url, timeout=60) as web:
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING}
        session = web.post("/mcp", json=opening, headers=ACCEPT).headers["mcp-session-id"]
        for kind in KINDS:
            measure(web, pid, kind, session, 20)
        rounds = [
            {kind: measure(web, pid, kind, session, options.calls) for kind in KINDS} for _ in range(options.rounds)
        ]
    result = {f"{kind}, CPU ms": round(median(each[kind] for each in rounds), 2) for kind in KINDS}
    print(json.dumps(result) if options.json else "\n".join(f"{name:24}{value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
