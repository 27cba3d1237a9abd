"""Real processes: the command as a user starts it, with bounded waits."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from refdesk.forwarder.rendezvous import list_places
from tests.conftest import REPOSITORY

WAIT_SECONDS = 40.0
TOOLS = [
    "search_azure_updates",
    *("store_knowledge", "search_knowledge", "supersede_knowledge", "get_knowledge"),
    *("withdraw_knowledge", "restore_knowledge"),
    *("search_skills", "get_skill", "create_skill", "update_skill", "report_outcome", "withdraw_outcome"),
    "search_everything",
]
NOWHERE = "http://127.0.0.1:9/feed"
"""A port where nobody listens: no test reads the real feed."""


def make_environment(home: Path, **variables: str) -> dict[str, str]:
    """What a process sees: nothing of this machine's settings."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT", "LANG") if name in os.environ}
    own = {"REFDESK_HOME": str(home), "REFDESK_AZURE_UPDATES_URL": NOWHERE, "REFDESK_DESK_IDLE": "60"}
    own["REFDESK_CONFIG"] = "none"
    return {**kept, **own, **variables}


def run(arguments: Sequence[str], home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `refdesk` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "refdesk", *arguments],
        env=make_environment(home, **variables),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


@dataclass
class Running:
    """A process that is spoken to in JSON lines."""

    process: subprocess.Popen[bytes]
    received: list[str] = field(default_factory=list[str])
    _buffers: dict[int, bytes] = field(default_factory=dict[int, bytes])

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, id: int, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        answer = self.receive()
        assert answer["id"] == id
        return answer

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.read_line(self.process.stdout)
        self.received.append(line)
        return json.loads(line)

    def read_line(self, stream: IO[bytes]) -> str:
        """Return the next line of a stream; waits for it at most `WAIT_SECONDS`."""
        number, deadline = stream.fileno(), time.monotonic() + WAIT_SECONDS
        buffer = self._buffers.get(number, b"")
        with selectors.DefaultSelector() as selector:
            selector.register(number, selectors.EVENT_READ)
            while b"\n" not in buffer:
                assert selector.select(deadline - time.monotonic()), "no line came in time"
                piece = os.read(number, 65536)
                assert piece, f"the stream ended: {buffer!r}"
                buffer += piece
        line, _, self._buffers[number] = buffer.partition(b"\n")
        return line.decode()

    def read_log(self, message: str) -> dict[str, Any]:
        """Return the first entry of the log with this message."""
        assert self.process.stderr is not None
        while True:
            entry = json.loads(self.read_line(self.process.stderr))
            if entry["message"] == message:
                return entry

    def close(self) -> tuple[int, str, str]:
        """Close its stdin and return its status and what was left on stdout and stderr."""
        out, err = self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode, out.decode(), (err or b"").decode()


_STARTED: set[int] = set()
"""The processes that are running now."""


@contextmanager
def start(
    arguments: Sequence[str], home: Path, log: IO[bytes] | None = None, /, **variables: str
) -> Generator[Running]:
    """Start a Python module; it is killed if it is still there at the end.

    What says more on stderr than a pipe holds, before anybody reads it, needs a file for its `log`.
    """
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=make_environment(home, **variables),
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log or subprocess.PIPE,
    )
    _STARTED.add(process.pid)
    try:
        yield Running(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=WAIT_SECONDS)
        _STARTED.discard(process.pid)
        kill_desks(home)


@contextmanager
def watching(server: Running, watch: Callable[[], None]) -> Generator[None]:
    """Watch a server in a thread that ends with it; it is told to end on leaving, and must do so in order."""
    thread = threading.Thread(target=watch)
    thread.start()
    yield
    server.process.terminate()
    assert server.process.wait(WAIT_SECONDS) == 0
    thread.join()


def list_desks(home: Path) -> list[int]:
    """Return the processes that have announced themselves as desks of a data folder."""
    return [found.pid for _, found in list_places(str(home))]


def kill_desks(home: Path) -> None:
    """End the desks of a data folder, so that no test leaves one behind, but not what a test runs itself."""
    for pid in set(list_desks(home)) - _STARTED:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
ENVELOPE = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


def shake_hands(server: Running) -> dict[str, Any]:
    """Open a connection of the handshake era."""
    answer = server.ask(1, "initialize", HANDSHAKE)
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return answer
