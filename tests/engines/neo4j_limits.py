"""How long tests wait for Neo4j: as long as it takes, but for what never comes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from refdesk.stores.neo4j.connections import Limits

HOUR = 3600.0
PATIENT = Limits(connect=HOUR, statement=HOUR, patience=HOUR)


@contextmanager
def shortened(limits: Limits, seconds: float) -> Generator[None]:
    """Let an open store wait so long and no longer within the block: what is to succeed before or after may take its
    time."""
    before = {name: getattr(limits, name) for name in ("statement", "patience")}
    try:
        for name in before:
            object.__setattr__(limits, name, seconds)
        yield
    finally:
        for name, value in before.items():
            object.__setattr__(limits, name, value)
