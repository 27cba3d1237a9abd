"""A cache of the issuer's keys: fetched on first use, by one caller at a time, with a time to live.

Whatever tokens they send, callers cannot make the server ask the issuer more often than `MOST_LOOKS` and
`AFTER_FAILURE` allow.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import anyio

from refdesk import errors
from refdesk.server.oauth.signing_keys import choose_key

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.protocols import Clock
    from refdesk.server.oauth.issuer import Published
    from refdesk.server.oauth.signing_keys import SigningKey

logger = logging.getLogger(__name__)

KEPT = timedelta(minutes=10)
"""How long keys are fresh if the issuer does not say."""

LEAST_KEPT, MOST_KEPT = timedelta(minutes=1), timedelta(hours=1)
"""The bounds of what the issuer may say. While it answers, a key that it withdraws is accepted for at most an hour."""

STALE = timedelta(hours=24)
"""How long keys remain in use after they were read while the issuer does not answer."""

ASK_AGAIN = timedelta(minutes=1)
"""The pause before the issuer is asked again for a key that it did not have."""

MOST_LOOKS = 3
"""For how many unknown keys the issuer is asked within `ASK_AGAIN`. More than one: a client that sends the token of
some other issuer must not keep a key from being found that this one has just begun to use."""

AFTER_FAILURE = timedelta(seconds=15)
"""The pause after the issuer did not answer, from when it was given up."""


@dataclass(slots=True)
class KeySet:
    """The keys of one issuer.

    Attributes:
        issuer: Its name, for the log.
        fetch: Returns the keys that the issuer publishes now, in bounded time; raises `WorldError`.
    """

    issuer: str
    fetch: Callable[[], Awaitable[Published]]
    clock: Clock
    _keys: tuple[SigningKey, ...] = ()
    _read_at: datetime | None = None
    _fresh_for: timedelta = timedelta()
    _tried_at: datetime | None = None
    _tries: int = 0
    _trouble: str | None = None
    _looked_for: dict[tuple[str | None, str], datetime] = field(
        default_factory=dict[tuple[str | None, str], "datetime"]
    )
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def find(self, id: str | None, algorithm: str, *, is_issued_now: bool = False) -> SigningKey | None:
        """Return the key that a token's header refers to, or `None` if the issuer has no such key.

        Args:
            id: Its id, if the header names one.
            algorithm: What the token is signed by.
            is_issued_now: Whether the issuer itself has just given the token to this server; its key is then looked for
                in any case.

        Raises:
            WorldError: The issuer does not answer, and none of its known keys may still be used, or none is that of a
                token which it has just given.
        """
        key, tries = self._choose(id, algorithm), self._tries
        if not self._was_within(self._read_at, self._fresh_for) and not (key and self._lock.locked()):
            await self._refresh()
            key = self._choose(id, algorithm)
        if key is None and self._tries == tries and (is_issued_now or self._may_look_for((id, algorithm))):
            await self._refresh()
            key = self._choose(id, algorithm)
        if key is None and (not self._is_usable() or (is_issued_now and self._trouble is not None)):
            raise errors.WorldError(
                "Access tokens cannot be checked now: the service that makes them does not answer. Try again in a "
                "minute, or send an API key."
            )
        return key

    def _choose(self, id: str | None, algorithm: str) -> SigningKey | None:
        return choose_key(self._keys, id, algorithm) if self._is_usable() else None

    def _is_usable(self) -> bool:
        return self._was_within(self._read_at, STALE)

    def _was_within(self, instant: datetime | None, span: timedelta) -> bool:
        """Return whether an instant is less than `span` ago; one in the future, after a clock was set back, is not."""
        return instant is not None and instant <= self.clock.now() < instant + span

    def _may_look_for(self, wanted: tuple[str | None, str]) -> bool:
        """Return whether to ask, or to wait for who asks already, for a key that is not known; counts the first."""
        now = self.clock.now()
        lately = {each: at for each, at in self._looked_for.items() if self._was_within(at, ASK_AGAIN)}
        may_look = wanted not in lately and len(lately) < MOST_LOOKS
        self._looked_for = {**lately, wanted: now} if may_look else lately
        return may_look or self._lock.locked()

    async def _refresh(self) -> None:
        """Ask the issuer, unless it failed just now or another caller asked while this one waited."""
        tries = self._tries
        async with self._lock:
            if self._tries != tries or (self._trouble and self._was_within(self._tried_at, AFTER_FAILURE)):
                return
            try:
                # A caller that goes away must not cancel a request that others wait for too; it is bounded in time.
                with anyio.CancelScope(shield=True):
                    await self._read()
            finally:
                self._tries += 1
                self._tried_at = self.clock.now()

    async def _read(self) -> None:
        try:
            published = await self.fetch()
        except errors.WorldError as error:
            if self._trouble is None:
                logger.warning("issuer not read", extra={"issuer": self.issuer, "reason": error.message})
            self._trouble = error.message
            return
        if self._trouble is not None:
            logger.info("issuer read again", extra={"issuer": self.issuer})
        self._keys, self._trouble, self._read_at = published.keys, None, self.clock.now()
        said = KEPT if published.max_age is None else published.max_age
        self._fresh_for = min(max(said, LEAST_KEPT), MOST_KEPT)
