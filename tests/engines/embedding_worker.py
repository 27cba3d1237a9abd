"""A process that embeds: `python -m tests.engines.embedding_worker STORE REDIS`. It says `ready`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio

from refdesk.core.clock import SystemClock
from refdesk.core.indexing import Indexer
from refdesk.core.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.queues.bullmq import open_shared
from refdesk.stores.sqlite import open_store


async def embed(path: Path, url: str) -> None:
    """Embed until SIGTERM."""
    async with open_store(path) as store:
        semantics = Semantics(store, HashingEmbedder())
        async with open_shared(url, semantics.doorbell.ring) as shared, anyio.create_task_group() as group:
            group.start_soon(Indexer(store, semantics, SystemClock(), queue=shared.queue).run)
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            with anyio.open_signal_receiver(signal.SIGTERM) as signals:
                async for _ in signals:
                    group.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(embed, Path(sys.argv[1]), sys.argv[2])
