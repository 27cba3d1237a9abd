"""Starts and ends the processes of `worker`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.conftest import REPOSITORY

PATIENCE_SECONDS = 120


class Worker:
    """A process and its two pipes. Its errors go to the test's own."""

    def __init__(self, command: str, path: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.sqlite.worker", command, str(path), *options],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> None:
        assert self.hear() == "ready"

    def go(self) -> None:
        self.write("")

    def order(self, do: str, **options: object) -> object:
        """Have the worker do something; return what it answers."""
        self.write(json.dumps({"do": do, **options}))
        return self.hear()

    def hear(self) -> object:
        """Return the next thing it says. A process that ends without a word fails the test."""
        return next(self.hear_all())

    def hear_all(self) -> Iterator[object]:
        assert self._process.stdout is not None
        return (json.loads(line) for line in self._process.stdout if line.endswith("\n"))

    def finish(self) -> int:
        """Return its exit status, once it has ended by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


@contextmanager
def running(count: int, command: str, path: Path, *options: str) -> Generator[list[Worker]]:
    """Yield so many workers that were let go at the same time; end them all on leaving."""
    with ExitStack() as stack:
        workers = [Worker(command, path, *options) for _ in range(count)]
        for worker in workers:
            stack.callback(worker.close)
        for worker in workers:
            worker.wait_until_ready()
        for worker in workers:
            worker.go()
        yield workers
