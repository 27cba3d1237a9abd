"""Another process on the same file. Run as `python -m tests.stores.sqlite.worker COMMAND PATH …`.

Every command first says "ready" and waits for a line, so that several can be let go at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from refdesk.model import Metadata, MetadataKey, State
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from tests.stores.samples import MODEL, NOTES, asking, embed, find_ids, make_document, near, passage, put, revise

COUNTER = MetadataKey("acme", "count", "n")
BATCH = 3


def say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def hear() -> str:
    return await anyio.to_thread.run_sync(sys.stdin.readline)


async def increment(store: Store, times: str) -> None:
    for _ in range(int(times)):
        async with store.transaction() as transaction:
            record = await transaction.get_metadata(COUNTER)
            count = record.value["n"] if record else 0
            assert isinstance(count, int)
            await transaction.put_metadata([Metadata(COUNTER, {"n": count + 1})])
    say("done")


async def look(store: Store) -> None:
    await store.check()
    say("done")


async def write_batches(store: Store, trial: str, manner: str) -> None:
    """Write batches for ever and say the number of each that is stored; `early` and `torn` are planted faults."""
    number = 0
    while True:
        ids = [f"{trial}-{number}-{part}" for part in range(BATCH)]
        halves = (ids[:1], ids[1:]) if manner == "torn" else (ids,)
        for half in halves:
            await write_batch(store, half, number if manner == "early" else None)
        if manner != "early":
            say(number)
        number += 1


async def write_batch(store: Store, ids: Sequence[str], early: int | None) -> None:
    documents = [make_document(id, body=f"batch {id} " * 20) for id in ids]
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)
        for each in documents:
            await transaction.put_vectors(NOTES, each.id, MODEL, each.text_digest, [passage([1, 0, 0, 0])])
        if early is not None:
            say(early)


async def obey(store: Store) -> None:
    while line := await hear():
        order: dict[str, Any] = json.loads(line)
        say(await ORDERS[order.pop("do")](store, **order))


async def put_body(store: Store, id: str, body: str) -> str:
    (old,) = await store.get_documents(NOTES, [id])
    await put(store, revise(old, body=body) if old else make_document(id, body))
    return "done"


async def withdraw(store: Store, id: str) -> str:
    (old,) = await store.get_documents(NOTES, [id])
    assert old is not None
    await put(store, revise(old, state=State.WITHDRAWN))
    return "done"


async def embed_as(store: Store, id: str, direction: list[float]) -> bool:
    (old,) = await store.get_documents(NOTES, [id])
    assert old is not None
    return await embed(store, old, passage(direction))


async def remove_model(store: Store) -> int:
    async with store.transaction() as transaction:
        return await transaction.remove_vectors(MODEL.name)


async def find(store: Store, text: str | None = None, direction: list[float] | None = None) -> list[str]:
    return await find_ids(store, asking(text, vector=near(direction) if direction else None))


ORDERS: dict[str, Callable[..., Awaitable[object]]] = {
    "put": put_body,
    "withdraw": withdraw,
    "embed": embed_as,
    "remove_model": remove_model,
    "find": find,
}
COMMANDS: dict[str, Callable[..., Awaitable[None]]] = {
    "increment": increment,
    "look": look,
    "write_batches": write_batches,
    "obey": obey,
}


async def run(command: str, path: str, options: Sequence[str]) -> None:
    async with open_store(Path(path)) as store:
        await COMMANDS[command](store, *options)


def write_in_children(path: str, manner: str) -> None:
    """For each trial that is named, have a child write batches until somebody kills it."""
    for trial in sys.stdin:
        child = os.fork()
        if child == 0:
            say(os.getpid())
            anyio.run(run, "write_batches", path, (trial.strip(), manner))
        os.waitpid(child, 0)
        say("ended")


def main(command: str, path: str, *options: str) -> None:
    say("ready")
    sys.stdin.readline()
    if command == "write_in_children":
        write_in_children(path, *options)
    else:
        anyio.run(run, command, path, options)


if __name__ == "__main__":
    main(*sys.argv[1:])
