"""What the audit log costs a store: the same notes with and without it, taking turns on one file each.

`python -m benchmarks.audit [ROUNDS]` prints the 50th and 95th percentile of both, and their ratios.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import anyio
import numpy as np

from refdesk.core.clock import SystemClock
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.writing import audit
from refdesk.model import Principal
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge.models import StoreInput
from refdesk.toolsets.knowledge.operations import store_knowledge

ROUNDS = 400


async def measure(rounds: int) -> dict[str, list[float]]:
    """Return how long each store took, in seconds, by whether it was on record."""
    taken: dict[str, list[float]] = {"without": [], "with": []}
    clock, principal = SystemClock(), Principal("acme", "ann", frozenset())
    actor = audit.make_actor(principal, "mcp")
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(Path(folder) / "a.sqlite3") as plain, open_store(Path(folder) / "b.sqlite3") as recorded:
            for number in range(rounds):
                note = StoreInput.model_validate(
                    {"title": f"Note {number}", "body": f"What was learned in round {number}. " * 20}
                )
                for name, store in (("without", plain), ("with", recorded)):
                    kept = audit.watch(store, clock, actor, "store_knowledge") if name == "with" else store
                    began = time.perf_counter()
                    await store_knowledge(Context(principal, KnowledgeBase(kept)), note)
                    taken[name].append(time.perf_counter() - began)
    return taken


def main() -> None:
    """Measure and print."""
    taken = anyio.run(measure, int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
    for percentile in (50, 95):
        without, with_it = (float(np.percentile(taken[name], percentile)) * 1000 for name in ("without", "with"))
        print(f"p{percentile}: {without:.2f} ms without, {with_it:.2f} ms with the log: {with_it / without:.2f} times")


if __name__ == "__main__":
    main()
