"""Reads transcript files: one conversation per file, or JSON Lines with one conversation per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from refdesk.errors import SourceError
from refdesk.toolsets.skills import transcripts


@dataclass(frozen=True, slots=True)
class SourceTranscript:
    """A conversation and its location: the file's name, and the line where a file holds several."""

    text: str
    place: str


def read_transcripts(path: Path) -> Iterator[SourceTranscript]:
    """Yield the conversations of a file in UTF-8; a file of JSON Lines whose lines are turns is one conversation.

    Raises:
        SourceError: The file cannot be read, or is not UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise SourceError(f"{path.name} cannot be read as a text file in UTF-8.") from error
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
