"""A cache of the issuer's endpoints, so that people who begin to sign in cannot make the server ask too often."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from refdesk import errors
from refdesk.server.oauth.key_set import AFTER_FAILURE, KEPT

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.protocols import Clock
    from refdesk.server.oauth.issuer import Endpoints

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class EndpointSet:
    """The endpoints of one issuer.

    Attributes:
        fetch: Returns the endpoints that the issuer names now, in bounded time; raises `WorldError`.
    """

    fetch: Callable[[], Awaitable[Endpoints]]
    clock: Clock
    _found: Endpoints | None = None
    _trouble: str | None = None
    _tried_at: datetime | None = None
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def find(self) -> Endpoints:
        """Return the endpoints; while the issuer does not answer, those that were read last.

        Raises:
            WorldError: The issuer has never answered; the message says why.
        """
        async with self._lock:
            if not self._is_recent():
                # A browser that goes away must not cancel a request that others wait for too; it is bounded in time.
                with anyio.CancelScope(shield=True):
                    await self._read()
                self._tried_at = self.clock.now()
        if self._found is None:
            raise errors.WorldError(self._trouble or "")
        return self._found

    def _is_recent(self) -> bool:
        kept = AFTER_FAILURE if self._trouble is not None else KEPT
        return self._tried_at is not None and self._tried_at <= self.clock.now() < self._tried_at + kept

    async def _read(self) -> None:
        try:
            self._found, self._trouble = await self.fetch(), None
        except errors.WorldError as error:
            if self._trouble is None:
                logger.warning("issuer not read", extra={"reason": error.message})
            self._trouble = error.message
