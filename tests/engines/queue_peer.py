"""BullMQ's official library for Node as the other end of the queue.

It is installed by `npm ci` from the pinned `node/package-lock.json` into the cache folder of pytest, once; without the
compiled parts that are optional and differ from machine to machine.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent / "node"
INSTALL_SECONDS = 300.0
ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Peer:
    """A running Node process that is spoken to in JSON lines."""

    process: subprocess.Popen[str]

    def tell(self, message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self) -> object:
        """Return the next thing it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it ended without a word"
        return json.loads(line)

    def end(self) -> int:
        """Close its stdin and return its status once it has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(ANSWER_SECONDS)


@contextmanager
def start_peer(folder: Path, *arguments: str) -> Generator[Peer]:
    """Yield a peer; it is killed if it is still there at the end."""
    process = subprocess.Popen(
        ["node", "peer.mjs", *arguments], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Peer(process)
    finally:
        process.kill()
        process.wait(ANSWER_SECONDS)
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def install_peer(cache: Path) -> Path:
    """Return the folder it is in, below `cache`; without it, skip the test or fail it where it is required."""
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        _do_without(f"no {' and no '.join(missing)}: the queue cannot be tried with Node")
    folder = cache / "queue-peer"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (SOURCE / "package-lock.json").read_text()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "installed.json"
        if not stamp.is_file() or stamp.read_text() != wanted:
            _install(folder)
            stamp.write_text(wanted)
        shutil.copy(SOURCE / "peer.mjs", folder)
    return folder


def _install(folder: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCE / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(folder / "npm-cache")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if done.returncode:
        _do_without(f"npm could not install the other end of the queue: {done.stderr[-500:]}")


def _do_without(reason: str) -> None:
    if "redis" in os.environ.get("REFDESK_TEST_ENGINES", ""):
        pytest.fail(reason)
    pytest.skip(reason)
