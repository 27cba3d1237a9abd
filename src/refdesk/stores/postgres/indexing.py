"""Derives what searches need from a document: terms, positions, facet values and their tokens."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from refdesk.core.keeping.encoding import check_texts, encode_date_ranges
from refdesk.core.search import analysis
from refdesk.core.search.analysis import analyse_document
from refdesk.core.search.bm25 import TITLE_WEIGHT
from refdesk.model import State, facet_key

if TYPE_CHECKING:
    from refdesk.model import Document

ANALYSIS_VERSION = 2000 + analysis.VERSION
"""Goes up, by a thousand for another layout, when `derive` or `Tokens` would give something else for some document;
what was derived by another version is made anew."""

GRAM = 3
"""Code points of the pieces by which titles are found: shorter ones are found by reading every title."""

MOST_TOKENS = 60_000
"""PostgreSQL keeps a mebibyte of lexemes of one text: what is beyond (a word in a document of 60,000 distinct ones;
facet values come first) is stored and scored, but alone finds nothing."""

MOST_WORDS = 65_000
"""The same limit for these tokens and those of the words as they are written, which come last."""

PIECE = 60_000
"""Code points of a text that PostgreSQL parses at once: of a longer one the words might be more than it takes."""


@dataclass(frozen=True, slots=True)
class Derived:
    """What is searched of a document.

    Attributes:
        frequencies: How often each term occurs; a word of the title counts as `TITLE_WEIGHT`.
        words: The terms in their order, a blank on either side of each, the title's parted from the body's.
        texts: Title and body in pieces that PostgreSQL can parse.
        facet_values: (name, key, value, uses, whether it is the first spelling of the key) for each spelling.
        spans: (name, start, end).
    """

    frequencies: Mapping[str, int]
    title_key: str
    words: str
    texts: tuple[str, ...]
    facet_values: tuple[tuple[str, str, str, int, bool], ...]
    date_ranges: tuple[tuple[str, int, int], ...]

    @property
    def length(self) -> int:
        """How many words it has, those of the title counted as `TITLE_WEIGHT` each."""
        return sum(self.frequencies.values())


def derive(document: Document) -> Derived:
    """Return what is searched of the document.

    Raises:
        InvalidInputError: A facet or span has a name or value that cannot be stored.
    """
    in_title, in_body = analyse_document(document.title, document.body)
    frequencies = Counter(in_body)
    for term in in_title:
        frequencies[term] += TITLE_WEIGHT
    check_texts(*document.date_ranges)
    return Derived(
        frequencies=frequencies,
        title_key=facet_key(document.title),
        words=f"{spell(in_title)}\n{spell(in_body)}",
        texts=(*_cut(document.title), *_cut(document.body)),
        facet_values=tuple(_list_facet_values(document.facets)),
        date_ranges=tuple(
            (name, *ends) for name, spans in document.date_ranges.items() for ends in encode_date_ranges(spans)
        ),
    )


def spell(terms: Iterable[str]) -> str:
    """Return the terms with a blank on either side of each: what a phrase is looked for as."""
    return f" {' '.join(terms)} "


class Tokens:
    """Makes the tokens of one collection: 64-bit hashes keyed by its secret, as lexemes that need no quoting."""

    def __init__(self, secret: UUID) -> None:
        self._secret = secret.bytes

    def of_term(self, term: str) -> str:
        """Return the token of an analysed term."""
        return self._hash(f"w:{term}")

    def of_facet(self, name: str, value: str) -> str:
        """Return the token of a facet value, by its `facet_key`."""
        return self._hash(f"f:{len(name)}:{name}{facet_key(value)}")

    def of_state(self, state: State) -> str:
        """Return the token of a state; those that are current, as most are, have none."""
        return self._hash(f"s:{state.value}")

    def of_title(self, key: str) -> list[str]:
        """Return the tokens of the pieces of a title, or of a part of one; none when it is shorter than a piece."""
        pieces = dict.fromkeys(key[start : start + GRAM] for start in range(len(key) - GRAM + 1))
        return [self._hash(f"t:{piece}") for piece in pieces]

    def of_document(self, derived: Derived, state: State) -> list[str]:
        """Return every token of a document, at most `MOST_TOKENS`."""
        facets = {(name, key) for name, key, *_ in derived.facet_values}
        tokens = [] if state is State.CURRENT else [self.of_state(state)]
        tokens += [self.of_facet(name, key) for name, key in sorted(facets)]
        tokens += map(self.of_term, derived.frequencies)
        tokens += self.of_title(derived.title_key)
        return tokens[:MOST_TOKENS]

    @property
    def secret(self) -> bytes:
        """What keys the tokens; PostgreSQL itself makes those of words as they are written."""
        return self._secret

    def of_word(self, word: str) -> str:
        """Return the token of a word as PostgreSQL's configuration `simple` has it, which only folds case."""
        return hashlib.sha256(self._secret + word.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _hash(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self._secret, digest_size=8).hexdigest()


def _cut(text: str) -> Iterable[str]:
    """Yield the text in pieces of at most `PIECE`, cut at blanks where there are any."""
    start = 0
    while len(text) - start > PIECE:
        blank = max(text.rfind(mark, start, start + PIECE) for mark in " \n")
        end = blank + 1 if blank > start else start + PIECE
        yield text[start:end]
        start = end
    yield text[start:]


def _list_facet_values(facets: Mapping[str, tuple[str, ...]]) -> Iterable[tuple[str, str, str, int, bool]]:
    for name, values in facets.items():
        check_texts(name, *values)
        met: set[str] = set()
        for value, uses in Counter(values).items():
            key = facet_key(value)
            yield name, key, value, uses, key not in met
            met.add(key)
