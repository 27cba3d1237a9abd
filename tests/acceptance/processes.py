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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from refdesk.forwarder.rendezvous import list_places
from tests.conftest import REPOSITORY

WAIT_SECONDS = 120.0
"""Far above what anything takes, so that a loaded machine fails no test: it ends a hanging one."""

_END = b""
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


class Said:
    """What a process says, line by line.

    It is read from the beginning, whoever asks for it: a process that nobody listens to stands still once its pipe is
    full.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._lines = stream, SimpleQueue[bytes]()
        threading.Thread(target=self._listen, daemon=True).start()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines that nobody was given yet, until the process has ended, however long it is silent."""
        while line := self.read_line(None):
            yield line

    def read_line(self, seconds: float | None = WAIT_SECONDS) -> bytes:
        """Return the next line, or nothing when there is none any more."""
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            raise TimeoutError("it neither wrote nor ended") from None
        if line == _END:
            self._lines.put(_END)
        return line

    def read_rest(self) -> bytes:
        """Return what nobody was given yet, when the process has ended."""
        return b"".join(iter(self.read_line, _END))

    def _listen(self) -> None:
        with self._stream:
            for line in self._stream:
                self._lines.put(line)
        self._lines.put(_END)


class Running:
    """A process that is spoken to in JSON lines.

    Attributes:
        said: What it says on stderr.
        received: The lines that it answered.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        self.process, self.said = process, Said(process.stderr)
        process.stderr = None
        self.received: list[str] = []
        self._answers = b""

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
        line = self.read_line()
        self.received.append(line)
        return json.loads(line)

    def read_line(self) -> str:
        """Return the next line that it writes on stdout; waits for it at most `WAIT_SECONDS`."""
        assert self.process.stdout is not None
        number, deadline = self.process.stdout.fileno(), time.monotonic() + WAIT_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(number, selectors.EVENT_READ)
            while b"\n" not in self._answers:
                assert selector.select(deadline - time.monotonic()), "no line came in time"
                piece = os.read(number, 65536)
                assert piece, f"the stream ended: {self._answers!r}"
                self._answers += piece
        line, _, self._answers = self._answers.partition(b"\n")
        return line.decode()

    def read_log(self, message: str) -> dict[str, Any]:
        """Return the next entry of the log with this message."""
        while line := self.said.read_line():
            entry = json.loads(line)
            if entry["message"] == message:
                return entry
        raise AssertionError(f"it ended before it said {message!r}")

    def close(self) -> tuple[int, str, str]:
        """Close its stdin and return its status and what was left on stdout and stderr."""
        out, _ = self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode, out.decode(), self.said.read_rest().decode()


_STARTED: set[int] = set()
"""The processes that are running now."""


@contextmanager
def start(arguments: Sequence[str], home: Path, /, **variables: str) -> Generator[Running]:
    """Start a Python module; it is killed if it is still there at the end."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=make_environment(home, **variables),
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
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
