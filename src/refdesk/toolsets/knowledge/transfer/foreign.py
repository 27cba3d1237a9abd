"""What the importers of other memory systems share: turning a foreign record into an entry."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from refdesk.core import visible
from refdesk.kit.strict_values import RefusedError, read_instant
from refdesk.toolsets.knowledge.tags import MOST_TAGS, normalise_tags
from refdesk.toolsets.knowledge.transfer.entries import Entry, EntryLink, check, refer
from refdesk.toolsets.knowledge.transfer.markdown import slug
from refdesk.toolsets.knowledge.transfer.reports import printable, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from refdesk.model import JsonValue
    from refdesk.toolsets.knowledge.transfer.intake import Intake

REFERENCES = "references"
LONGEST_TITLE = 200
LONGEST_BODY = 32_000
LARGEST_ORIGIN = 16 * 1024
"""At most this many characters of JSON are kept beside an entry, of fields that have no place in it."""

_NAMESPACE = UUID("5d0a6c1e-6f0b-5b8e-9a55-0c6d3c6f9d41")
_ROOM_FOR_PART_NUMBER = 16
_BREAKS = ("\n# ", "\n## ", "\n\n", "\n", ". ", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRecord:
    """A record of another system.

    Attributes:
        origin_id: Its permanent name in that system; it determines the entry's id.
        created_at: `None` if unknown, as with `modified_at` and `author`.
        targets: Ids of entries it references.
        fields: Everything else in it; kept beside the entry.
        fallback_at: The date to use if the record has none.
    """

    place: str
    origin_id: str
    title: str
    body: str
    tags: Iterable[str] = ()
    author: str | None = None
    created_at: datetime | None = None
    modified_at: datetime | None = None
    expires_at: datetime | None = None
    targets: Iterable[str] = ()
    fields: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    fallback_at: datetime | None = None


def make_id(format: str, origin_id: str) -> str:
    """Return the id of the entry for a foreign record: always the same for the same record (UUID, version 5)."""
    return str(uuid5(_NAMESPACE, f"{format}:{origin_id}"))


def take_in(intake: Intake, record: ForeignRecord) -> None:
    """Take in the entry of a record, or several if its body is too long for one; or note why it was not taken."""
    try:
        entry = _make_entry(intake, record)
        pieces = split_text(_get_body(record))
        parts = [_make_part(entry, piece, number, len(pieces)) for number, piece in enumerate(pieces, start=1)]
        checked = [check(part) for part in parts]
    except RefusedError as error:
        intake.refuse(record.place, printable(str(error)))
        return
    for number, part in enumerate(checked, start=1):
        intake.add(part, record.place if number == 1 else f"{record.place}, part {number}")


def shorten(text: str, longest: int = LONGEST_TITLE) -> str:
    """Return the text on one line, cut after a word if it is too long."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    cut = line[: longest - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"


def split_text(text: str, longest: int = LONGEST_BODY) -> list[str]:
    """Return the text in pieces of at most `longest` characters that together make up the text, without blank ones.

    It is cut before a heading, else after a paragraph, a line, a sentence or a word: at the first of these that leaves
    a piece of at least half that length.
    """
    pieces: list[str] = []
    start = 0
    while len(text) - start > longest:
        end = _find_break(text, start, longest)
        pieces.append(text[start:end])
        start = end
    pieces.append(text[start:])
    return [piece for piece in pieces if visible.is_seen(piece)]


def list_tags(intake: Intake, place: str, raw: Iterable[str]) -> list[str]:
    """Return tags in their normal form, at most `MOST_TAGS`; note those that are left out."""
    tags: dict[str, None] = {}
    for tag in raw:
        normal = _normalise(tag)
        if not normal:
            intake.leave_out(place, f"its tag {quote(tag)} is not made of words")
        elif len(tags) == MOST_TAGS and normal not in tags:
            intake.leave_out(place, f"its tag {quote(tag)} is one more than the {MOST_TAGS} that an entry has")
        else:
            tags[normal] = None
    return list(tags)


def read_date(intake: Intake, place: str, fields: Mapping[str, JsonValue], name: str) -> datetime | None:
    """Return a date of the record, taken as UTC if it has no offset; note a value that is no date."""
    value = fields.get(name)
    if value is None:
        return None
    try:
        return read_instant(value, name, assume_utc=True)
    except RefusedError as error:
        intake.leave_out(place, str(error))
        return None


def _make_entry(intake: Intake, record: ForeignRecord) -> Entry:
    if not record.origin_id.strip():
        raise RefusedError("has no name or id")
    fallback = record.fallback_at or intake.now
    created_at = record.created_at or record.modified_at or fallback
    said = {"created_at": record.created_at, "modified_at": record.modified_at, "author": record.author}
    id = make_id(intake.format, record.origin_id)
    targets = [target for target in dict.fromkeys(record.targets) if target != id]
    return Entry(
        id=id,
        title=shorten(record.title),
        body="",
        author=record.author or intake.author,
        created_at=created_at,
        modified_at=record.modified_at or max(created_at, record.fallback_at or created_at),
        tags=tuple(list_tags(intake, record.place, record.tags)),
        source=intake.format,
        expires_at=record.expires_at,
        links=tuple(_refer_to(target, created_at) for target in targets),
        data=_make_data(intake, record),
        assumed=frozenset(name for name, value in said.items() if value is None),
        needs_links=False,
    )


def _make_part(entry: Entry, body: str, number: int, count: int) -> Entry:
    if count == 1:
        return replace(entry, body=body)
    title = f"{shorten(entry.title, LONGEST_TITLE - _ROOM_FOR_PART_NUMBER)} ({number}/{count})"
    if number == 1:
        return replace(entry, title=title, body=body)
    first = _refer_to(entry.id, entry.created_at)
    return replace(
        entry, id=str(uuid5(UUID(entry.id), f"part {number}")), title=title, body=body, links=(first,), data={}
    )


def _get_body(record: ForeignRecord) -> str:
    """Return the body, preceded by the title if that is too long for one; the title alone if there is no body."""
    if not visible.is_seen(record.body):
        return record.title
    is_short = len(" ".join(record.title.split())) <= LONGEST_TITLE
    return record.body if is_short or record.title in record.body else f"{record.title}\n\n{record.body}"


def _make_data(intake: Intake, record: ForeignRecord) -> dict[str, JsonValue]:
    origin: dict[str, JsonValue] = {"id": record.origin_id}
    fields = {name: value for name, value in record.fields.items() if value is not None}
    if fields:
        origin["fields"] = fields
    if len(json.dumps(origin)) <= LARGEST_ORIGIN:
        return {"origin": origin}
    named = ", ".join(fields) or "its id"
    intake.leave_out(record.place, f"{quote(named)} would take more than {LARGEST_ORIGIN} characters")
    return {}


def _refer_to(id: str, at: datetime) -> EntryLink:
    return EntryLink(REFERENCES, refer(id), is_incoming=False, created_at=at)


def _normalise(tag: str) -> str:
    try:
        return normalise_tags([tag])[0]
    except ValueError:
        return slug(tag)


def _find_break(text: str, start: int, longest: int) -> int:
    earliest = start + longest // 2
    for mark in _BREAKS:
        at = text.rfind(mark, earliest, start + longest)
        if at != -1:
            return at + (1 if mark.startswith("\n#") else len(mark))
    return start + longest


def list_unknown(record: Mapping[str, JsonValue], known: Sequence[str]) -> dict[str, JsonValue]:
    """Return the fields of a record that have no place in an entry."""
    return {name: value for name, value in record.items() if name not in known}
