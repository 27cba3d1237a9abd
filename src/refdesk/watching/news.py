"""News: what watches tell, in one numbered list for each agent.

The list is a ring of records that are read by number: the newest replace the oldest, so it never grows beyond its size
and is never searched. An agent that remembers the last number it has read gets everything exactly once. News name what
they are about but contain none of its text: readers are shown what it says now, as far as they may read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from refdesk.model import Metadata, MetadataKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.model import JsonValue
    from refdesk.protocols import Reader, Transaction
    from refdesk.watching.watches import Watch

INBOX = "watch_inbox"
"""Kind of the record of how many news an agent was told; named by the agent."""

NEWS = "watch_news"
"""Kind of the record of one of them; named by its place in the ring and the agent."""

KEPT = 2_000
"""How many news of one agent are kept: the newest."""

What: TypeAlias = Literal[
    "new",
    "changed",
    "dated",
    "superseded",
    "withdrawn",
    "restored",
    "expired",
    "impacted",
    "contradicted",
    "merged",
    "outcome",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a watch tells of.

    Attributes:
        toolset, id: The document that it happened to.
        version: The version that it made; 0 if it made none.
        other: The id of the other document involved, which supersedes, contradicts or announces; else empty.
        dates: The days before and the days now, if they changed.
    """

    what: What
    toolset: str
    id: str
    at: datetime
    version: int = 0
    other: str = ""
    dates: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


@dataclass(frozen=True, slots=True)
class News:
    """An event, told to an agent by a watch.

    Attributes:
        number: 1 for the agent's first, then counting up.
        org: The agent's org.
    """

    org: str
    agent: str
    number: int
    watch: str
    event: Event

    @property
    def id(self) -> str:
        """A permanent unique id: the id of the watch and the number."""
        return f"{self.watch}-{self.number}"


@dataclass(frozen=True, slots=True)
class Page:
    """Some news of an agent.

    Attributes:
        news: In the order of their numbers.
        last: The number of the last one looked at; the next page begins after it.
        end: The number of the newest there is.
        missed: How many of those after the starting number are no longer kept.
    """

    news: Sequence[News]
    last: int
    end: int
    missed: int = 0


def _make_inbox_key(org: str, agent: str) -> MetadataKey:
    return MetadataKey(org, INBOX, agent)


def _make_key(org: str, agent: str, number: int) -> MetadataKey:
    return MetadataKey(org, NEWS, f"{number % KEPT:04}:{agent}")


async def read_end(reader: Reader, org: str, agent: str) -> int:
    """Return the number of an agent's newest news; 0 before the first."""
    record = await reader.get_metadata(_make_inbox_key(org, agent))
    return int(str(record.value["number"])) if record is not None else 0


async def tell(transaction: Transaction, told: Sequence[tuple[Watch, Event]]) -> list[News]:
    """Put events of one org into the lists of the agents whose watches tell of them; return them as news."""
    ends: dict[str, int] = {}
    news: list[News] = []
    for watch, event in told:
        if watch.agent not in ends:
            ends[watch.agent] = await read_end(transaction, watch.org, watch.agent)
        ends[watch.agent] += 1
        news.append(News(watch.org, watch.agent, ends[watch.agent], watch.id, event))
    await transaction.put_metadata([_write(each) for each in news])
    org = told[0][0].org if told else ""
    await transaction.put_metadata(
        [Metadata(_make_inbox_key(org, agent), {"agent": agent, "number": end}) for agent, end in ends.items()]
    )
    return news


async def read_page(reader: Reader, org: str, agent: str, *, after: int | None, limit: int, most: int = KEPT) -> Page:
    """Return an agent's news.

    Args:
        reader: The store.
        org: The agent's org.
        agent: The agent.
        after: The number of the last one known to the agent; `None` for the newest `limit`. A number above the newest,
            as after the store was restored from a backup, counts as 0.
        limit: The most news to return.
        most: How many news are kept.
    """
    end = await read_end(reader, org, agent)
    oldest = max(0, end - most)
    if after is None:
        start = max(oldest, end - limit)
        missed = 0
    else:
        known = after if after <= end else 0
        start = max(known, oldest)
        missed = start - known
    last = min(end, start + limit)
    numbers = range(start + 1, last + 1)
    records = await reader.get_many_metadata([_make_key(org, agent, number) for number in numbers]) if numbers else []
    # Erased news leave gaps, and a newer one may have taken a place in the ring meanwhile.
    found = [_read(record) for record in records if record is not None]
    return Page([each for each in found if each.number in numbers], last, end, missed)


async def read_numbered(reader: Reader, org: str, agent: str, numbers: Sequence[int]) -> list[News | None]:
    """Return news by their numbers; `None` for those no longer kept."""
    records = await reader.get_many_metadata([_make_key(org, agent, number) for number in numbers]) if numbers else []
    found = [_read(record) if record is not None else None for record in records]
    return [
        each if each is not None and each.number == number else None
        for number, each in zip(numbers, found, strict=True)
    ]


def _write(news: News) -> Metadata:
    event = news.event
    value: dict[str, JsonValue] = {
        "agent": news.agent,
        "number": news.number,
        "watch": news.watch,
        "what": event.what,
        "toolset": event.toolset,
        "id": event.id,
        "at": event.at.isoformat(),
        "version": event.version,
        "other": event.other,
        "before": list(event.dates[0]),
        "now": list(event.dates[1]),
    }
    return Metadata(_make_key(news.org, news.agent, news.number), value)


def _read(record: Metadata) -> News:
    value = record.value
    dates = _read_days(value, "before"), _read_days(value, "now")
    event = Event(
        cast("What", value["what"]),
        str(value["toolset"]),
        str(value["id"]),
        datetime.fromisoformat(str(value["at"])),
        int(str(value["version"])),
        str(value["other"]),
        dates,
    )
    return News(record.key.org, str(value["agent"]), int(str(value["number"])), str(value["watch"]), event)


def _read_days(value: Mapping[str, JsonValue], name: str) -> tuple[str, ...]:
    return tuple(str(day) for day in cast("Sequence[str]", value[name]))
