"""Reports of exports and imports: exact counts, and every problem with its location."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from refdesk.core.counts import say_count

ExportFormat: TypeAlias = Literal["jsonl", "markdown"]
ImportFormat: TypeAlias = Literal["jsonl", "markdown", "mcp-memory", "mem0", "basic-memory"]
ProblemKind: TypeAlias = Literal["conflict", "invalid", "quota", "left_out"]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many entries are done and how many there are."""

MOST_PROBLEMS = 1000
"""At most this many are listed; the counts stay exact beyond that."""

_LONGEST_QUOTE = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something was rejected.

    Attributes:
        kind: `conflict`: the id is taken by different content, which stays. `invalid`: the record is not an entry, or
            its chain is broken. `quota`: no more may be stored. `left_out`: a part of a record, or a file, that has no
            place in an entry; the rest is imported.
        place: Its location: a line, an item, or a file and a line.
        message: The reason, in one sentence. Safe to print: what it quotes is short and holds no control character.
    """

    kind: ProblemKind
    place: str
    message: str

    @property
    def line(self) -> str:
        """A message for the user."""
        return printable(f"  {self.kind.replace('_', ' ')}: {self.place}: {self.message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What was written.

    Attributes:
        entries: How many entries.
        links: How many task references and other links, without the edges of chains.
        superseded: How many of the entries are superseded.
        problems: Entries that the format cannot hold whole; empty unless the store holds something unknown to it.
    """

    format: ExportFormat
    entries: int
    links: int
    superseded: int
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did, or, with `dry_run`, would do.

    Attributes:
        added: Entries that were not there.
        unchanged: Entries that were there already with the same content.
        conflicts: Entries whose id is taken by different content; the stored entry was left alone.
        invalid: Records that are not valid entries, or whose chain is broken.
        over_quota: Entries that the quota had no room for.
        left_out: Parts of records, and files, that were not imported.
        links_added: Links that were not there, without the edges of chains.
        problems: The first `MOST_PROBLEMS` problems, in the order they were met.
    """

    format: ImportFormat
    dry_run: bool
    added: int = 0
    unchanged: int = 0
    conflicts: int = 0
    invalid: int = 0
    over_quota: int = 0
    left_out: int = 0
    links_added: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class Tally:
    """Running counts of an import."""

    added: int = 0
    unchanged: int = 0
    links_added: int = 0
    kinds: Counter[ProblemKind] = field(default_factory=Counter["ProblemKind"])
    problems: list[Problem] = field(default_factory=list[Problem])

    def note(self, kind: ProblemKind, place: str, message: str) -> None:
        """Count a problem, and list it while the list is short."""
        self.kinds[kind] += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(kind, place, message))

    def copy(self) -> Tally:
        """Return an independent copy."""
        return Tally(self.added, self.unchanged, self.links_added, Counter(self.kinds), list(self.problems))

    def report(self, format: ImportFormat, *, dry_run: bool) -> ImportReport:
        """Return the counts so far as a report."""
        return ImportReport(
            format=format,
            dry_run=dry_run,
            added=self.added,
            unchanged=self.unchanged,
            conflicts=self.kinds["conflict"],
            invalid=self.kinds["invalid"],
            over_quota=self.kinds["quota"],
            left_out=self.kinds["left_out"],
            links_added=self.links_added,
            problems=tuple(self.problems),
        )


def tell_exported(report: ExportReport, place: str) -> str:
    """Return a message that says what was written where."""
    entries = say_count(report.entries, "entry", "entries")
    said = f"{entries} written to {place}: {report.superseded} superseded, {say_count(report.links, 'link')}."
    return "\n".join([said, *(problem.line for problem in report.problems)])


def quote(text: str) -> str:
    """Return foreign text fit for a message: short, quoted, and free of characters that control a terminal."""
    short = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
    return f'"{printable(short)}"'


def printable(text: str) -> str:
    """Return the text with every unprintable character replaced by its number."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
