"""Reads transcripts from files and folders: one per file or line, or those of an export of tickets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from refdesk.errors import SourceError
from refdesk.toolsets.skills import ticket_exports, transcripts


@dataclass(frozen=True, slots=True)
class SourceTranscript:
    """A conversation and its place: the file's name, and the line or number if the file holds several."""

    text: str
    place: str


def read_transcripts(path: Path) -> Iterator[SourceTranscript]:
    """Yield the conversations of a file in UTF-8, or of every file in a folder, by name; hidden ones are left out.

    A file of JSON Lines whose lines are turns is one conversation.

    Raises:
        SourceError: The file cannot be read, or is not UTF-8.
    """
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.is_file() and not any(part.startswith(".") for part in each.relative_to(path).parts):
                yield from read_transcripts(each)
        return
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise SourceError(f"{path.name} cannot be read as a text file in UTF-8: save it as one.") from error
    exported = _read_export(path, text)
    if exported:
        yield from (SourceTranscript(one, f"{path.name}#{number}") for number, one in enumerate(exported, start=1))
        return
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if len(lines) > 1 and all(_holds_conversation(line) for _, line in lines):
        for number, line in lines:
            yield SourceTranscript(line, f"{path.name}:{number}")
    else:
        yield SourceTranscript(text, path.name)


def _holds_conversation(line: str) -> bool:
    if not line.startswith(("{", "[")):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return transcripts.holds_turns(line)


def _read_export(path: Path, text: str) -> list[str]:
    """Return the transcripts of an export; none if the file is not an export."""
    if path.suffix.casefold() == ".csv":
        return ticket_exports.read_table(text) or []
    if not text.lstrip().startswith(("{", "[")):
        return []
    try:
        values = [json.loads(text)]
    except (ValueError, RecursionError):
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return []
    return [one for value in values for one in ticket_exports.read_export(value)]
