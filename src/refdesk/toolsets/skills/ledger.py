"""The reports of a skill in order, as records in the store: the newest in the head, older ones in full pages.

A new report rewrites only the head. Withdrawing one replays what came after it, from the last state before it that is
kept: one is kept after each `SPAN` pages. So it costs as much as there is after it, however much there is before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from refdesk.model import Metadata, MetadataKey
from refdesk.toolsets.skills import counting
from refdesk.toolsets.skills.replaying import Entry, State

if TYPE_CHECKING:
    from refdesk.model import JsonValue
    from refdesk.protocols import Reader, Transaction
    from refdesk.toolsets.skills.records import Counters, Skill

HEAD = "head"
PAGE = 32
"""Entries of a full page."""

SPAN = 8
"""Full pages from one state that is kept to the next."""


@dataclass(frozen=True, slots=True)
class Head:
    """The state at which a skill's ledger begins, what it has come to, and its newest entries.

    Attributes:
        base: The state before the first entry.
        version: The last version considered in `steps` and `other`, which are as in the `State` after the last entry.
        steps: See `version`.
        other: See `version`.
        pages: How many full pages there are.
        entries: The newest ones, which do not fill a page yet.
        has_states: Whether the state after each `SPAN` pages is kept. Earlier releases kept none, and whatever they
            write leaves this out: then those that are there may be of entries that were withdrawn since.
    """

    base: State
    version: int
    steps: str
    other: str
    pages: int = 0
    entries: tuple[Entry, ...] = ()
    has_states: bool = True


@dataclass(frozen=True, slots=True)
class Tail:
    """A ledger from one of its pages on.

    Attributes:
        first: The number of that page.
        state: The state before it.
        pages: The entries of each full page from there on.
        newest: The entries after them.
    """

    first: int
    state: State
    pages: Sequence[tuple[Entry, ...]]
    newest: tuple[Entry, ...]

    @property
    def entries(self) -> list[Entry]:
        """All entries from there on."""
        return [entry for page in (*self.pages, self.newest) for entry in page]


async def read_head(reader: Reader, org: str, skill_id: str) -> Head | None:
    """Return the head, or `None` if no report was made since their order has been kept."""
    record = await reader.get_metadata(MetadataKey(org, _get_kind(skill_id), HEAD))
    if record is None:
        return None
    value = record.value
    version, steps, other = _to_place(value["at"])
    base, pages, has_states = _to_state(value["base"]), int(str(value["pages"])), value.get("states") is True
    return Head(base, version, steps, other, pages, _to_entries(value), has_states)


async def read_pages(
    reader: Reader, org: str, skill_id: str, head: Head, first: int = 0, end: int | None = None
) -> list[tuple[Entry, ...]]:
    """Return the entries of each full page, or of those from one to before another, the oldest first."""
    keys = [_name_page(org, skill_id, number) for number in range(first, head.pages if end is None else end)]
    return [_to_entries(record.value) for record in await reader.get_many_metadata(keys) if record is not None]


async def read_tail(reader: Reader, org: str, skill_id: str, head: Head, report_id: str) -> Tail:
    """Return the ledger from the last state on that is kept before a report; all of it if the report is not in it."""
    first, end = (head.pages // SPAN * SPAN if head.has_states else 0), head.pages
    pages = await read_pages(reader, org, skill_id, head, first, end)
    is_in = any(entry.id == report_id for page in (*pages, head.entries) for entry in page)
    while first and not is_in:
        first, end = first - SPAN, first
        before = await read_pages(reader, org, skill_id, head, first, end)
        is_in = any(entry.id == report_id for page in before for entry in page)
        pages = [*before, *pages]
    if not first:
        return Tail(0, head.base, pages, head.entries)
    record = await reader.get_metadata(_name_state(org, skill_id, first))
    if record is None:
        return await read_tail(reader, org, skill_id, replace(head, has_states=False), report_id)
    return Tail(first, _to_state(record.value), pages, head.entries)


async def append(
    transaction: Transaction, org: str, skill_id: str, head: Head, entry: Entry, counters: Counters
) -> None:
    """Store a head with one more entry, after which a skill has the counters; when it is full, its entries become a
    page."""
    entries = (*head.entries, entry)
    if len(entries) < PAGE:
        await _write_head(transaction, org, skill_id, replace(head, entries=entries))
        return
    await _write_page(transaction, org, skill_id, head.pages, entries)
    pages = head.pages + 1
    if head.has_states and not pages % SPAN:
        await _write_state(transaction, org, skill_id, pages, State(counters, head.version, head.steps, head.other))
    await _write_head(transaction, org, skill_id, replace(head, pages=pages, entries=()))


async def rewrite(
    transaction: Transaction,
    org: str,
    skill_id: str,
    head: Head,
    tail: Tail,
    to: Sequence[Entry],
    states: Sequence[State],
) -> None:
    """Store a head with new entries in place of all those of a tail.

    Args:
        transaction: Writes it.
        org: Whose skill.
        skill_id: Which skill.
        head: Its pages and entries are replaced.
        tail: As stored; pages that stay the same are not written again.
        to: The entries from now on.
        states: The state after each `SPAN` pages of them.
    """
    full = len(to) // PAGE
    for number in range(full):
        page = tuple(to[number * PAGE : (number + 1) * PAGE])
        if number >= len(tail.pages) or page != tail.pages[number]:
            await _write_page(transaction, org, skill_id, tail.first + number, page)
    for number, state in enumerate(states, 1):
        await _write_state(transaction, org, skill_id, tail.first + number * SPAN, state)
    written = replace(head, pages=tail.first + full, entries=tuple(to[full * PAGE :]), has_states=True)
    await _write_head(transaction, org, skill_id, written)


async def note_confidence(transaction: Transaction, org: str, skill: Skill) -> None:
    """Add an entry that a skill's confidence was set, if the order of its reports is kept."""
    head = await read_head(transaction, org, skill.skill_id)
    if head is not None:
        entry = Entry("", "", skill.version, skill.version, "", "", skill.reads, skill.confidence)
        await append(transaction, org, skill.skill_id, head, entry, counting.get_counters(skill))


