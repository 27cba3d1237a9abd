"""JSON lines in UTF-8: a header, then one entry per line, by time of creation, then by id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from refdesk.errors import InvalidInputError
from refdesk.kit.strict_values import RefusedError, decode_text, parse_object
from refdesk.toolsets.knowledge.transfer.records import FORMAT, VERSION, from_record, to_record
from refdesk.toolsets.knowledge.transfer.reports import printable

if TYPE_CHECKING:
    from refdesk.model import JsonObject
    from refdesk.toolsets.knowledge.transfer.entries import Entry
    from refdesk.toolsets.knowledge.transfer.intake import Intake, Line


def write(entries: Iterable[Entry], count: int) -> Iterator[str]:
    """Yield the lines of an export, each with its line feed; `count` is how many entries there are."""
    yield _dump({"format": FORMAT, "version": VERSION, "entries": count})
    for entry in entries:
        yield _dump(to_record(entry))


def read(lines: Iterable[Line], intake: Intake) -> None:
    """Take in every entry of an export.

    Raises:
        InvalidInputError: It does not begin with the header of a known version.
    """
    header: int | None = None
    met = 0
    for line in lines:
        if not line.data.strip() and not line.is_cut:
            continue
        if header is None:
            header = _read_header(line)
            continue
        met += 1
        _read_entry(line, intake)
    if header is None:
        raise InvalidInputError("The file is empty: send an export, as refdesk export writes it.")
    if met != header:
        intake.refuse("the end", f"the header announces {header} entries, and there are {met}: the file is damaged")


def _read_entry(line: Line, intake: Intake) -> None:
    try:
        intake.add(from_record(read_line(line), intake.author), line.place)
    except RefusedError as error:
        intake.refuse(line.place, printable(str(error)))


def read_line(line: Line) -> JsonObject:
    """Return the object on a line.

    Raises:
        RefusedError: The line holds no object, or is too long.
    """
    if line.is_cut:
        raise RefusedError("is longer than is read")
    return parse_object(decode_text(line.data))


def _read_header(line: Line) -> int:
    header: JsonObject = {}
    with suppress(RefusedError):
        header = read_line(line)
    entries = header.get("entries")
    if header.get("format") != FORMAT or not isinstance(entries, int):
        raise InvalidInputError("The file does not begin with the header of a knowledge export; choose its format.")
    if header.get("version") != VERSION:
        raise InvalidInputError(f"The file is of another version than {VERSION}, which is what this refdesk reads.")
    return entries


def _dump(record: JsonObject) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
