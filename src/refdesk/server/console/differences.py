"""What changed between two texts, word by word, for people to read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Kind: TypeAlias = Literal["same", "added", "removed", "skipped"]

MOST_COMPARED = 1_500
"""Most lines, or words of changed lines, on one side: the time to compare can grow with the product of both sides."""

CONTEXT = 2
"""Lines that are shown before and after what changed."""

LEAST_ALIKE = 0.35
"""Share of words that changed lines must have in common to be compared word by word."""

_WORD = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a comparison; the text of one of kind `skipped` is the number of unchanged lines left out."""

    kind: Kind
    text: str


def compare(before: str, after: str) -> list[Piece]:
    """Return both texts as one: what stayed, what was removed and what was added, in order; empty if they are equal."""
    if before == after:
        return []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > MOST_COMPARED:
        return [Piece("removed", before), Piece("added", after)]
    pieces = list[Piece]()
    matched = SequenceMatcher(None, old, new).get_opcodes()
    for place, (kind, first, last, start, end) in enumerate(matched):
        if kind == "equal":
            pieces += _shorten(old[first:last], is_first=place == 0, is_last=place == len(matched) - 1)
        else:
            pieces += _compare_words("".join(old[first:last]), "".join(new[start:end]))
    return _join(pieces)


def _compare_words(before: str, after: str) -> Iterator[Piece]:
    old, new = _WORD.findall(before), _WORD.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if max(len(old), len(new)) > MOST_COMPARED or not _are_alike(old, new, matcher):
        yield from (Piece("removed", before), Piece("added", after))
        return
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind == "equal":
            yield Piece("same", "".join(old[first:last]))
        else:
            yield from (Piece("removed", "".join(old[first:last])), Piece("added", "".join(new[start:end])))


def _are_alike(old: Sequence[str], new: Sequence[str], matcher: SequenceMatcher[str]) -> bool:
    """Return whether two texts have enough words in common, in the same order; blanks do not count."""
    shared = [old[block.a + n] for block in matcher.get_matching_blocks() for n in range(block.size)]
    count = sum(not word.isspace() for word in (*old, *new))
    return 2 * sum(not word.isspace() for word in shared) >= LEAST_ALIKE * count


def _shorten(lines: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[Piece]:
    """Yield lines that stayed; if there are many, only those next to what changed."""
    head, tail = 0 if is_first else CONTEXT, 0 if is_last else CONTEXT
    left_out = len(lines) - head - tail
    if left_out <= 1:
        yield Piece("same", "".join(lines))
        return
    yield Piece("same", "".join(lines[:head]))
    yield Piece("skipped", str(left_out))
    yield Piece("same", "".join(lines[len(lines) - tail :]))


def _join(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces without empty ones, with neighbours of one kind joined."""
    joined = list[Piece]()
    for piece in pieces:
        if not piece.text:
            continue
        if joined and joined[-1].kind == piece.kind:
            joined[-1] = Piece(piece.kind, joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined
