"""Puts refusals on record: the first of a kind at once, its repetitions once a minute with their number.

Otherwise a caller that is refused as fast as it can ask would determine how much is written to the disk.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import anyio

from refdesk.core.writing import audit
from refdesk.errors import RefdeskError

if TYPE_CHECKING:
    from refdesk.core.writing.audit import Actor
    from refdesk.protocols import Clock, Store

logger = logging.getLogger(__name__)

WINDOW = timedelta(minutes=1)
MOST_KINDS = 10_000
MOST_SECONDS = 2.0
"""How long an answer waits for its record, so that a store that does not respond does not hold up refusals."""


@dataclass(slots=True)
class Refusals:
    """What was refused lately: to whom, which action, and why."""

    _kinds: dict[tuple[str, ...], tuple[datetime, int]] = field(
        default_factory=dict[tuple[str, ...], tuple[datetime, int]]
    )

    async def note(self, store: Store, clock: Clock, actor: Actor, action: str, code: str) -> None:
        """Put a refusal on record, unless it is a repetition within the window; does not raise if the store fails."""
        now = clock.now()
        times = self._count((actor.org, actor.agent, actor.address, action, code), now)
        if times:
            details = {"times": times} if times > 1 else None
            act = audit.make_act(actor, action, details=details, outcome=f"refused: {code}")
            try:
                with anyio.move_on_after(MOST_SECONDS):
                    async with store.transaction() as transaction:
                        await audit.append(transaction, actor.org, now, act)
            except RefdeskError as error:
                logger.warning("refusal not on record", extra={"code": code, "reason": error.message})

    def _count(self, kind: tuple[str, ...], now: datetime) -> int:
        """Return how many refusals the record to be written now stands for; 0 if none is to be written."""
        since, waiting = self._kinds.pop(kind, (now - WINDOW, 0))
        is_due = now - since >= WINDOW
        while len(self._kinds) >= MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = (now, 0) if is_due else (since, waiting + 1)
        return waiting + 1 if is_due else 0