async def _write_head(transaction: Transaction, org: str, skill_id: str, head: Head) -> None:
    value: dict[str, JsonValue] = {
        "skill_id": skill_id,
        "base": _from_state(head.base),
        "at": _from_place(head),
        "pages": head.pages,
        "entries": _from_entries(head.entries),
        "states": head.has_states,
    }
    await transaction.put_metadata([Metadata(MetadataKey(org, _get_kind(skill_id), HEAD), value)])


async def _write_page(transaction: Transaction, org: str, skill_id: str, number: int, entries: Sequence[Entry]) -> None:
    value: dict[str, JsonValue] = {"skill_id": skill_id, "entries": _from_entries(entries)}
    await transaction.put_metadata([Metadata(_name_page(org, skill_id, number), value)])


async def _write_state(transaction: Transaction, org: str, skill_id: str, number: int, state: State) -> None:
    value: dict[str, JsonValue] = {"skill_id": skill_id, **_from_state(state)}
    await transaction.put_metadata([Metadata(_name_state(org, skill_id, number), value)])


def _get_kind(skill_id: str) -> str:
    return f"skill_reports/{skill_id}"


def _name_page(org: str, skill_id: str, number: int) -> MetadataKey:
    return MetadataKey(org, _get_kind(skill_id), f"{number:06}")


def _name_state(org: str, skill_id: str, number: int) -> MetadataKey:
    """Return the key of the state before the page of a number."""
    return MetadataKey(org, _get_kind(skill_id), f"before/{number:06}")


def _from_place(place: Head | State) -> list[JsonValue]:
    return [place.version, place.steps, place.other]


def _to_place(value: JsonValue) -> tuple[int, str, str]:
    version, steps, other = cast("Sequence[JsonValue]", value)
    return int(str(version)), str(steps), str(other)


def _from_state(state: State) -> dict[str, JsonValue]:
    return {"counters": counting.to_value(state.counters), "at": _from_place(state)}


def _to_state(value: JsonValue) -> State:
    stated = cast("Mapping[str, JsonValue]", value)
    counters = counting.from_value(cast("Mapping[str, JsonValue]", stated["counters"]))
    return State(counters, *_to_place(stated["at"]))


def _from_entries(entries: Sequence[Entry]) -> list[JsonValue]:
    return [list(astuple(entry)) for entry in entries]


def _to_entries(value: Mapping[str, JsonValue]) -> tuple[Entry, ...]:
    return tuple(Entry(*entry) for entry in cast("Sequence[Sequence[Any]]", value["entries"]))
