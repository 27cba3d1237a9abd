"""Tickets, which sign in to the console, without a typed key, whoever may read this machine's data folder.

A ticket stands for a key, opens once, and only for a short time: it is seen in the address of one request.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIFE_SECONDS = 60.0
MOST = 100
"""Most tickets waiting at once; beyond that the oldest are dropped."""


@dataclass(slots=True)
class Tickets:
    """The tickets of one server.

    Attributes:
        get_time: Returns seconds on a clock that never goes back.
    """

    get_time: Callable[[], float] = time.monotonic
    _waiting: dict[str, tuple[str, float]] = field(default_factory=dict[str, "tuple[str, float]"])

    def issue(self, key: str) -> str:
        """Return a new ticket for a key."""
        while len(self._waiting) >= MOST:
            del self._waiting[next(iter(self._waiting))]
        ticket = secrets.token_urlsafe(32)
        self._waiting[ticket] = (key, self.get_time() + LIFE_SECONDS)
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """Return the key that a ticket stands for, once only; `None` if it does not, or no longer, stand for one."""
        key, until = self._waiting.pop(ticket, ("", 0.0))
        return key if key and self.get_time() < until else None
