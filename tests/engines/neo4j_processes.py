"""Starts and ends the processes of `neo4j_worker`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from tests.conftest import REPOSITORY
from tests.stores.sqlite.processes import Worker


class Neo4jWorker(Worker):
    """A process on a store in Neo4j, and its two pipes."""

    def __init__(self, command: str, url: str, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.neo4j_worker", command, url, *options],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


@contextmanager
def running_workers(command: str, url: str, *options: tuple[str, ...]) -> Generator[list[Neo4jWorker]]:
    """Yield one worker for each of `options`, let go at the same time; end them all on leaving."""
    with ExitStack() as stack:
        workers = [Neo4jWorker(command, url, *each) for each in options]
        for worker in workers:
            stack.callback(worker.close)
        for worker in workers:
            worker.wait_until_ready()
        for worker in workers:
            worker.go()
        yield workers
