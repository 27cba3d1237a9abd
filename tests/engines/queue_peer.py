"""BullMQ's official library for Node as the other end of the queue.

It is installed by `npm ci` from the pinned `node/package-lock.json` into the cache folder of pytest, once; without the
compiled parts that are optional and differ from machine to machine.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import npm

SOURCE = Path(__file__).resolve().parent / "node"
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
    folder = cache / "queue-peer"
    is_required = "redis" in os.environ.get("REFDESK_TEST_ENGINES", "")
    npm.install(SOURCE, folder, "the other end of the queue", is_required=is_required)
    npm.put(SOURCE / "peer.mjs", folder)
    return folder
