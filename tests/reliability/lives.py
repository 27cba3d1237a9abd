"""Lives of the real command, each ended by SIGKILL sooner or later; see `nursery`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.processes import Running, Said, start

KILLED = -signal.SIGKILL
EARLY = "early"
"""In place of arguments: a server that answers before it commits."""
EARLY_WATERMARK = "early-watermark"
"""In place of arguments: a sync that notes how far it has come before it writes what it has read."""
CARELESS_MOVE = "careless-move"
"""In place of `migrate`: a move that notices nothing of what is written meanwhile."""


@dataclass
class Life:
    """One run of the command."""

    nursery: Running
    process: int
    said: Said
    status: int | None = None

    def kill(self) -> None:
        """End it at once, wherever it is."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)

    def read_log(self, message: str) -> dict[str, str] | None:
        """Return the entry of the log with this message, `None` when it ended before it wrote one."""
        while line := self.said.read_line():
            if line.startswith(b"{") and (entry := json.loads(line)).get("message") == message:
                return entry
        return None

    def wait(self) -> int:
        """Return its status once it has ended; `KILLED` if it was killed."""
        while self.status is None:
            self.said.read_rest()
            self.status = int(str(self.nursery.receive()))
        return self.status


@dataclass
class Nursery:
    """Starts the command on one home."""

    running: Running
    home: Path
    lives: int = 0

    @contextmanager
    def start(self, *arguments: str, calls: int | None = None, home: Path | None = None) -> Generator[Life]:
        """Start the command; it is killed at the latest when the block is left.

        Args:
            arguments: The command's.
            calls: It dies in place of so many-th call that would change the disk.
            home: Another one than the nursery's.
        """
        self.lives += 1
        pipe = self.home / f"log-{self.lives}"
        os.mkfifo(pipe)
        self.running.send({"arguments": arguments, "home": str(home or self.home), "log": str(pipe), "calls": calls})
        process = int(str(self.running.receive()))
        life = Life(self.running, process, Said(pipe.open("rb")))
        try:
            yield life
        finally:
            if life.status is None:
                life.kill()
                life.wait()


@contextmanager
def nursing(home: Path, **variables: str) -> Generator[Nursery]:
    """Yield a nursery whose children see this home and these settings."""
    home.mkdir(exist_ok=True)
    settings = {"REFDESK_EMBEDDER": "hashing", "OPENBLAS_NUM_THREADS": "1", **variables}
    with start(["-m", "tests.reliability.nursery"], home, **settings) as running:
        assert running.receive() == "ready"
        yield Nursery(running, home)
