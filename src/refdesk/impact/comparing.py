"""Compares two notes: whether they contradict each other, which makes a case, or say the same."""

from __future__ import annotations

from dataclasses import dataclass

from refdesk.impact.cases import Case, Side
from refdesk.impact.disagreeing import Text, find_contradiction, read_text
from refdesk.impact.kinds import THRESHOLD
from refdesk.model import Document

SAME = 0.8
"""The share of common terms from which on two notes that do not contradict each other say the same."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A note prepared for comparison with others."""

    document: Document
    text: Text

    @property
    def shift(self) -> int:
        """How many characters of the compared text precede the body."""
        return len(self.document.title) + 1


def read_note(document: Document) -> Compared:
    """Return a note prepared for comparison: its title as a sentence, then its body."""
    return Compared(document, read_text(f"{document.title}\n{document.body}"))


def compare_notes(mine: Compared, theirs: Compared) -> Case | None:
    """Return the case of two notes, or `None` if they do not contradict each other surely enough."""
    first, second = sorted((mine, theirs), key=lambda each: each.document.id)
    found = find_contradiction(first.text, second.text)
    if found is None or found.confidence < THRESHOLD:
        return None
    org = first.document.collection.org
    sides = _make_side(first, found.one), _make_side(second, found.other)
    return Case(org, *sides, found.way, round(found.confidence, 3))


def says_the_same(mine: Compared, theirs: Compared) -> bool:
    """Return whether two notes that do not contradict each other say the same in other words."""
    one, other = mine.text, theirs.text
    if not one.terms or not other.terms:
        return False
    return 2 * len(one.terms & other.terms) / (len(one.terms) + len(other.terms)) >= SAME


def _make_side(note: Compared, span: tuple[int, int]) -> Side:
    start, end = (max(0, at - note.shift) for at in span)
    return Side(note.document.id, start, end, note.document.text_digest)
