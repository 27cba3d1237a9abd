"""Queueing: records which news are still to be sent to which webhook, in the same commit that creates the news.

Each watch has one record, due when it is to be tried next, so no process has to remember anything. A process claims a
delivery by making it due later. If it takes too long, it loses the claim, and the news are sent again under the same
id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from refdesk.model import Metadata, MetadataKey
from refdesk.watching.watches import DELIVERY

if TYPE_CHECKING:
    from refdesk.model import JsonValue
    from refdesk.protocols import Reader, Transaction
    from refdesk.watching.news import News
    from refdesk.watching.watches import Watch

MOST_WAITING = 1_000
"""Most news that wait for one webhook: the newest. Older ones are not sent, but stay readable."""

CLAIM = timedelta(seconds=60)
"""How long one message may take; after that, another process takes over from one that died."""

FIRST_WAIT = timedelta(seconds=5)
MOST_WAIT = timedelta(hours=6)
MOST_ATTEMPTS = 12
"""As the waits between them grow fourfold up to the longest, this takes more than a day."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The news of a watch that are still to be sent.

    Attributes:
        numbers: The numbers of the news, oldest first.
        attempts: How often the first of them has been tried.
        reason: Why the last attempt failed; empty if it did not.
        token: The token of the claim under which it is being delivered; empty if it is not.
        due_at: When it is tried next.
        is_off: Whether nothing is sent any more because the receiver said it wants nothing.
    """

    org: str
    watch: str
    agent: str
    numbers: tuple[int, ...]
    due_at: datetime
    attempts: int = 0
    reason: str = ""
    token: str = ""
    is_off: bool = False

    @property
    def key(self) -> MetadataKey:
        """Where it is kept."""
        return MetadataKey(self.org, DELIVERY, self.watch)

    def fail(self, now: datetime, reason: str, chance: float, asked: float | None = None) -> Delivery:
        """Return it as it is after a failed attempt; after too many, the first of its news is given up.

        Args:
            now: The present time.
            reason: Why the attempt failed.
            chance: From 0 to 1, for jitter: the wait is shortened by half of this share.
            asked: Seconds that the receiver asked to wait.
        """
        attempts = self.attempts + 1
        numbers = self.numbers[1:] if attempts >= MOST_ATTEMPTS else self.numbers
        wait = min(FIRST_WAIT * 4 ** min(self.attempts, 12), MOST_WAIT) * (1 - chance / 2)
        if asked is not None:
            wait = min(max(wait, timedelta(seconds=asked)), MOST_WAIT)
        counted = 0 if attempts >= MOST_ATTEMPTS else attempts
        return replace(self, numbers=numbers, attempts=counted, reason=reason, token="", due_at=now + wait)


async def queue(transaction: Transaction, told: Sequence[tuple[Watch, News]], now: datetime) -> None:
    """Queue for sending those of the news whose watches have a webhook."""
    numbers: dict[str, list[int]] = {}
    watches = {watch.id: watch for watch, _ in told if watch.webhook is not None}
    for watch, news in told:
        if watch.webhook is not None:
            numbers.setdefault(watch.id, []).append(news.number)
    for id, new in numbers.items():
        watch = watches[id]
        known = read_delivery(await transaction.get_metadata(MetadataKey(watch.org, DELIVERY, id)))
        if known is None:
            known = Delivery(watch.org, id, watch.agent, (), now)
        if not known.is_off:
            is_idle = not known.numbers and not known.token
            waiting = (*known.numbers, *new)[-MOST_WAITING:]
            await put(transaction, replace(known, numbers=waiting, due_at=now if is_idle else known.due_at))


async def put(transaction: Transaction, delivery: Delivery) -> None:
    """Store a delivery, or remove its record if there is nothing left to send or to remember."""
    if delivery.numbers or delivery.is_off:
        await transaction.put_metadata([_write(delivery)])
    else:
        await transaction.remove_metadata([delivery.key])


async def list_due(reader: Reader, now: datetime, limit: int) -> list[Delivery]:
    """Return the deliveries of all orgs that are due now, soonest due first."""
    records = await reader.list_metadata(DELIVERY, due_until=now, limit=limit)
    return [each for each in map(read_delivery, records) if each is not None]


async def claim(transaction: Transaction, delivery: Delivery, token: str, now: datetime) -> Delivery | None:
    """Return the delivery as it is now, held until `CLAIM` has passed; `None` if it is taken or has nothing to send."""
    known = read_delivery(await transaction.get_metadata(delivery.key))
    if known is None or known.due_at > now or not known.numbers:
        return None
    held = replace(known, token=token, due_at=now + CLAIM)
    await put(transaction, held)
    return held


async def get_held(transaction: Transaction, delivery: Delivery) -> Delivery | None:
    """Return the delivery as it is now if the claim still holds, else `None`."""
    known = read_delivery(await transaction.get_metadata(delivery.key))
    return known if known is not None and known.token == delivery.token else None


def _write(delivery: Delivery) -> Metadata:
    value: dict[str, JsonValue] = {
        "watch": delivery.watch,
        "agent": delivery.agent,
        "numbers": list(delivery.numbers),
        "at": delivery.due_at.isoformat(),
        "attempts": delivery.attempts,
        "reason": delivery.reason,
        "token": delivery.token,
        "is_off": delivery.is_off,
    }
    return Metadata(delivery.key, value, due_at=None if delivery.is_off else delivery.due_at)


def read_delivery(record: Metadata | None) -> Delivery | None:
    """Return the delivery in a record; `None` if there is no record."""
    if record is None:
        return None
    value = record.value
    return Delivery(
        record.key.org,
        str(value["watch"]),
        str(value["agent"]),
        tuple(cast("Sequence[int]", value["numbers"])),
        datetime.fromisoformat(str(value["at"])),
        int(str(value["attempts"])),
        str(value["reason"]),
        str(value["token"]),
        bool(value["is_off"]),
    )
