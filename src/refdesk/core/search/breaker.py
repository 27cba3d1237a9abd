"""The circuit breaker of the service that embeds questions: while it fails or hangs, no search waits for it.

That a question was not embedded in time only arouses suspicion, since the question may be to blame, or a caller who
gave it little time. So background work then asks the service itself, with a text and a time limit that no caller has
chosen, and what it is answered decides. After several failures in a row the breaker opens. From then on the service is
asked at intervals, and an answer closes it. The pattern is the circuit breaker of Nygard, *Release It!* (2007).
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from refdesk import errors
from refdesk.core.doorbell import Doorbell

if TYPE_CHECKING:
    from refdesk.protocols import Embedder

logger = logging.getLogger(__name__)

FAILURES = 2
"""Failed probes in a row that open the breaker."""

PROBE_SECONDS = 3.0
"""How long a probe waits for an answer: as long as a search does."""

REST_SECONDS = 10.0
"""How long an open breaker leaves the service alone before it is asked again."""

CALM_SECONDS = 1.0
"""How long after an answered probe the next suspicion waits: questions that are to blame themselves cost one probe a
second at most."""

PROBE = "Is anybody there?"


@dataclass(slots=True)
class Breaker:
    """Keeps questions from a service that answers none. It only ever opens where `run` runs.

    Models in the process have none: they fail at once, and what slows them down is the load that a probe would add to.

    Attributes:
        trouble: Why questions are kept from the service; `None` while the breaker is closed.
        probe_seconds: See `PROBE_SECONDS`; likewise the others.
    """

    trouble: str | None = None
    probe_seconds: float = PROBE_SECONDS
    rest_seconds: float = REST_SECONDS
    calm_seconds: float = CALM_SECONDS
    _suspect: Embedder | None = None
    _failures: int = 0
    _bell: Doorbell = field(default_factory=Doorbell)

    def is_open_for(self, embedder: Embedder) -> bool:
        """Return whether this embedder is not to be asked now."""
        return self.trouble is not None and self._suspect is not None and self._suspect.model == embedder.model

    def note_failure(self, embedder: Embedder) -> None:
        """Have the service probed soon, since it did not embed a question in time."""
        if not embedder.is_remote:
            return
        if self._suspect is None or self._suspect.model != embedder.model:
            self._suspect, self._failures, self.trouble = embedder, 0, None
        self._bell.ring()

    def note_answer(self) -> None:
        """Clear the suspicion, and close the breaker if it is open: a question was embedded in time."""
        if self.trouble is not None:
            logger.info("embedding service back")
        self._suspect, self._failures, self.trouble = None, 0, None

    async def run(self) -> None:
        """Probe whatever is suspected, until cancelled."""
        while True:
            await self._bell.wait(math.inf)
            while self._suspect is not None:
                await self.probe()
                if self.trouble is not None:
                    await anyio.sleep(self.rest_seconds)
            await anyio.sleep(self.calm_seconds)

    async def probe(self) -> None:
        """Ask the suspected service once; open the breaker after the last of `FAILURES`, or close it."""
        suspect = self._suspect
        if suspect is None:
            return
        reason = await find_trouble(suspect, self.probe_seconds)
        if self._suspect is not suspect:
            return  # it has answered a question meanwhile, or another one is suspected
        if reason is None:
            self.note_answer()
            return
        self._failures += 1
        if self._failures >= FAILURES:
            if self.trouble is None:
                logger.warning("embedding service left alone", extra={"reason": reason})
            self.trouble = reason


async def find_trouble(embedder: Embedder, seconds: float) -> str | None:
    """Return why an embedder does not embed a question in time; `None` if it does."""
    try:
        with anyio.fail_after(seconds):
            await embedder.embed_query(PROBE)
    except errors.RefdeskError as error:
        return error.message
    except TimeoutError:
        return f"The embedding model gave no answer within {seconds:.1f} s."
    return None
