"""What can go wrong with the feed, as rules: which request is hit, and by what."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt, TypeAdapter

from sample_world.azure_updates.world import Record

FaultKind = Literal[
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
    "duplicate_page",
    "page_shift",
    "empty_page",
    "wrong_count",
]


class FaultRule(BaseModel):
    """One fault and the requests it hits.

    A request to the feed is hit when its number is in `at` (1 is the first after the rules were set), or by chance, or,
    where neither is said, always; at most `times` times. The first rule that hits wins.

    Attributes:
        fault: What happens.

            - `status`: answer with `status` and a page of HTML, with `Retry-After` where `retry_after` says so.
            - `redirect`: send the client to `location`.
            - `reset`: drop the connection (TCP RST) without an answer.
            - `truncate`: promise the whole body, send half of it, close.
            - `hang`: never answer; ends when the client goes.
            - `drip`: send `chunk_bytes` every `delay_seconds`.
            - `huge`: a body of at least `size_bytes`, valid but padded; compressed where `gzip` is set.
            - `gzip`: the right answer, compressed whether or not it was asked for.
            - `invalid_json`: the right answer, cut in the middle under a matching length.
            - `wrong_content_type`: a page of HTML with status 200.
            - `duplicate_page`: the page before the one that was asked.
            - `page_shift`: first publish `publish` and withdraw `withdraw`, then answer from the feed as it is then.
            - `empty_page`: the right envelope without a record.
            - `wrong_count`: the right answer with a count that is off by `count_error`.
        publish: Records to add, or how many of the next day's to add.
        retry_after: Seconds from now; `retry_after_form` says whether they are sent as such or as an HTTP date.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    fault: FaultKind
    at: tuple[PositiveInt, ...] = ()
    probability: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int = 0
    times: PositiveInt | None = None
    status: Annotated[int, Field(ge=400, le=599)] = 503
    retry_after: NonNegativeFloat | None = None
    retry_after_form: Literal["seconds", "date"] = "seconds"
    location: str = "http://elsewhere.example/releasecommunications/api/v2/azure"
    chunk_bytes: PositiveInt = 1024
    delay_seconds: NonNegativeFloat = 0.05
    size_bytes: PositiveInt = 64 * 2**20
    gzip: bool = False
    count_error: int = 7
    publish: PositiveInt | list[Record] | None = None
    withdraw: tuple[str, ...] = ()


_RULES = TypeAdapter(list[FaultRule])


def parse_rules(value: object) -> list[FaultRule]:
    """Return the rules in a JSON list.

    Raises:
        ValueError: it is no list of rules; pydantic's error says where.
    """
    return _RULES.validate_python(value)


@dataclass(slots=True)
class _Armed:
    rule: FaultRule
    chance: random.Random
    fired: int = 0

    def hits(self, number: int) -> bool:
        rolled = self.rule.probability is not None and self.chance.random() < self.rule.probability
        always = self.rule.probability is None and not self.rule.at
        return (number in self.rule.at or rolled or always) and self.fired != self.rule.times


@dataclass(slots=True)
class FaultPlan:
    """The rules in force and how many requests they have seen. The same rules and requests give the same faults."""

    _armed: list[_Armed] = field(default_factory=list[_Armed])
    _seen: int = 0

    @classmethod
    def of(cls, rules: Iterable[FaultRule]) -> FaultPlan:
        """Return a plan that has seen no request yet."""
        return cls([_Armed(rule, random.Random(rule.seed)) for rule in rules])

    def next(self) -> FaultRule | None:
        """Count one request and return what hits it, or `None`."""
        self._seen += 1
        hitting = [armed for armed in self._armed if armed.hits(self._seen)]
        if not hitting:
            return None
        hitting[0].fired += 1
        return hitting[0].rule
