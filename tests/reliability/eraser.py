"""A process that stores notes, each with a canary of its own, and erases some; it says what it has done, line by line.

`--fault unaudited` writes past the record, `--fault unscrubbed` leaves the file as it is: faults that must be caught.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random

import anyio

from refdesk.core.clock import SystemClock
from refdesk.core.keeping import erasing
from refdesk.core.writing import audit
from refdesk.model import Collection, Document
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from tests.reliability.delegates import DelegatingStore

NOTES = Collection("acme", "knowledge")
ACTOR = audit.Actor("acme", "ann", "test")


class WithoutScrubbing(DelegatingStore):
    async def scrub(self) -> bool:
        return True


def tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


async def add(store: Store, id: str, canary: str) -> None:
    now = SystemClock().now()
    note = Document(
        collection=NOTES,
        id=id,
        title=canary,
        body=f"{canary} " * 200,
        author="ann",
        created_at=now,
        modified_at=now,
        data={"source": "agent", "confidence": 80},
    )
    async with store.transaction() as transaction:
        await transaction.put_documents([note])
    tell("stored", id, canary)


async def work(path: Path, seed: int, fault: str) -> None:
    random, clock, kept = Random(seed), SystemClock(), list[tuple[str, str]]()
    async with open_store(path) as opened:
        store: Store = WithoutScrubbing(opened) if fault == "unscrubbed" else opened
        watched = store if fault == "unaudited" else audit.watch(store, clock, ACTOR, "store_knowledge")
        tell("ready")
        for number in range(10_000):
            id, canary = f"{seed}-{number}", f"canary-{seed}-{number}-{random.randrange(10**9)}"
            await add(watched, id, canary)
            kept.append((id, canary))
            if random.random() < 0.3:
                gone, its_canary = kept.pop(random.randrange(len(kept)))
                await erasing.erase(store, clock, ACTOR, erasing.Erasable("acme", gone))
                tell("erased", gone, its_canary)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("--fault", default="")
    given = parser.parse_args()
    anyio.run(work, given.path, given.seed, given.fault)
