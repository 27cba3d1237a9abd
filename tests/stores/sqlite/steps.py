"""How much SQLite does, told by itself: the same on every machine."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import apsw


@contextmanager
def counting_steps() -> Generator[list[int]]:
    """Yield the steps that SQLite's machine took for each statement, on connections that are opened meanwhile."""
    steps = list[int]()

    def note(event: dict[str, Any]) -> None:
        steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    def hook(connection: apsw.Connection) -> None:
        cast("Any", connection).trace_v2(apsw.SQLITE_TRACE_PROFILE, note)

    apsw.connection_hooks.append(hook)
    try:
        yield steps
    finally:
        apsw.connection_hooks.remove(hook)
