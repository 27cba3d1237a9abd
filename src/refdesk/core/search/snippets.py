"""Snippets: extracts the part of a body that shows why it matched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import regex

from refdesk.core.search.analysis import analyse, analyse_parts, is_unspaced, locate, locate_first, locate_part
from refdesk.core.search.folding import fold
from refdesk.core.search.inflection import MARK, get_language
from refdesk.core.search.joined import is_joint
from refdesk.model import TextQuery

WIDTH = 240
"""Code points of a snippet."""

ELLIPSIS = "…"

_NEIGHBOURHOOD = 4
"""How many snippet widths of text are looked at on each side of a match."""

_WORD_SLACK = 20
"""Most code points that are given up to cut between words."""

_IRREGULAR = {"die": ("die", "dy"), "lie": ("lie", "ly"), "tie": ("tie", "ty"), "sky": ("sky", "ski")}
"""How the word forms of terms that Snowball treats as exceptions begin (dying, skies)."""

_BEGINNING = 4
"""How many letters nearly all words of a stem have in common at their beginning in languages other than English."""

_MAX_LOOKS = 300
"""After this many words that only begin like the one looked for, all words are analysed in one go."""

_EVERY_TEXT = (None,)
"""The languages of terms that every text gives."""

_IN_WORD = regex.compile(r"[^\W_]['’]?$")
_GRAPHEME = regex.compile(r"\X")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is looked for.

    Attributes:
        runs: Runs of terms, by their first term.
        longest: How many terms the longest run has.
        beginnings: How words that begin a run may begin.
        languages: The languages of the terms; `None` stands for the terms that every text gives.
    """

    runs: Mapping[str, Sequence[tuple[str, ...]]]
    longest: int
    beginnings: tuple[str, ...]
    languages: tuple[str | None, ...]


def snippet(body: str, query: TextQuery, passage: tuple[int, int] | None = None, width: int = WIDTH) -> str:
    """Return at most `width` code points of a body, blanks folded, with `…` at each end that is cut.

    The first match is centred: that of a phrase if the query has one, or else of a term. Without a match in the body
    the snippet begins with `passage` (start, end in code points), or else with the body. Graphemes stay whole, and so
    do words if that costs little.
    """
    start, end = _find(body, query) or _start_of(passage)
    reach = _NEIGHBOURHOOD * width
    first, last = max(0, start - reach), end + reach
    before, after = _fold_blanks(body[first:start] + "|")[:-1], _fold_blanks("|" + body[start:last])[1:]
    lead = max(0, width - (end - start)) // 2 if end > start else 0
    text = before + after
    return _cut(text, max(0, len(before) - lead), width, bool(body[:first].strip()), bool(body[last:].strip()))


def _start_of(passage: tuple[int, int] | None) -> tuple[int, int]:
    return (passage[0], passage[0]) if passage else (0, 0)


def _fold_blanks(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, start: int, width: int, goes_before: bool, goes_on: bool) -> str:
    """Return `width` code points of `text` from `start`, or from an earlier place if the text ends sooner."""
    is_cut = start > 0 or goes_before
    end = start + width - is_cut
    if end >= len(text) and not goes_on:
        end = len(text)
        start = max(0, end - width + is_cut)
        is_cut = start > 0 or goes_before
        goes_after = False
    else:
        end, goes_after = min(len(text), end - 1), True
    start, end = _align(text, start, end)
    return ELLIPSIS * is_cut + text[start:end].strip() + ELLIPSIS * goes_after


def _align(text: str, start: int, end: int) -> tuple[int, int]:
    """Move both ends inwards: to grapheme borders, and to the nearest blank if there is one close by."""
    if start > 0 and not text[start - 1].isspace():
        blank = text.find(" ", start, start + _WORD_SLACK)
        start = blank + 1 if blank >= 0 else start
    if end < len(text) and not text[end].isspace():
        blank = text.rfind(" ", max(start, end - _WORD_SLACK), end)
        end = blank if blank >= 0 else end
    if text.isascii():
        return start, end
    borders = [match.start() for match in _GRAPHEME.finditer(text)] + [len(text)]
    start = next(border for border in borders if border >= start)
    return start, max(start, next(border for border in reversed(borders) if border <= end))


def _find(body: str, query: TextQuery) -> tuple[int, int] | None:
    """Return (start, end) of the first run of terms in the body that the query asks for."""
    wanted = _prepare(query)
    lowered = body.lower()
    if len(lowered) != len(body):
        return _scan(body, wanted)
    first = None
    for beginning in wanted.beginnings:
        # A match that begins after one already found cannot be the first.
        stop = len(body) if first is None else first[0] + len(beginning)
        if match := _find_beginning(body, lowered, beginning, wanted, stop):
            first = match if first is None else min(first, match)
    if first is not None or body.isascii():
        return first
    # Words may be spelt differently, such as with accents; every word is analysed only if that seems to be the case.
    folded = fold(" ".join({word for word in body.split() if not word.isascii()}))
    return _scan(body, wanted) if any(beginning in folded for beginning in wanted.beginnings) else None


