"""Another process on a PostgreSQL store. Run as `python -m tests.engines.postgres_worker COMMAND URL …`.

Every command first says "ready" and waits for a line, so that several can be let go at once.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager

import anyio

from refdesk.model import Metadata, MetadataKey
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.store import PostgresStore
from tests.conftest import REPOSITORY
from tests.stores.samples import embed, make_document, passage, put

PATIENCE_SECONDS = 120
COUNTER = MetadataKey("acme", "count", "n")


def say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def increment(store: Store, times: str) -> None:
    for _ in range(int(times)):
        async with store.transaction() as transaction:
            record = await transaction.get_metadata(COUNTER)
            count = record.value["n"] if record else 0
            assert isinstance(count, int)
            await transaction.put_metadata([Metadata(COUNTER, {"n": count + 1})])


async def write(store: Store, name: str, times: str) -> None:
    for number in range(int(times)):
        await put(store, make_document(f"{name}-{number}", f"apple {name}", title=f"Note {number}"))


async def load(store: Store) -> None:
    """Write until killed; say the number of each document when it is committed with its vector."""
    async with store.loading():
        for number in itertools.count():
            document = make_document(f"d{number}", "apple")
            await put(store, document)
            assert await embed(store, document, passage((1, number, 0, 0)))
            say(number)


async def look(store: Store) -> None:
    await store.check()


async def build(store: Store) -> None:
    assert isinstance(store, PostgresStore)
    await store.graphs.wait()


COMMANDS: dict[str, Callable[..., Awaitable[None]]] = {
    "increment": increment,
    "write": write,
    "load": load,
    "look": look,
    "build": build,
}


async def run(command: str, url: str, *options: str) -> None:
    async with open_store(url) as store:
        await COMMANDS[command](store, *options)


@contextmanager
def running(*commands: tuple[str, ...]) -> Generator[list[subprocess.Popen[str]]]:
    """Yield a worker for each command, all let go at the same time; end them on leaving."""
    with ExitStack() as stack:
        workers = [stack.enter_context(start(command)) for command in commands]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("\n")
            worker.stdin.flush()
        yield workers


@contextmanager
def start(command: tuple[str, ...]) -> Generator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-m", "tests.engines.postgres_worker", *command]
    with subprocess.Popen(
        arguments, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def main(command: str, url: str, *options: str) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    anyio.run(run, command, url, *options)


if __name__ == "__main__":
    main(*sys.argv[1:])
