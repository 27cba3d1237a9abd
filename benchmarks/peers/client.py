"""A client of one server over stdio, and what its processes take: every process that carries the mark of a run."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ANSWER_SECONDS = 300.0
"""For one answer, on a machine that does other things as well; whoever takes longer is said not to answer."""

MARK = "PEERS_RUN"
HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "peers", "version": "1"}}

Answer = dict[str, Any]


class PeerError(Exception):
    """A rival said no, ended, or did not answer."""


class Client:
    """One server process and the conversation with it.

    Args:
        command: Starts it.
        variables: Are added to the environment; those that begin with `REFDESK_` are not inherited.
        mark: Marks all processes that come of it; one of its own unless several clients share one.
    """

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], mark: str | None = None) -> None:
        self.mark = mark or uuid.uuid4().hex
        self.began = time.perf_counter()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("REFDESK_")}
        inherited.pop("PYTHONDONTWRITEBYTECODE", None)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**inherited, **variables, MARK: self.mark},
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._ids = 0

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def open(self) -> list[Answer]:
        """Shake hands, and return the tools that are listed."""
        self.ask("initialize", HANDSHAKE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self.ask("tools/list", {})["tools"]

    def ask(self, method: str, params: Answer, seconds: float = ANSWER_SECONDS) -> Answer:
        """Return the result of a request.

        Raises:
            PeerError: It answered with an error, ended, or gave no answer in so many seconds.
        """
        self._ids += 1
        self._send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        until = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                raise PeerError(f"no answer within {seconds:.0f} s") from None
            if not line:
                raise PeerError("its process ended")
            if not line.startswith(b"{"):
                continue  # what it prints besides
            said = json.loads(line)
            if said.get("id") == self._ids and "method" not in said:
                if "result" not in said:
                    raise PeerError(str(said.get("error"))[:300])
                return said["result"]

    def call(self, name: str, arguments: Answer, seconds: float = ANSWER_SECONDS) -> Answer:
        """Return the answer of a tool, as the protocol has it.

        Raises:
            PeerError: The tool failed; else as in `ask`.
        """
        answer = self.ask("tools/call", {"name": name, "arguments": arguments}, seconds)
        if answer.get("isError"):
            raise PeerError(get_text(answer)[:300])
        return answer

    def close(self) -> None:
        """End it and everything that carries its mark."""
        self.hang_up()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.kill()

    def hang_up(self) -> None:
        """Close its input, on which a server ends."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def kill(self) -> None:
        """Kill it and everything that carries its mark, at once."""
        self.hang_up()
        kill_marked(self.mark)
        self.reap()

    def reap(self) -> None:
        """Return when its process has ended and nothing of it is open any more."""
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _send(self, message: Answer) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise PeerError("its process ended") from None


def get_text(answer: Answer) -> str:
    """Return the text of a tool's answer."""
    return "\n".join(each.get("text", "") for each in answer.get("content", ()))


def list_marked(mark: str) -> list[int]:
    """Return the processes that carry a mark."""
    wanted = f"{MARK}={mark}".encode()
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue  # not ours, or gone
    return found


def signal_marked(mark: str, number: signal.Signals) -> None:
    """Send a signal to everything that carries a mark."""
    for process in list_marked(mark):
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


def kill_marked(mark: str) -> None:
    """Kill everything that carries a mark, and return when nothing does: a fork may slip through one look."""
    while list_marked(mark):
        signal_marked(mark, signal.SIGKILL)
        time.sleep(0.01)


def measure_memory(mark: str) -> int:
    """Return the proportional set size, in bytes, of everything that carries a mark."""
    total = 0
    for process in list_marked(mark):
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        found = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
        total += int(found[1]) * 1024 if found is not None else 0
    return total


def measure_files(folder: Path) -> int:
    """Return the bytes that a folder's files take on disk, without the encoder, which most keep elsewhere."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".onnx")
    return sum(path.lstat().st_blocks * 512 for path in paths)
