"""Another process on the same Neo4j. Run as `python -m tests.engines.neo4j_worker COMMAND URL …`.

Every command first says "ready" and waits for a line, so that several can be let go at once.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence

import anyio

from refdesk.errors import StoreError
from refdesk.protocols import Store
from refdesk.stores.neo4j import open_store
from tests.stores.samples import NOTES, make_document
from tests.stores.sqlite.worker import BATCH, increment, obey, say, write_batch


async def write_for_ever(store: Store, name: str, manner: str) -> None:
    """Write batches and say the number of each that is stored; `early` is a planted fault.

    A batch that failed is looked for, as the error says, and written if it is not there.
    """
    number = 0
    while True:
        ids = [f"{name}-{number}-{part}" for part in range(BATCH)]
        try:
            is_there = None not in await store.get_documents(NOTES, ids)
        except StoreError:
            continue
        try:
            if not is_there:
                await write_batch(store, ids, number if manner == "early" else None)
        except StoreError:
            if manner != "early":
                continue
        if manner != "early":
            say(number)
        number += 1


async def hold(store: Store) -> None:
    """Hold the lock of a transaction for ever."""
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("held")])
        say("held")
        await anyio.sleep_forever()


COMMANDS: dict[str, Callable[..., Awaitable[None]]] = {
    "increment": increment,
    "obey": obey,
    "write_for_ever": write_for_ever,
    "hold": hold,
}


async def run(command: str, url: str, options: Sequence[str]) -> None:
    async with open_store(url) as store:
        await COMMANDS[command](store, *options)


def main(command: str, url: str, *options: str) -> None:
    say("ready")
    sys.stdin.readline()
    anyio.run(run, command, url, options)


if __name__ == "__main__":
    main(*sys.argv[1:])
