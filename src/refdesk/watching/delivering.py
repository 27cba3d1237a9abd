"""Delivering: sends news to webhooks at least once, under an id by which receivers can recognise repetitions.

The news of one watch are sent in order; different watches are served concurrently, so a receiver that hangs holds up
only its own news.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

import anyio

from refdesk import errors
from refdesk.core.doorbell import Doorbell
from refdesk.watching import queueing
from refdesk.watching.news import News, read_numbered
from refdesk.watching.signing import sign
from refdesk.watching.watches import Watch, make_key, read_watch

if TYPE_CHECKING:
    from refdesk.model import JsonObject
    from refdesk.protocols import Clock, Store
    from refdesk.watching.queueing import Delivery
    from refdesk.watching.reaching import Reach, Reached

logger = logging.getLogger(__name__)

TOGETHER = 16
"""Most webhooks that are sent to at a time."""

MOST_OF_ORG = 4
"""Most of them that belong to one org."""

LOOK_SECONDS = 1.0
"""How often to look for deliveries that other processes left."""

MOST_SECONDS = 60.0

Show: TypeAlias = "Callable[[Watch, Sequence[News]], Awaitable[list[JsonObject | None]]]"
"""Returns the payloads for news, in order; `None` for news that are gone or that the agent may no longer read."""


@dataclass(slots=True)
class Deliverer:
    """Sends news to webhooks; `run` it as a background task.

    Attributes:
        main: The store that holds the watches, their news and what is still to be sent.
        reach: Decides what may be reached, and sends.
        show: Makes the payloads.
        chance: The source of jitter for waits.
        trouble: Why the last attempt to work failed; `None` if it succeeded.
    """

    main: Store
    clock: Clock
    reach: Reach
    show: Show
    doorbell: Doorbell = field(default_factory=Doorbell)
    chance: random.Random = field(default_factory=random.Random)
    trouble: str | None = None
    _busy: dict[str, str] = field(default_factory=dict[str, str])

    async def run(self) -> None:
        """Work until cancelled. Failures are logged and retried with increasing pauses; they never end the loop."""
        pause = LOOK_SECONDS
        async with anyio.create_task_group() as group:
            while True:
                await self.doorbell.wait(pause)
                try:
                    for delivery in await self._list_free():
                        self._busy[delivery.watch] = delivery.org
                        group.start_soon(self._deliver_and_free, delivery)
                    pause, self.trouble = LOOK_SECONDS, None
                except errors.RefdeskError as error:
                    self._note_trouble(error)
                    pause = min(2 * pause, MOST_SECONDS)

    async def run_once(self) -> None:
        """Send what is due now, once."""
        for delivery in await queueing.list_due(self.main, self.clock.now(), 1000):
            await self._deliver(delivery)

    async def _list_free(self) -> list[Delivery]:
        """Return the due deliveries for which there is capacity."""
        chosen: list[Delivery] = []
        for delivery in await queueing.list_due(self.main, self.clock.now(), 10 * TOGETHER):
            orgs = [*self._busy.values(), *(each.org for each in chosen)]
            if delivery.watch not in self._busy and len(orgs) < TOGETHER and orgs.count(delivery.org) < MOST_OF_ORG:
                chosen.append(delivery)
        return chosen

    async def _deliver_and_free(self, delivery: Delivery) -> None:
        try:
            await self._deliver(delivery)
        except errors.RefdeskError as error:
            self._note_trouble(error)
        finally:
            del self._busy[delivery.watch]
            self.doorbell.ring()

    def _note_trouble(self, error: errors.RefdeskError) -> None:
        self.trouble = error.message
        logger.warning("news not sent", extra={"reason": error.message})

    async def _deliver(self, delivery: Delivery) -> None:
        """Send the news of a watch until none is left or one is not accepted."""
        async with self.main.transaction() as transaction:
            held = await queueing.claim(transaction, delivery, uuid4().hex, self.clock.now())
        while held is not None and held.numbers:
            record = await self.main.get_metadata(make_key(held.org, held.watch))
            watch = read_watch(record) if record is not None else None
            if watch is None or watch.webhook is None:
                held = await self._settle(held, replace(held, numbers=()))
                continue
            held = await self._send_first(watch, held)

    async def _send_first(self, watch: Watch, held: Delivery) -> Delivery | None:
        """Send the first of the news; return the rest, or `None` if it has to wait or is no longer held."""
        assert watch.webhook is not None
        [news] = await read_numbered(self.main, held.org, held.agent, held.numbers[:1])
        [said] = await self.show(watch, [news]) if news is not None else [None]
        if news is None or said is None:
            return await self._settle(held, replace(held, numbers=held.numbers[1:]))
        body = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        signed = sign(watch.webhook.secret, f"msg_{news.id}", int(self.clock.now().timestamp()), body)
        reached = await self.reach.post(watch.webhook.url, body, signed)
        if reached.is_delivered:
            return await self._settle(held, replace(held, numbers=held.numbers[1:], attempts=0, reason=""))
        await self._note_failure(held, reached)
        return None

    async def _note_failure(self, held: Delivery, reached: Reached) -> None:
        logger.info("webhook failed", extra={"watch": held.watch, "reason": reached.reason, "org": held.org})
        if reached.is_gone:
            await self._settle(held, replace(held, numbers=(), is_off=True, reason=reached.reason, token=""))
        else:
            now = self.clock.now()
            await self._settle(held, held.fail(now, reached.reason, self.chance.random(), reached.retry_after))

    async def _settle(self, held: Delivery, after: Delivery) -> Delivery | None:
        """Store the outcome, adding news that came meanwhile, and return it; `None` if somebody else holds it now."""
        async with self.main.transaction() as transaction:
            known = await queueing.get_held(transaction, held)
            if known is None:
                return None
            come = tuple(number for number in known.numbers if number not in held.numbers)
            due_at = self.clock.now() + queueing.CLAIM if after.token else after.due_at
            settled = replace(after, numbers=() if after.is_off else (*after.numbers, *come), due_at=due_at)
            await queueing.put(transaction, settled)
        return settled
