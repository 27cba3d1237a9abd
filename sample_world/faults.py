"""What can go wrong with an emulated service, as rules: which request is hit, and by what."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, NonNegativeFloat, PositiveInt

TransportFault = Literal[
    "status",
    "redirect",
    "reset",
    "truncate",
    "hang",
    "drip",
    "huge",
    "gzip",
    "invalid_json",
    "wrong_content_type",
]

Rule = TypeVar("Rule", bound="FaultRule")


class FaultRule(BaseModel, extra="forbid", frozen=True):
    """One fault and the requests it hits.

    A request is hit when its path contains `path` and its number is in `at` (1 is the first such request after the
    rules were set), or by chance, or, where neither is said, always; at most `times` times. The first rule that hits
    wins. Each emulator says in a subclass which faults it knows.

    Attributes:
        fault: What happens. Every emulator knows these:

            - `status`: answer with `status` and a page of HTML, with `Retry-After` where `retry_after` says so.
            - `redirect`: send the client to `location`, which need not be an address.
            - `reset`: drop the connection (TCP RST) without an answer.
            - `truncate`: promise the whole body, send half of it, close.
            - `hang`: never answer; ends when the client goes.
            - `drip`: send `chunk_bytes` every `delay_seconds`.
            - `huge`: a body of at least `size_bytes`, valid but padded; compressed where `gzip` is set.
            - `gzip`: the right answer, compressed whether or not it was asked for.
            - `invalid_json`: the right answer, cut in the middle under a matching length.
            - `wrong_content_type`: a page of HTML with status 200.
        retry_after: Seconds from now; `retry_after_form` says whether they are sent as such, as an HTTP date, or as one
            of a year that no calendar has.
    """

    fault: str
    path: str = ""
    at: tuple[PositiveInt, ...] = ()
    probability: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int = 0
    times: PositiveInt | None = None
    status: Annotated[int, Field(ge=400, le=599)] = 503
    retry_after: NonNegativeFloat | None = None
    retry_after_form: Literal["seconds", "date", "endless"] = "seconds"
    location: str = "http://elsewhere.example/"
    chunk_bytes: PositiveInt = 1024
    delay_seconds: NonNegativeFloat = 0.05
    size_bytes: PositiveInt = 64 * 2**20
    gzip: bool = False


@dataclass(slots=True)
class _Armed(Generic[Rule]):
    rule: Rule
    chance: random.Random
    seen: int = 0
    fired: int = 0

    def hits(self, path: str) -> bool:
        if self.rule.path not in path:
            return False
        self.seen += 1
        rolled = self.rule.probability is not None and self.chance.random() < self.rule.probability
        always = self.rule.probability is None and not self.rule.at
        return (self.seen in self.rule.at or rolled or always) and self.fired != self.rule.times


class FaultPlan(Generic[Rule]):
    """The rules in force and how many requests they have seen. The same rules and requests give the same faults."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._armed = [_Armed(rule, random.Random(rule.seed)) for rule in rules]

    def next(self, path: str = "") -> Rule | None:
        """Count one request to `path` and return what hits it, or `None`."""
        hitting = [armed for armed in self._armed if armed.hits(path)]
        if not hitting:
            return None
        hitting[0].fired += 1
        return hitting[0].rule
