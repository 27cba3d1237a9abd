"""How gaps are kept: a masked record of each asking, and a record of what became of the gap.

An asking is one agent's wording, so that erasing the agent erases it. A document named as `toolset/id` counts only as
long as it exists: if it is erased, the gap is open again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from refdesk.model import Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.model import JsonObject, JsonValue
    from refdesk.protocols import Reader

ASKED = "gap_asked"
"""A wording of a question by one agent; due when it is to be forgotten."""

STATE = "gap"
"""What became of a gap; an open gap that nobody has judged has no such record."""

DROPPED = "gap_dropped"
"""How many questions of an org could not be kept."""

MOST_READ = 10_000

State: TypeAlias = Literal["open", "answered", "dismissed"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A wording of a question that an agent asked once or more often.

    Attributes:
        gap: The id of the gap that it belongs to.
        text: The wording, masked.
        toolsets: The toolsets that were asked.
        reach: The toolsets that the agent could read: documents there may answer it.
        strength: How surely the best that was found answers it, in [0, 1].
        best: The best that was found, as `toolset/id`; empty if there was nothing.
    """

    org: str
    gap: str
    agent: str
    text: str
    toolsets: tuple[str, ...]
    reach: tuple[str, ...]
    count: int
    first: datetime
    last: datetime
    strength: float = 0.0
    best: str = ""

    @property
    def key(self) -> MetadataKey:
        """Where it is kept."""
        said = "\n".join((self.agent, *self.toolsets, self.text)).encode()
        return MetadataKey(self.org, ASKED, f"{self.gap}/{blake2b(said, digest_size=12).hexdigest()}")

    def add(self, other: Asked) -> Asked:
        """Return it combined with another asking of the same wording."""
        found = max((self, other), key=lambda each: each.last)
        return replace(
            self,
            count=self.count + other.count,
            first=min(self.first, other.first),
            last=max(self.last, other.last),
            reach=found.reach,
            strength=found.strength,
            best=found.best,
        )


@dataclass(frozen=True, slots=True)
class Became:
    """What became of a gap.

    Attributes:
        answer: What answers it, as `toolset/id`; empty where nothing does.
        by: Who judged it; empty where refdesk found the answer, or who judged was erased.
        is_judge_erased: Whether that is why.
        note: Why, as they said.
        at: When; `None` for what nothing became of.
    """

    state: State = "open"
    answer: str = ""
    by: str = ""
    note: str = ""
    at: datetime | None = None
    is_judge_erased: bool = False


NOTHING = Became()


@dataclass(frozen=True, slots=True)
class Gap:
    """An unanswered question, in all its wordings, and what became of it."""

    org: str
    id: str
    asked: tuple[Asked, ...]
    became: Became = NOTHING

    def leave(self, asked: Iterable[Asked]) -> Gap:
        """Return the gap with only these wordings."""
        return replace(self, asked=tuple(asked))


def write_asked(asked: Asked, kept: timedelta) -> Metadata:
    """Return the record of an asking, which is forgotten if nobody asks again for as long as `kept`."""
    value: dict[str, JsonValue] = {
        name: getattr(asked, name) for name in ("agent", "text", "count", "strength", "best")
    }
    value |= {"toolsets": list(asked.toolsets), "reach": list(asked.reach)}
    value |= {"first": asked.first.isoformat(), "last": asked.last.isoformat()}
    return Metadata(asked.key, value, due_at=asked.last + kept)


def read_asked(record: Metadata) -> Asked:
    """Return the asking that `write_asked` wrote."""
    value = record.value
    return Asked(
        org=record.key.org,
        gap=record.key.name.partition("/")[0],
        agent=str(value["agent"]),
        text=str(value["text"]),
        toolsets=tuple(cast("Sequence[str]", value["toolsets"])),
        reach=tuple(cast("Sequence[str]", value["reach"])),
        count=cast("int", value["count"]),
        first=datetime.fromisoformat(str(value["first"])),
        last=datetime.fromisoformat(str(value["last"])),
        strength=cast("float", value["strength"]),
        best=str(value["best"]),
    )


def make_key(org: str, id: str) -> MetadataKey:
    """Return the key of the record of what became of a gap."""
    return MetadataKey(org, STATE, id)


def write_became(org: str, id: str, became: Became) -> Metadata:
    """Return the record of what became of a gap."""
    value: dict[str, JsonValue] = {name: getattr(became, name) for name in ("state", "answer", "by", "note")}
    value |= {"at": became.at.isoformat() if became.at is not None else None}
    return Metadata(make_key(org, id), {**value, "judge_erased": True} if became.is_judge_erased else value)


def read_became(value: JsonObject | None) -> Became:
    """Return what `write_became` wrote; without a record, nothing became of the gap yet."""
    if value is None:
        return NOTHING
    at = value["at"]
    texts = {name: str(value[name]) for name in ("answer", "by", "note")}
    when = datetime.fromisoformat(str(at)) if at else None
    return Became(cast("State", value["state"]), **texts, at=when, is_judge_erased="judge_erased" in value)


async def list_gaps(reader: Reader, org: str) -> list[Gap]:
    """Return the gaps of an org, ordered by id, with all their wordings, oldest first."""
    return _gather(
        await reader.list_metadata(ASKED, org=org, limit=MOST_READ),
        await reader.list_metadata(STATE, org=org, limit=MOST_READ),
    )


async def list_all_gaps(reader: Reader) -> list[Gap]:
    """Return the gaps of all orgs: for the server's own work, never to be shown to callers."""
    return _gather(
        await reader.list_metadata(ASKED, limit=MOST_READ), await reader.list_metadata(STATE, limit=MOST_READ)
    )


def _gather(asked: Sequence[Metadata], states: Sequence[Metadata]) -> list[Gap]:
    became: Mapping[tuple[str, str], JsonObject] = {(each.key.org, each.key.name): each.value for each in states}
    by_gap: dict[tuple[str, str], list[Asked]] = {}
    for one in map(read_asked, asked):
        by_gap.setdefault((one.org, one.gap), []).append(one)
    return [
        Gap(*place, tuple(sorted(by_gap[place], key=lambda one: (one.first, one.text))), read_became(became.get(place)))
        for place in sorted(by_gap)
    ]


def make_dropped_key(org: str) -> MetadataKey:
    """Return the key of the count of questions of an org that could not be kept."""
    return MetadataKey(org, DROPPED, "count")


def read_dropped(record: Metadata | None) -> int:
    """Return how many questions could not be kept."""
    return cast("int", record.value["count"]) if record is not None else 0
