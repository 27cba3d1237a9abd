"""A process that works on a store and writes down all it asks of the disk and all it acknowledges, in order.

`python -m tests.reliability.recording FOLDER SYNCHRONOUS SEED` writes `FOLDER/journal`, one JSON object a line.
"""

from __future__ import annotations

import base64
import json
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import UUID

import anyio

from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import SystemClock
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.lineage import SEAL_SUFFIX
from refdesk.toolsets.knowledge.models import StoreInput, SupersedeInput
from refdesk.toolsets.knowledge.operations import store_knowledge, supersede_knowledge
from tests.reliability.agents import make_context
from tests.reliability.disk import Call, watch
from tests.reliability.inline import open_inline

AGENTS, CALLS_EACH, LIVES = 3, 20, 2


@dataclass
class Journal:
    """What was asked of the disk, and what was acknowledged, with what the seal beside the file said then."""

    seal: Path
    lines: list[dict[str, object]] = field(default_factory=list[dict[str, object]])

    def note_call(self, call: Call) -> None:
        data = base64.b64encode(call.data).decode()
        self.lines.append({"kind": call.kind, "path": call.path, "offset": call.offset, "data": data})

    def acknowledge(self, **what: str | None) -> None:
        seal = base64.b64encode(self.seal.read_bytes()).decode()
        self.lines.append({"acknowledged": {**what, "seal": seal}})


def open_as(path: Path, synchronous: str) -> AbstractAsyncContextManager[Store]:
    """Return the store as it is, or with a promise to the disk that it does not keep."""
    return open_store(path) if synchronous == "FULL" else open_inline(path, SystemClock(), synchronous)


async def work(base: KnowledgeBase, agent: str, random: Random, journal: Journal) -> None:
    """Store, mostly with a token, and supersede one's own entries now and then."""
    context, own = make_context(base, agent), list[str]()
    for number in range(CALLS_EACH):
        if len(own) > 1 and random.random() < 0.3:
            new, old = own[-1], own.pop(random.randrange(len(own) - 1))
            await supersede_knowledge(context, SupersedeInput(old_id=old, new_id=new))
            journal.acknowledge(old=old, new=new)
            continue
        token = str(UUID(int=random.getrandbits(128), version=4)) if random.random() < 0.7 else None
        title, body = f"{agent} {number}", "word " * random.choice((5, 1_000, 4_000))
        entry = StoreInput.model_validate({"title": title, "body": body, "clientToken": token})
        stored = await store_knowledge(context, entry)
        journal.acknowledge(id=stored.id, title=title, token=token and f"{agent}:{token}")
        own.append(stored.id)


async def live(path: Path, synchronous: str, random: Random, journal: Journal) -> None:
    async with open_as(path, synchronous) as store:
        semantics, clock = Semantics(store, HashingEmbedder()), SystemClock()
        base = KnowledgeBase(store, semantics, clock)
        async with anyio.create_task_group() as group:
            for number in range(AGENTS):
                group.start_soon(work, base, f"agent {number} of {len(journal.lines)}", random, journal)
            for _ in range(CALLS_EACH):
                await Indexer(store, semantics, clock).run_once()


async def record(folder: Path, synchronous: str, seed: int) -> None:
    journal = Journal(folder / f"store.sqlite3{SEAL_SUFFIX}")
    watch(journal.note_call)
    # The schema is made as it should be: what is tried is what comes after.
    async with open_store(folder / "store.sqlite3"):
        pass
    journal.acknowledge()
    for _ in range(LIVES):
        await live(folder / "store.sqlite3", synchronous, Random(seed), journal)
    with (folder / "journal").open("w") as file:
        file.writelines(json.dumps(line) + "\n" for line in journal.lines)


if __name__ == "__main__":
    anyio.run(record, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
