"""Whether two notes contradict each other: the same things named, but with another value, a denial or another state.

The clauses of both are compared. If values of one kind differ, if one denies what the other says, or if two parallel
sentences end differently, a logistic function gives the confidence that they cannot both hold. Evidence against that
are different things (another hall, tier or name) and times that follow each other. Its weights were fitted by
`python -m benchmarks.impact --fit` on refdesk's own pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain

from refdesk.impact.contrasts import DENIALS, NEGATORS, PAST, PRESENT, are_contrasted, get_reach, match_terms
from refdesk.impact.disagreeing_weights import WEIGHTS
from refdesk.impact.kinds import Way
from refdesk.impact.matching import weigh
from refdesk.impact.quantities import Value, find_labels, find_values
from refdesk.impact.wording import get_terms, split_sentences

MOST_CLAUSES = 40
"""Only the first this many clauses of a note are compared."""

LONGEST_CLAUSE = 400
"""Most characters of a clause: anything longer is a list or a table, of which only the parts are compared."""

MOST_COMPARED = 4_000_000
"""At most this many pairs of words of two notes are compared, in the order of their clauses: about four times as many
as two notes of whole sentences have."""

PARALLEL = 0.45
"""The ratio of common words in the same order from which on two clauses count as parallel."""

SHORT_NOTE = 22
"""A note of at most this many different words is about one thing."""

_BREAK = re.compile(r";\s+|,\s+(?!\d)|\s+\(|\.\s+")
_WORD = re.compile(r"[A-Za-z0-9=:'’-]+")
_VERB = re.compile(
    r"""(?:is|are|was|were|be|has|have|had|may|can|must|will|do|does|cannot|should|needs?|gets?|goes|go|runs?|keeps?|takes?
        |costs?|starts?|begins?|ends?|holds?|sits?|leaves?|closes?|opens?|lasts?|expires?|listens?|uses?|applies|allows?
        |lives?|supports?|works?|includes?|earns?|=|:)""",
    re.IGNORECASE | re.VERBOSE,
)
_OF_TIME = frozenset(("day", "day of the year", "named week", "ordinal", "weekday"))


@dataclass(frozen=True)
class Clause:
    """A sentence or a part of one, and what is found in it.

    Attributes:
        start, end: Offsets in the text.
    """

    text: str
    start: int
    end: int

    @cached_property
    def values(self) -> Sequence[Value]:
        """The values in it."""
        return find_values(self.text)

    @cached_property
    def labels(self) -> frozenset[str]:
        """The things in it that a number or letter tells apart, such as `tank 5`."""
        return frozenset(label for label, _, _ in find_labels(self.text))

    @cached_property
    def plain(self) -> str:
        """Its text without values and labels."""
        plain = self.text
        spans = [(value.start, value.end) for value in self.values]
        for start, end in sorted([*spans, *((start, end) for _, start, end in find_labels(self.text))], reverse=True):
            plain = f"{plain[:start]} {plain[end:]}"
        return plain

    @cached_property
    def is_denied(self) -> bool:
        """Whether it denies something; two denials cancel out."""
        return (len(NEGATORS.findall(self.plain)) % 2 == 1) != (DENIALS.search(self.plain) is not None)

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its terms, without values and denials."""
        said = DENIALS.sub(" ", NEGATORS.sub(" ", self.plain))
        return frozenset(term for term in get_terms(said) if not term.isdigit())

    @cached_property
    def reach(self) -> frozenset[str]:
        """Everything its terms can match by: disjoint for two clauses if none of their terms match."""
        return get_reach(self.terms)

    @cached_property
    def spoken(self) -> Sequence[str]:
        """Its words in order, as written."""
        return _WORD.findall(self.plain)

    @cached_property
    def spoken_terms(self) -> Sequence[Sequence[str]]:
        """The terms of each of its words in order."""
        return [_list_terms(word) for word in self.lowered]

    @cached_property
    def lowered(self) -> Sequence[str]:
        """Its words in order, in lower case."""
        return [word.lower() for word in self.spoken]

    @cached_property
    def times(self) -> tuple[bool, bool]:
        """Whether it speaks of the past, and whether of the present."""
        return PAST.search(self.text) is not None, PRESENT.search(self.text) is not None

    @cached_property
    def codes(self) -> frozenset[str]:
        """Those of its words that mix letters and digits."""
        return frozenset(filter(_is_code, self.words))

    @cached_property
    def words(self) -> frozenset[str]:
        """Its words, folded."""
        return frozenset(word.lower().strip(".,:") for word in self.spoken)

    @cached_property
    def names(self) -> frozenset[str]:
        """Proper names, identifiers and paths in it, folded."""
        found = (word for at, word in enumerate(self.plain.split()) if _is_name(word, at))
        return frozenset(word.strip(".,;:()'\"").lower() for word in found)

    @cached_property
    def verb(self) -> int:
        """The index of the word at which its subject roughly ends."""
        return self.stated or max(1, len(self.spoken) // 2)

    @cached_property
    def stated(self) -> int:
        """The index of the word from which on something is stated of its subject; 0 for instructions and headings."""
        for at, word in enumerate(self.spoken):
            if word.endswith(":"):
                return at + 1
        return next((at for at, word in enumerate(self.spoken) if at and _VERB.fullmatch(word)), 0)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two passages that cannot both hold.

    Attributes:
        way: A different value, a denial, or a different state.
        one, other: Offsets of the clauses, each in its own text.
    """

    confidence: float
    way: Way
    one: tuple[int, int]
    other: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a note, prepared for comparison."""

    text: str
    clauses: tuple[Clause, ...]
    terms: frozenset[str]
    words: frozenset[str]
    names: frozenset[str]
    labels: frozenset[str]


def read_text(text: str) -> Text:
    """Return the text of a note, prepared for comparison."""
    clauses = tuple(Clause(text[start:end], start, end) for start, end in _split(text))[:MOST_CLAUSES]
    names = frozenset(name for clause in clauses for name in _list_proper_names(clause.text))
    words = frozenset(re.findall(r"\w+", text.lower()))
    labels = frozenset(label for label, _, _ in find_labels(text))
    return Text(text, clauses, frozenset(get_terms(text)), words, names, labels)


def find_contradiction(
    one: Text, other: Text, weights: Mapping[str, Mapping[str, float]] = WEIGHTS
) -> Contradiction | None:
    """Return the most likely contradiction of two notes, or `None` if no parts of them can be compared."""
    best: Contradiction | None = None
    for way, evidence, mine, theirs in compare(one, other):
        confidence = weigh(evidence, weights[way])
        if best is None or confidence > best.confidence:
            best = Contradiction(confidence, way, (mine.start, mine.end), (theirs.start, theirs.end))
    return best


def compare(one: Text, other: Text) -> Iterator[tuple[Way, dict[str, float], Clause, Clause]]:
    """Yield each way in which clauses of two notes may contradict each other, with the evidence for and against it."""
    whole = 2 * len(one.terms & other.terms) / max(1, len(one.terms) + len(other.terms))
    is_long = max(len(one.words), len(other.words)) > SHORT_NOTE
    others = float(bool(one.names - other.words) and bool(other.names - one.words))
    are_labelled, left = _have_other_labels(one.labels, other.labels), MOST_COMPARED
    for mine in one.clauses:
        for theirs in other.clauses:
            if mine.reach.isdisjoint(theirs.reach):
                continue
            left -= len(mine.spoken) * len(theirs.spoken)
            if left < 0:
                return
            for way, evidence in _Pair(mine, theirs, whole).list_ways():
                evidence["label"] = float(evidence["label"] or are_labelled)
                evidence |= {"other names": others, "other subject": float(is_long and whole < 0.4)}
                yield way, evidence, mine, theirs


class _Pair:
    """Two clauses, side by side."""

    def __init__(self, one: Clause, other: Clause, whole: float) -> None:
        self.one, self.other, self.whole = one, other, whole
        self.shared, self.left, self.right = match_terms(one.terms, other.terms)

    def list_ways(self) -> Iterator[tuple[Way, dict[str, float]]]:
        """Yield each way in which they may contradict each other, with the evidence."""
        if self.shared < 1:
            return
        self.conflicts, self.days, self.agreements = self._compare_values()
        is_denied = self.one.is_denied != self.other.is_denied
        self._align()
        base = self._describe()
        if self.conflicts:
            yield "value", {**base, **self._describe_conflict(is_denied)}
        elif is_denied:
            yield "denial", {**base, **self._describe_frame(), "more": min(max(len(self.left), len(self.right)), 4) / 4}
        elif self.ends and self.ratio >= 0.4 and self.one.stated and self.other.stated:
            yield "state", {**base, **self._describe_ends()}

    def _describe(self) -> dict[str, float]:
        one, other = self.one, self.other
        mine, theirs = one.names - other.words, other.names - one.words
        sizes = len(one.terms), len(other.terms)
        return {
            "dice": 2 * self.shared / sum(sizes),
            "contained": self.shared / min(sizes),
            "shared": min(self.shared, 4) / 4,
            "residue": min(len(self.left), len(self.right), 3) / 3,
            "label": float(_have_other_labels(one.labels, other.labels)),
            "contrast": float(are_contrasted(one.words, other.words)),
            "names": float(bool(mine) and bool(theirs)),
            "one name": float(bool(mine) != bool(theirs)),
            "other start": float(self.ratio >= PARALLEL and self.starts > 0),
            "succession": float(self._follow_each_other()),
            "whole": self.whole,
            "agrees": float(self.agreements > 0),
        }

    def _describe_conflict(self, is_denied: bool) -> dict[str, float]:
        return {
            "day": float(self.days > 0),
            "day and more": float(0 < self.days < self.conflicts),
            "denied": float(is_denied),
            "parallel": float(self.ratio >= PARALLEL),
            "other end": float(bool(self.ends) and self.ratio >= PARALLEL),
            "codes": float(self._have_other_codes()),
        }

    def _describe_frame(self) -> dict[str, float]:
        return {
            "parallel": float(self.ratio >= PARALLEL),
            "other end": float(bool(self.ends)),
            "added": min(self.added, 3) / 3,
            "codes": float(self._have_other_codes()),
        }

    def _describe_ends(self) -> dict[str, float]:
        return {
            "ratio": self.ratio,
            "ends": min(len(self.ends), 3) / 3,
            "size": min(sum(size for size, _ in self.ends), 6) / 6,
            "added": min(self.added, 3) / 3,
            "last": float(max(end for _, end in self.ends) >= len(self.one.spoken) - 1),
            "short": float(min(len(self.one.terms), len(self.other.terms)) <= 2),
        }

    def _follow_each_other(self) -> bool:
        past, present = zip(self.one.times, self.other.times, strict=True)
        is_change = past[0] != past[1] and any(present)
        crossed = (present[0] and past[1]) or (past[0] and present[1])
        return is_change or crossed or (all(past) and self.ratio > 0.4)

    def _have_other_codes(self) -> bool:
        return bool(self.one.codes - self.other.words) and bool(self.other.codes - self.one.words)

    def _compare_values(self) -> tuple[int, int, int]:
        """Return how many values differ, how many of them are days, and how many agree."""
        conflicts = days = agreements = 0
        bare_mine, bare_theirs = _list_bare(self.one.values), _list_bare(self.other.values)
        for value in self.one.values:
            same = [each for each in self.other.values if value.kinds & each.kinds]
            if not same and [value] == bare_mine and len(bare_theirs) == 1 and self._dice >= PARALLEL:
                same = bare_theirs
            if not same:
                continue
            peers = [each for each in self.one.values if each.kinds & value.kinds]
            if any(peer.agrees(each) for peer in peers for each in same):
                agreements += 1
            else:
                conflicts += 1
                days += bool(value.kinds & _OF_TIME)
        return conflicts, days, agreements

    @property
    def _dice(self) -> float:
        return 2 * self.shared / max(1, len(self.one.terms) + len(self.other.terms))

    def _align(self) -> None:
        """Align the words of both: find how alike they are, and which words replace which."""
        matcher = SequenceMatcher(None, self.one.lowered, self.other.lowered, autojunk=False)
        self.ratio, self.starts, self.added, self.ends = matcher.ratio(), 0, 0, list[tuple[int, int]]()
        for kind, start, end, other_start, other_end in matcher.get_opcodes():
            if kind == "equal":
                continue
            one = list(chain.from_iterable(self.one.spoken_terms[start:end]))
            other = list(chain.from_iterable(self.other.spoken_terms[other_start:other_end]))
            _, left, right = match_terms(one, other) if one and other else (0, set(one), set(other))
            if one and other and left and right:
                if start < self.one.verb:
                    self.starts += 1
                else:
                    self.ends.append((len(left) + len(right), end))
            elif left or right:
                self.added += 1


def _split(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of each sentence, followed by those of its parts that say something by themselves."""
    for start, end in split_sentences(text):
        if end - start <= LONGEST_CLAUSE:
            yield start, end
        at, parts = start, list[tuple[int, int]]()
        for match in _BREAK.finditer(text, start, end):
            parts.append((at, match.start()))
            at = match.end()
        parts.append((at, end))
        if len(parts) > 1:
            within = (part for part in parts if part[1] - part[0] <= LONGEST_CLAUSE)
            yield from (part for part in within if len(get_terms(text[slice(*part)])) >= 3)


def _is_name(word: str, at: int) -> bool:
    if at and len(word) > 1 and word[0].isupper():
        return True
    return re.search(r"[a-zA-Z]\d|\d[a-zA-Z]|[a-z]-[a-z]{1,3}\b|/", word) is not None


def _is_code(word: str) -> bool:
    return any(map(str.isdigit, word)) and any(map(str.isalpha, word))


def _list_proper_names(clause: str) -> Iterator[str]:
    for at, word in enumerate(clause.split()):
        if at and re.match(r"[A-Z][a-zA-Z]+", word):
            yield word.strip(".,;:()'\"").lower()


def _have_other_labels(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether both name things of the same kind, such as a hall, but no thing in common."""
    kinds = {label.split()[0] for label in one} & {label.split()[0] for label in other}
    return bool(kinds) and not one & other


def _list_bare(values: Sequence[Value]) -> list[Value]:
    return [value for value in values if all(kind.startswith("of ") for kind in value.kinds)]


def _list_terms(word: str) -> Sequence[str]:
    """Return the terms of a word; words with digits or hyphens stay as they are."""
    word = word.strip(".,:;'")
    return [word] if "-" in word or any(map(str.isdigit, word)) else get_terms(word)
