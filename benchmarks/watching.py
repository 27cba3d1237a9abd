"""How soon after the commit watches report what is new: in the agent's list, to a subscriber, and to a webhook.

    python -m benchmarks.watching [--servers 3] [--notes 30] [--store URL]

Real servers on one store, SQLite unless a URL names another; notes are stored through the first, and what is new is
asked of the last. A search watch matches each note. The promise is two seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

LOOK_SECONDS = 0.02
GIVE_UP_SECONDS = 30.0


class Receiver(BaseHTTPRequestHandler):
    """Notes when the message about each note came."""

    came: dict[str, float] = {}  # noqa: RUF012 - of the one server of this process

    def do_POST(self) -> None:
        """Take one message."""
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.came.setdefault(said["data"]["id"], time.perf_counter())
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""
        del format, args


def start(stack: ExitStack, home: Path, variables: dict[str, str]) -> str:
    """Start a server and return its URL."""
    served = ("--port", "0", "--no-auth", "--toolset", "knowledge", "--toolset", "skills")
    process = subprocess.Popen(
        [sys.executable, "-m", "refdesk", "serve", *served],
        env={**os.environ, "REFDESK_HOME": str(home), "REFDESK_CONFIG": "none", **variables},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stderr is not None
    for line in process.stderr:
        entry: dict[str, Any] = json.loads(line)
        if entry["message"] == "listening":
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return str(entry["url"])
    sys.exit("The server ended before it listened.")


def measure(servers: int, notes: int, store: str | None) -> None:
    """Print how soon each note was reported."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        variables = {"REFDESK_WEBHOOK_PRIVATE": "127.0.0.1", "REFDESK_AGENT": "bench"}
        if store is not None:
            variables["REFDESK_STORE"] = store
        urls = [start(stack, home, variables) for _ in range(servers)]
        first, last = (stack.enter_context(httpx2.Client(base_url=url, timeout=60.0)) for url in (urls[0], urls[-1]))
        hook = f"http://127.0.0.1:{receiver.server_address[1]}/"
        made = first.post("/watches", json={"kind": "search", "subject": "gate code", "webhook": hook})
        made.raise_for_status()
        # What the first look loads is no part of how soon the next ones are.
        told = [report(first, last, f"Gate code {number}") for number in range(notes + 1)][1:]
        deadline = time.perf_counter() + GIVE_UP_SECONDS
        while len(Receiver.came) < notes + 1 and time.perf_counter() < deadline:
            time.sleep(LOOK_SECONDS)
        sent = [Receiver.came[id] - committed for id, committed, _ in told]
        show("in the list", [listed - committed for _, committed, listed in told])
        show("by webhook", sent)


def report(first: httpx2.Client, last: httpx2.Client, title: str) -> tuple[str, float, float]:
    """Store a note; return its id, when that was answered, and when it was in the list."""
    answer = first.post("/knowledge", json={"title": title, "body": "It is 12."})
    answer.raise_for_status()
    committed, id = time.perf_counter(), str(answer.json()["id"])
    while time.perf_counter() - committed < GIVE_UP_SECONDS:
        news = last.get("/watches/news", params={"limit": 5}).json()["news"]
        if any(each["id"] == id for each in news):
            return id, committed, time.perf_counter()
        time.sleep(LOOK_SECONDS)
    sys.exit(f"{title} was not reported within {GIVE_UP_SECONDS:g} seconds.")


def show(name: str, seconds: list[float]) -> None:
    """Print one line of figures."""
    ordered = sorted(seconds)
    late = sum(each > 2.0 for each in ordered)
    sys.stdout.write(
        f"{name}: median {median(ordered):.3f} s, 95 % {ordered[int(len(ordered) * 0.95)]:.3f} s, "
        f"longest {ordered[-1]:.3f} s, {late} of {len(ordered)} later than 2 s\n"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watching")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--notes", type=int, default=30)
    parser.add_argument("--store")
    options = parser.parse_args()
    measure(options.servers, options.notes, options.store)


if __name__ == "__main__":
    main()
