"""How well a hit matches: its strength on one absolute scale for every toolset, and the name of its place on it.

Scores say which hit of an answer is the best, not whether it is any good: the first hit of a collection that knows
nothing about the subject has a high one. The strength depends only on the question and the hit. Words count by how many
of those asked are there, and more in the title; the vector counts by the cosine, on the scale of the packaged model
(`cosines`). Without a vector, or if cosines tell nothing, words alone decide, on the same scale. What a question calls
by its exact name is either there or not (`naming`), whatever the vector says. `make eval` prints how well the strength
distinguishes questions about the subject from others.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from math import nextafter, sqrt
from typing import TYPE_CHECKING

from refdesk.core.search import cosines, naming
from refdesk.core.search.analysis import analyse, analyse_document, analyse_parts
from refdesk.core.search.folding import fold
from refdesk.core.search.inflection import MARK, get_language
from refdesk.core.search.matches import Match
from refdesk.core.search.semantics import MISSING_MEANING
from refdesk.core.search.snippets import find_terms, occurs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set

    from refdesk.core.search.semantics import SemanticStatus
    from refdesk.model import CosineScale, TextQuery

STRONG = 0.52
"""At most 3 of 100 questions about something else find a hit of this strength."""

PARTIAL = 0.33
"""At most 3 of 100 questions about the subject find no hit of this strength."""

NOTHING_BETTER = "No result is a better match than weak: this is probably not known here."

EXCERPT_CHARACTERS = 6_000
"""Most of a body that is looked at: long bodies would hold up everybody else."""

AROUND_PASSAGE = 1_000
"""Characters looked at on each side of the best passage, if one is known: text farther off is about something else."""

WINDOW = 600
"""Characters within which words count as standing together. In a long text, some words of any question occur
somewhere."""

_MOST_BESIDE = 2
"""Most further words of a question that asks for little besides what it names."""

_LONGEST_EXACT = 16
"""Most terms of a question in which codes must match; longer ones, such as a log or a customer's report, contain codes
that no answer has."""

_SUMMARY_LIFT = 0.3
"""How much of what a summary lacks to be strong is added, since most of the text that it summarises is not in it."""

_WORDS_TRUST = 0.3
"""How much of what the cosine lacks to 1 words can make up for."""

_USUAL_EVIDENCE = 2.3
"""The evidence at which words count one half."""

_LEAST_PART = 5
"""Fewest characters of a term that is looked for within words: such terms are rarely part of an unrelated word."""

_USUAL_LENGTH = 500
"""Up to how many characters the words of a text are not taken to occur by chance."""


def judge(
    text: TextQuery,
    title: str,
    body: str,
    cosine: float | None = None,
    scale: CosineScale | None = None,
    passage: tuple[int, int] | None = None,
    *,
    is_summary: bool = False,
) -> float:
    """Return the strength of a hit, in [0, 1], whatever else was found.

    Args:
        text: What was asked.
        title: Of the hit.
        body: Of the hit.
        cosine: Of its best passage; `None` where it has no vector.
        scale: Of the model that gave the cosine; `None` if it is not known, so that the cosine tells nothing.
        passage: Offsets of its best passage in the body (start, end in code points).
        is_summary: Whether the body is only a summary of what was found.
    """
    excerpt = _get_excerpt(body, passage)
    strength = words = _judge_words(text, title, excerpt)
    if cosine is not None and scale is not None:
        meaning = min(1.0, max(0.0, cosines.to_reference(cosine, scale)))
        strength = 1.0 - (1.0 - meaning) * (1.0 - _WORDS_TRUST * words)
    # A hit without any evidence stays at 0.
    if is_summary and 0.0 < strength < STRONG:
        strength += _SUMMARY_LIFT * (STRONG - strength)
    beside = _list_beside(text, text.identifiers)
    held = _find_identifiers(text.identifiers, title, body, excerpt)
    if not is_summary and _lacks_what_is_named(text, held):
        return min(strength, nextafter(STRONG if beside else PARTIAL, 0.0))
    return max(strength, words, PARTIAL) if _has_all(text, beside, held, title, body) else strength


def cover(text: TextQuery, title: str, body: str, passage: tuple[int, int] | None = None) -> float:
    """Return the share of a question's words that a hit has in its title or together in its text, in [0, 1].

    Args:
        text: What was asked.
        title: Of the hit.
        body: Of the hit.
        passage: Offsets of its best passage in the body, as for `judge`.
    """
    found = _find_words(text, title, _get_excerpt(body, passage))
    return max(len(in_title | written) / max(1, len(asked)) for asked, in_title, written in found)


def name(strength: float) -> Match:
    """Return the name of a strength's place on the scale."""
    return "strong" if strength >= STRONG else "partial" if strength >= PARTIAL else "weak"


def get_notice(matches: Iterable[Match | None], semantic: SemanticStatus = "off") -> str | None:
    """Return what to say first: that vectors took no part, or that there are hits but none is better than weak."""
    return MISSING_MEANING.get(semantic) or (NOTHING_BETTER if set(matches) == {"weak"} else None)


@lru_cache(maxsize=256)
def _list_beside(text: TextQuery, identifiers: tuple[str, ...]) -> frozenset[str]:
    """Return the terms of a question, without those of its identifiers and those of languages other than English."""
    asked, inflected = _read_asked(text)
    return asked - inflected - {term for each in identifiers for term in (*analyse(each), *analyse_parts(each))}


