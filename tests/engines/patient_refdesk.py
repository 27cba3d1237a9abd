"""`python -m tests.engines.patient_refdesk`: the command `refdesk`, which waits for Redis for as long as it takes.

So do jobs at work when it is to end, and Neo4j has longer until it is taken for silent. By its own deadlines a loaded
machine would decide what becomes of a test in which nothing is broken.
"""

from __future__ import annotations

from typing import Any, cast

from refdesk.__main__ import main
from refdesk.queues import bullmq
from refdesk.queues.bullmq import working
from refdesk.stores.neo4j import silence

PATIENCE_SECONDS = 180.0
PROBE_SECONDS = 15.0
MODULE = "tests.engines.patient_refdesk"


def make_patient() -> None:
    """Set the deadlines of this process."""
    cast("Any", bullmq.open_shared).__wrapped__.__kwdefaults__["patience"] = PATIENCE_SECONDS
    working.DRAIN_SECONDS = PATIENCE_SECONDS
    working.ANSWER_SECONDS = PATIENCE_SECONDS
    silence.PROBE_SECONDS = PROBE_SECONDS


if __name__ == "__main__":
    make_patient()
    main()