def occurs(term: str, text: str) -> bool:
    """Return whether a term occurs in a text; no more of a long text is analysed than necessary."""
    return _find(text, TextQuery((term,))) is not None


def find_terms(text: str, terms: Collection[str]) -> set[str]:
    """Return those of the terms that occur in a text; far faster than analysing it if it is plain ASCII."""
    if not text.isascii():
        return set(terms).intersection([*analyse(text), *analyse_parts(text)])
    lowered = text.lower()
    return {term for term in terms if _holds(text, lowered, _want(term))}


def _holds(text: str, lowered: str, wanted: _Wanted) -> bool:
    return any(_find_beginning(text, lowered, each, wanted, len(text)) for each in wanted.beginnings)


def _find_beginning(body: str, lowered: str, beginning: str, wanted: _Wanted, stop: int) -> tuple[int, int] | None:
    """Return the first run whose first word has this beginning and starts before the offset `stop`."""
    start = lowered.find(beginning, 0, stop)
    looked_at = 0
    while start >= 0:
        if looked_at > _MAX_LOOKS:
            return _scan(body, wanted)
        if not _is_within_word(lowered, start) or is_unspaced(beginning):
            looked_at += 1
            if match := _match_at(body, start, wanted) or _match_part(body, start, wanted):
                return match
        elif is_joint(body, start) and (match := _match_part(body, start, wanted)):
            return match
        start = lowered.find(beginning, start + 1, stop)
    return None


def _match_at(body: str, start: int, wanted: _Wanted) -> tuple[int, int] | None:
    if wanted.longest == 1 and wanted.languages == _EVERY_TEXT:
        first = locate_first(body, start)
        return first[:2] if first is not None and first[2] in wanted.runs else None
    for language in wanted.languages:
        located = list(islice(locate(body, start, language), wanted.longest if language is None else 1))
        if match := _match(located, 0, wanted):
            return match
    return None


def _match_part(body: str, start: int, wanted: _Wanted) -> tuple[int, int] | None:
    located = locate_part(body, start)
    return located[:2] if located and (located[2],) in wanted.runs.get(located[2], ()) else None


def _is_within_word(text: str, start: int) -> bool:
    before = text[start - 1] if start else " "
    # It is nearly always a blank or an English letter, which need no closer look.
    return before not in " \n" and ("a" <= before <= "z" or _IN_WORD.search(text, max(0, start - 2), start) is not None)


def _scan(body: str, wanted: _Wanted) -> tuple[int, int] | None:
    found = [match for language in wanted.languages if (match := _scan_in(body, wanted, language))]
    return min(found, default=None)


def _scan_in(body: str, wanted: _Wanted, language: str | None) -> tuple[int, int] | None:
    located = list(locate(body, language=language))
    matches = (_match(located, index, wanted) for index, (_, _, term) in enumerate(located) if term in wanted.runs)
    return next((match for match in matches if match), None)


def _match(located: Sequence[tuple[int, int, str]], index: int, wanted: _Wanted) -> tuple[int, int] | None:
    """Return (start, end) of the run that begins with the term numbered `index`, if there is one."""
    if index >= len(located):
        return None
    for run in wanted.runs.get(located[index][2], ()):
        part = located[index : index + len(run)]
        if tuple(term for _, _, term in part) == run:
            return part[0][0], part[-1][1]
    return None


@lru_cache(maxsize=256)
def _prepare(query: TextQuery) -> _Wanted:
    """Return what a question looks for: its phrases or, if it has none, its terms."""
    return _gather(query.phrases or [(term,) for term in query.terms])


@lru_cache(maxsize=1024)
def _want(term: str) -> _Wanted:
    return _gather([(term,)])


def _gather(every: Sequence[tuple[str, ...]]) -> _Wanted:
    runs: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for run in every:
        runs[run[0]].append(run)
    longest = max((len(run) for run in every), default=0)
    beginnings = tuple(dict.fromkeys(beginning for term in runs for beginning in get_beginnings(term)))
    # Terms that every text gives are looked at first: `dict.fromkeys` keeps the order.
    return _Wanted(dict(runs), longest, beginnings, tuple(dict.fromkeys((None, *map(get_language, runs)))))


def get_beginnings(term: str) -> tuple[str, ...]:
    """Return how words that are stemmed to `term` begin, in lower case.

    Snowball only takes letters off the end, except that it may add an e, turn a y into an i, or change -bility.
    """
    if get_language(term):
        stem = term.partition(MARK)[2]
        return (stem[:_BEGINNING],)
    if term in _IRREGULAR or len(term) < 2 or is_unspaced(term):
        return _IRREGULAR.get(term, (term,))
    return (term[:-1],) if term.endswith(("e", "i", "bl")) else (term,)
