"""The reports of a skill in order, as records in the store: the newest in the head, older ones in full pages.

A new report rewrites only the head; withdrawing one reads all pages and rewrites those that change.
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
    from refdesk.toolsets.skills.records import Skill

HEAD = "head"
PAGE = 32
"""Entries of a full page."""


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
    """

    base: State
    version: int
    steps: str
    other: str
    pages: int = 0
    entries: tuple[Entry, ...] = ()


async def read_head(reader: Reader, org: str, skill_id: str) -> Head | None:
    """Return the head, or `None` if no report was made since their order has been kept."""
    record = await reader.get_metadata(MetadataKey(org, _get_kind(skill_id), HEAD))
    if record is None:
        return None
    value = record.value
    version, steps, other = _to_place(value["at"])
    return Head(_to_state(value["base"]), version, steps, other, int(str(value["pages"])), _to_entries(value))


async def read_pages(reader: Reader, org: str, skill_id: str, head: Head) -> list[tuple[Entry, ...]]:
    """Return the entries of each full page, the oldest first."""
    keys = [_name_page(org, skill_id, number) for number in range(head.pages)]
    return [_to_entries(record.value) for record in await reader.get_many_metadata(keys) if record is not None]


async def append(transaction: Transaction, org: str, skill_id: str, head: Head, entry: Entry) -> None:
    """Store a head with one more entry; when it is full, its entries become a page."""
    entries = (*head.entries, entry)
    if len(entries) < PAGE:
        await _write_head(transaction, org, skill_id, replace(head, entries=entries))
        return
    await _write_page(transaction, org, skill_id, head.pages, entries)
    await _write_head(transaction, org, skill_id, replace(head, pages=head.pages + 1, entries=()))


async def rewrite(
    transaction: Transaction,
    org: str,
    skill_id: str,
    head: Head,
    pages: Sequence[tuple[Entry, ...]],
    to: Sequence[Entry],
) -> None:
    """Store a head with new entries in place of all that it has.

    Args:
        transaction: Writes it.
        org: Whose skill.
        skill_id: Which skill.
        head: Its pages and entries are replaced.
        pages: The full pages as stored; those that stay the same are not written again.
        to: All entries from now on.
    """
    full = len(to) // PAGE
    for number in range(full):
        page = tuple(to[number * PAGE : (number + 1) * PAGE])
        if number >= len(pages) or page != pages[number]:
            await _write_page(transaction, org, skill_id, number, page)
    await _write_head(transaction, org, skill_id, replace(head, pages=full, entries=tuple(to[full * PAGE :])))


async def note_confidence(transaction: Transaction, org: str, skill: Skill) -> None:
    """Add an entry that a skill's confidence was set, if the order of its reports is kept."""
    head = await read_head(transaction, org, skill.skill_id)
    if head is not None:
        entry = Entry("", "", skill.version, skill.version, "", "", skill.reads, skill.confidence)
        await append(transaction, org, skill.skill_id, head, entry)


async def _write_head(transaction: Transaction, org: str, skill_id: str, head: Head) -> None:
    value: dict[str, JsonValue] = {
        "skill_id": skill_id,
        "base": {"counters": counting.to_value(head.base.counters), "at": _from_place(head.base)},
        "at": _from_place(head),
        "pages": head.pages,
        "entries": _from_entries(head.entries),
    }
    await transaction.put_metadata([Metadata(MetadataKey(org, _get_kind(skill_id), HEAD), value)])


async def _write_page(transaction: Transaction, org: str, skill_id: str, number: int, entries: Sequence[Entry]) -> None:
    value: dict[str, JsonValue] = {"skill_id": skill_id, "entries": _from_entries(entries)}
    await transaction.put_metadata([Metadata(_name_page(org, skill_id, number), value)])


def _get_kind(skill_id: str) -> str:
    return f"skill_reports/{skill_id}"


def _name_page(org: str, skill_id: str, number: int) -> MetadataKey:
    return MetadataKey(org, _get_kind(skill_id), f"{number:06}")


def _from_place(place: Head | State) -> list[JsonValue]:
    return [place.version, place.steps, place.other]


def _to_place(value: JsonValue) -> tuple[int, str, str]:
    version, steps, other = cast("Sequence[JsonValue]", value)
    return int(str(version)), str(steps), str(other)


def _to_state(value: JsonValue) -> State:
    stated = cast("Mapping[str, JsonValue]", value)
    counters = counting.from_value(cast("Mapping[str, JsonValue]", stated["counters"]))
    return State(counters, *_to_place(stated["at"]))


def _from_entries(entries: Sequence[Entry]) -> list[JsonValue]:
    return [list(astuple(entry)) for entry in entries]


def _to_entries(value: Mapping[str, JsonValue]) -> tuple[Entry, ...]:
    return tuple(Entry(*entry) for entry in cast("Sequence[Sequence[Any]]", value["entries"]))
