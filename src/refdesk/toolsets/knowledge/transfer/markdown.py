"""Markdown with front matter: one file per entry, the body verbatim to its last character."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import regex

from refdesk.kit import front_matter
from refdesk.kit.strict_values import RefusedError, decode_text
from refdesk.toolsets.knowledge.transfer.records import FORMAT, VERSION, from_record, to_record
from refdesk.toolsets.knowledge.transfer.reports import printable

if TYPE_CHECKING:
    from refdesk.toolsets.knowledge.transfer.entries import Entry
    from refdesk.toolsets.knowledge.transfer.intake import Intake, NamedText

LONGEST_SLUG = 60
_MOST_SLUG_BYTES = 180

_NO_WORD = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_FORMAT_FIELD = "format"
_FORMAT = f"{FORMAT}/{VERSION}"
_OTHERS = "notes that refdesk did not export are read as basic-memory"


def name_file(entry: Entry) -> str:
    """Return the name of an entry's file: its id, then words of its title; never more than 255 bytes."""
    words = slug(entry.title)
    return f"{slug(entry.id)}{f'-{words}' if words else ''}.md"


def slug(text: str) -> str:
    """Return the words of a text in lower case, joined by hyphens, as many whole words as fit; may be empty."""
    words = _NO_WORD.sub("-", text.lower()).strip("-")[: LONGEST_SLUG + 1]
    if len(words) > LONGEST_SLUG:
        words = words.rpartition("-")[0] or words[:LONGEST_SLUG]
    return words.encode()[:_MOST_SLUG_BYTES].decode(errors="ignore").strip("-")


def write(entry: Entry) -> str:
    """Return the file of an entry: its front matter, then its body."""
    record = to_record(entry)
    body = record.pop("body", "")
    return f"{front_matter.write({_FORMAT_FIELD: _FORMAT, **record})}{body}"


def read(files: Iterable[NamedText], intake: Intake) -> None:
    """Take in the entry of every file."""
    for file in files:
        try:
            intake.add(_read_entry(file, intake.author), printable(file.path))
        except RefusedError as error:
            intake.refuse(printable(file.path), printable(str(error)))


def _read_entry(file: NamedText, author: str) -> Entry:
    if file.is_cut:
        raise RefusedError("is longer than is read")
    matter_text, body = front_matter.split(decode_text(file.data))
    if matter_text is None:
        raise RefusedError(f"has no front matter, or one that does not end; {_OTHERS}")
    matter = front_matter.read(matter_text)
    for number, reason in matter.refused:
        raise RefusedError(f"line {number} {reason}")
    record = matter.values
    if record.pop(_FORMAT_FIELD, None) != _FORMAT:
        raise RefusedError(f"is not of the format {_FORMAT}; {_OTHERS}")
    if "body" in record:
        raise RefusedError("has a body in its front matter")
    return from_record({name: value for name, value in record.items() if value is not None} | {"body": body}, author)
