"""Cases: two notes that contradict each other, until one is superseded or somebody says that both hold.

Like impacts, they are kept as metadata without any text of the notes; see `records`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from refdesk.model import Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.impact.kinds import Way
    from refdesk.model import JsonObject, JsonValue
    from refdesk.protocols import Reader, Transaction

CASE = "impact_case"
"""Two notes that contradict each other."""

DISPUTED = "impact_disputed"
"""What contradicts a note and what it repeats, so that showing the note takes only one record."""

Standing: TypeAlias = Literal["open", "both_hold", "dismissed"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of two notes: its id, the offsets of the passage in its body, and the digest of its text when compared."""

    id: str
    start: int
    end: int
    text_digest: str


@dataclass(frozen=True, slots=True)
class Case:
    """Two notes of an org that contradict each other, ordered by id.

    Attributes:
        way: A different value, a denial, or a different state.
        standing: Whether somebody has settled it; superseding one of the notes makes that unnecessary.
        by: Who settled it, or opened it again; empty if nobody did.
        reason: For whom each holds, or why they do not contradict each other.
    """

    org: str
    one: Side
    other: Side
    way: Way
    confidence: float
    standing: Standing = "open"
    by: str = ""
    reason: str = ""

    @property
    def key(self) -> MetadataKey:
        """The key of its record: named by both notes, so that erasing either erases it."""
        return make_key(self.org, self.one.id, self.other.id)


@dataclass(frozen=True, slots=True)
class Disputed:
    """The ids of notes that contradict a note, and of those that it repeats."""

    contradicts: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()


def make_key(org: str, one: str, other: str) -> MetadataKey:
    """Return the key of the case of two notes, in whichever order they are given."""
    first, second = sorted((one, other))
    return MetadataKey(org, CASE, f"{first}/{second}")


def write_case(case: Case) -> Metadata:
    """Return the record of a case."""
    value: dict[str, JsonValue] = {
        name: getattr(case, name) for name in ("way", "confidence", "standing", "by", "reason")
    }
    for name, side in (("one", case.one), ("other", case.other)):
        value[name] = {"id": side.id, "start": side.start, "end": side.end, "text_digest": side.text_digest}
    return Metadata(case.key, value)


def read_case(org: str, value: JsonObject) -> Case:
    """Return the case that `write_case` wrote."""
    return Case(
        org=org,
        one=_read_side(cast("JsonObject", value["one"])),
        other=_read_side(cast("JsonObject", value["other"])),
        way=cast("Way", value["way"]),
        confidence=cast("float", value["confidence"]),
        standing=cast("Standing", value["standing"]),
        by=str(value["by"]),
        reason=str(value["reason"]),
    )


def _read_side(value: JsonObject) -> Side:
    start, end = cast("int", value["start"]), cast("int", value["end"])
    return Side(str(value["id"]), start, end, str(value["text_digest"]))


def make_disputed_key(org: str, toolset: str, id: str) -> MetadataKey:
    """Return the key of the record of what contradicts a note."""
    return MetadataKey(org, DISPUTED, f"{toolset}/{id}")


def read_disputed(record: Metadata | None) -> Disputed:
    """Return what contradicts a note and what it repeats."""
    if record is None:
        return Disputed()
    lists = (tuple(cast("Sequence[str]", record.value[name])) for name in ("contradicts", "repeats"))
    return Disputed(*lists)


def _write_disputed(key: MetadataKey, disputed: Disputed) -> Metadata:
    return Metadata(key, {"contradicts": list(disputed.contradicts), "repeats": list(disputed.repeats)})


async def put_cases(
    transaction: Transaction, org: str, toolset: str, id: str, cases: Sequence[Case], repeats: Iterable[str]
) -> None:
    """Replace the cases of a note by those found; a settled case stays settled while both texts are unchanged."""
    key = make_disputed_key(org, toolset, id)
    before = read_disputed(await transaction.get_metadata(key))
    found = {_get_other(case, id): case for case in cases}
    for other in before.contradicts:
        if other not in found:
            await transaction.remove_metadata([make_key(org, id, other)])
            await _note(transaction, make_disputed_key(org, toolset, other), id, is_there=False)
    for other, case in found.items():
        old = await transaction.get_metadata(case.key)
        await transaction.put_metadata([write_case(_keep_standing(case, old))])
        await _note(transaction, make_disputed_key(org, toolset, other), id, is_there=True)
    now = Disputed(tuple(sorted(found)), tuple(sorted(repeats)))
    if now != Disputed():
        await transaction.put_metadata([_write_disputed(key, now)])
    elif before != now:
        await transaction.remove_metadata([key])


async def _note(transaction: Transaction, key: MetadataKey, id: str, *, is_there: bool) -> None:
    """Record for a note that another contradicts it, or no longer does."""
    disputed = read_disputed(await transaction.get_metadata(key))
    others = {*disputed.contradicts, id} if is_there else set(disputed.contradicts) - {id}
    await transaction.put_metadata([_write_disputed(key, replace(disputed, contradicts=tuple(sorted(others))))])


def _get_other(case: Case, id: str) -> str:
    return case.other.id if case.one.id == id else case.one.id


def _keep_standing(case: Case, record: Metadata | None) -> Case:
    if record is None:
        return case
    old = read_case(case.org, record.value)
    is_same = (old.one.text_digest, old.other.text_digest) == (case.one.text_digest, case.other.text_digest)
    return replace(case, standing=old.standing, by=old.by, reason=old.reason) if is_same else case


async def settle(transaction: Transaction, case: Case, standing: Standing, by: str, reason: str) -> Case:
    """Settle a case or reopen it, and return it as it is now."""
    settled = replace(case, standing=standing, by=by, reason=reason)
    await transaction.put_metadata([write_case(settled)])
    return settled


async def get_disputes(
    reader: Reader, org: str, ids: Sequence[str], records: Sequence[Metadata | None]
) -> list[Disputed]:
    """Return for each note what contradicts it in cases still open, and what it repeats.

    Args:
        reader: The store, read to see which cases are open.
        org: The org of the notes.
        ids: The ids of the notes.
        records: The record kept for each; see `make_disputed_key`.
    """
    found = [read_disputed(record) for record in records]
    keys = [make_key(org, id, other) for id, each in zip(ids, found, strict=True) for other in each.contradicts]
    cases = await reader.get_many_metadata(keys) if keys else []
    is_open = {record.key for record in cases if record is not None and record.value["standing"] == "open"}
    return [
        replace(each, contradicts=tuple(other for other in each.contradicts if make_key(org, id, other) in is_open))
        for id, each in zip(ids, found, strict=True)
    ]