def _find_identifiers(identifiers: tuple[str, ...], title: str, body: str, excerpt: str) -> set[str]:
    """Return those of the identifiers that a hit has anywhere."""
    if not identifiers:
        return set()
    text = f"{title}\n{body}".lower()
    held = {each for each in identifiers if naming.holds(text, each)}
    if text.isascii() or held.issuperset(identifiers):
        return held
    # Other forms of digits and letters are rare, and folding a long text is slow, so only the excerpt is folded.
    folded = fold(f"{title}\n{excerpt}")
    return held | {each for each in identifiers if naming.holds(folded, each)}


def _has_all(text: TextQuery, beside: Set[str], held: Set[str], title: str, body: str) -> bool:
    """Return whether a hit has everything in a question of a single word, or of little besides what it names."""
    is_short = len(beside) <= _MOST_BESIDE if held else len(beside) == 1
    return (
        is_short and held >= set(text.identifiers) and all(occurs(each, title) or occurs(each, body) for each in beside)
    )


def _lacks_what_is_named(text: TextQuery, held: Set[str]) -> bool:
    """Return whether a question names its subject by codes, and a hit has none of them."""
    if len(text.terms) > _LONGEST_EXACT:
        return False
    named = {each for each in text.identifiers if naming.is_exact(each)}
    return bool(named) and named.isdisjoint(held)


def _judge_words(text: TextQuery, title: str, excerpt: str) -> float:
    """Return the strength without a vector: the number of words asked that occur, times the share of them that do.

    In a long text some occur by chance, so they count less; a word in the title counts twice.
    """
    return max(_weigh(*found, excerpt) for found in _find_words(text, title, excerpt))


def _find_words(text: TextQuery, title: str, excerpt: str) -> Iterator[tuple[Set[str], Set[str], Set[str]]]:
    """Yield the terms asked, those of them in the title, and those that stand together in the text.

    Terms of languages other than English are yielded apart from those of `analyse`.
    """
    asked, inflected = _read_asked(text)
    if not inflected:
        written = _find_together(excerpt, find_terms(excerpt, asked))
        yield (
            asked,
            asked.intersection([*analyse(title), *analyse_parts(title)]) | _find_parts(fold(title), asked),
            written,
        )
        return
    # A question in another language is matched by that language's terms, and by those that every text gives.
    titled, written = (set(terms) for terms in analyse_document(title, excerpt))
    for each in (inflected, asked - inflected):
        yield each, each & titled, _find_together(excerpt, each & written)


@lru_cache(maxsize=256)
def _read_asked(text: TextQuery) -> tuple[frozenset[str], frozenset[str]]:
    """Return all terms of a question, and those of them that belong to a language other than English."""
    asked = frozenset((*text.terms, *chain.from_iterable(text.phrases)))
    return asked, frozenset(filter(get_language, asked))


def _weigh(asked: Set[str], in_title: Set[str], written: Set[str], excerpt: str) -> float:
    found = len(in_title | written)
    evidence = found * (found + len(in_title)) / max(1, len(asked))
    evidence /= max(1.0, len(excerpt) / _USUAL_LENGTH) ** 0.25
    return sqrt(evidence) / (sqrt(evidence) + sqrt(_USUAL_EVIDENCE))


def _find_parts(title: str, terms: Iterable[str]) -> set[str]:
    """Return the terms that are at least a part of a word of a title: *authentic* in *Reauthentication*."""
    return {term for term in terms if len(term) >= _LEAST_PART and term in title}


def _find_together(excerpt: str, found: Set[str]) -> Set[str]:
    """Return those of the terms found in a text that stand together within the `WINDOW` that contains the most.

    Terms that are not found literally, since their words are spelt differently, count as being in the window.
    """
    if len(excerpt) <= WINDOW or len(found) < 2:
        return found
    text = excerpt.lower() if excerpt.isascii() else fold(excerpt)
    written = {term: term.rpartition(MARK)[2] for term in found}
    first = {term: place for term, word in written.items() if (place := text.find(word)) >= 0}
    if len(first) < 2 or max(first.values()) - min(first.values()) <= WINDOW:
        return found
    places = sorted(
        (place, term) for term, start in first.items() for place in _list_places(text, written[term], start)
    )
    return (found - first.keys()) | _slide(places, len(first))


def _slide(places: Sequence[tuple[int, str]], most: int) -> set[str]:
    """Return the terms of the window that contains the most; `most` is how many distinct terms `places` has."""
    counts, begin, best = dict[str, int](), 0, set[str]()
    for place, term in places:
        counts[term] = counts.get(term, 0) + 1
        while places[begin][0] < place - WINDOW:
            left = places[begin][1]
            counts[left] -= 1
            if not counts[left]:
                del counts[left]
            begin += 1
        if len(counts) > len(best):
            best = set(counts)
            if len(best) == most:
                break
    return best


def _list_places(text: str, term: str, place: int) -> Iterator[int]:
    """Yield each place of a term in a text, beginning with the given one."""
    while place >= 0:
        yield place
        place = text.find(term, place + len(term))


def _get_excerpt(body: str, passage: tuple[int, int] | None) -> str:
    """Return the part of a body that is looked at: its best passage with what surrounds it, or else the beginning."""
    if passage is None:
        return body[:EXCERPT_CHARACTERS]
    start = max(0, passage[0] - AROUND_PASSAGE)
    return body[start : min(passage[1] + AROUND_PASSAGE, start + EXCERPT_CHARACTERS)]
