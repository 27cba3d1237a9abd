"""Derives what searches need from a document: terms, positions, facet values and the numbers that stand for them."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from refdesk.core.keeping.encoding import check_texts, encode_date_ranges
from refdesk.core.search import analysis
from refdesk.core.search.analysis import Pieces, analyse, analyse_word, inflect_document, split
from refdesk.core.search.bm25 import TITLE_WEIGHT
from refdesk.errors import InvalidInputError
from refdesk.model import State, facet_key

if TYPE_CHECKING:
    from refdesk.model import Collection, Document

ANALYSIS_VERSION = 5000 + analysis.VERSION
"""Goes up, by a thousand for another layout, when `derive` or `Tokens` would give something else for some document;
what was derived by another version is made anew."""

GRAM = 3
"""Code points of the pieces by which titles are found: shorter ones are found by reading every title."""

PIECE = 60_000
"""Code points of a text that PostgreSQL parses at once: of a longer one the words might be more than it takes."""

EVERY = 0
"""The number that every entry holds."""

NONE = -1
"""A number that no entry holds."""

MOST_FREQUENT = 2**15 - 1
"""The highest frequency that is kept; far below, repetitions have stopped counting."""

MOST_REMEMBERED = 2**15
"""Pieces of texts whose numbers are kept in memory for a collection, and of other things: most of a text are common."""

MOST_COLLECTIONS = 8
"""For so many collections they are kept, those that were written to or asked last."""

MOST_IN_HALF = 15
"""The highest frequency that half a byte holds."""

SHORT = 20_000
"""Code points that are analysed in a few milliseconds, so that handing them to a thread would take longer."""

_WORD_BITS = 2**30
"""Facets and pieces of titles are below, terms and words as they are written from here on."""

_SURROGATES, _SURROGATE_COUNT = 0xD800, 0x800

_PLAIN_WORD = re.compile(r"([A-Za-z]{1,100})[.,;:!?]?")
"""What PostgreSQL's parser reads as one word and nothing else, where blanks are on either side."""

_BETWEEN_BLANKS = re.compile(r"[^ \n\t\r\f\v]+")
_OTHER_BLANKS = "\x1c\x1d\x1e\x1f"
"""What of ASCII parts texts to Python, and not to PostgreSQL."""


@dataclass(frozen=True, slots=True)
class Derived:
    """What is searched of a document.

    Attributes:
        length: How many words it has, those of the title counted as `TITLE_WEIGHT` each.
        terms: Their numbers, ascending.
        frequencies: How often each occurs; a word of the title counts as `TITLE_WEIGHT`. Two to a byte, the lower half
            first, where none occurs more often than `MOST_IN_HALF`; else a byte for each, the lower one.
        high_frequencies: The higher byte of each, where one needs it.
        sequence: A character for each term in its order, the title's parted from the body's; see `spell`.
        facets: Numbers of facet values, ascending.
        others: Further numbers by which it is found, those of plain words that are no terms too.
        inflected: Terms that are no plain words of it as they are written.
        texts: What of it is no plain words, in pieces that PostgreSQL can parse.
        date_ranges: (name, start, end).
    """

    title_key: str
    length: int
    terms: Sequence[int]
    frequencies: bytes
    high_frequencies: bytes | None
    sequence: str
    facets: Sequence[int]
    others: Sequence[int]
    inflected: Sequence[int]
    texts: tuple[str, ...]
    date_ranges: tuple[tuple[str, int, int], ...]


class Tokens:
    """Numbers for what the entries of one collection hold; those of others cost its searches next to nothing."""

    def __init__(self, collection: Collection) -> None:
        self._key = _hash(f"{len(collection.org)}:{collection.org}{collection.toolset}", b"", 16)
        self.numbers = _get_numbers(self._key)

    @property
    def of_collection(self) -> str:
        """What the database hashes words with as they are written, in hexadecimal."""
        return self._key.hex()

    def of_term(self, term: str) -> int:
        """Return the number of an analysed term; a word that is written so has the same."""
        return self.numbers.of_word(term)

    def of_facet(self, name: str, value: str) -> int:
        """Return the number of a facet value, by its `facet_key`: 64 bits with a sign."""
        return int.from_bytes(_hash(f"f:{len(name)}:{name}{facet_key(value)}", self._key, 8), "big", signed=True)

    def of_state(self, state: State) -> int:
        """Return the number of a state; those that are current, as most are, have none."""
        return self.numbers.of_marks[f"s:{state.value}"]

    def of_title(self, key: str) -> list[int]:
        """Return the numbers of the pieces of a title's words, or of a part of one; none where all are shorter."""
        words = key.split()
        pieces = dict.fromkeys(word[start : start + GRAM] for word in words for start in range(len(word) - GRAM + 1))
        return [self.numbers.of_marks[f"t:{piece}"] for piece in pieces]


class _Numbers:
    """Those of one collection that were met lately: looking one up takes a fraction of what hashing it does.

    Attributes:
        of_word: Returns that of a term, or of a word as it is written.
        of_pieces: Of each piece between blanks that of the word that it is to PostgreSQL, or `NONE` where that
            parses it; then those of its terms, which are the same by itself as in its text, in order.
        of_marks: That of each piece of a title, and of each state.
    """

    def __init__(self, key: bytes) -> None:
        hash_word, from_bytes = hashlib.sha256, int.from_bytes

        def number_word(word: str) -> int:
            """Return what `refdesk_number` returns in the database, which has few hashes in common with Python."""
            digest = hash_word(key + word.encode("utf-8", "surrogatepass")).digest()
            return from_bytes(digest[:4], "big") & (_WORD_BITS - 1) | _WORD_BITS

        def number_piece(piece: str) -> tuple[int, ...]:
            plain = _PLAIN_WORD.fullmatch(piece)
            if plain is None:
                return (NONE, *map(self.of_word, analyse(piece)))
            word = plain[1].lower()
            (term,) = analyse_word(word)
            number = number_word(word)
            return (number, number if term == word else self.of_word(term))

        def number_mark(text: str) -> int:
            return 1 + int.from_bytes(_hash(text, key, 4), "big") % (_WORD_BITS - 1)

        self.of_word = lru_cache(MOST_REMEMBERED)(number_word)
        self.of_pieces = Pieces(number_piece, MOST_REMEMBERED)
        self.of_marks = Pieces(number_mark, MOST_REMEMBERED)


_get_numbers = lru_cache(MOST_COLLECTIONS)(_Numbers)


def shorten(facet: int) -> int:
    """Return the number by which entries are found that hold a facet value; another value may have the same."""
    return 1 + facet % (_WORD_BITS - 1)


def derive(document: Document) -> Derived:
    """Return what is searched of the document.

    Raises:
        InvalidInputError: A facet or span has a name or value that cannot be stored.
    """
    tokens = Tokens(document.collection)
    title, body = (_number(text, tokens) for text in (document.title, document.body))
    inflected = inflect_document(document.title, document.body, split(document.body))
    of_title, of_body = (
        [*text.terms, *map(tokens.of_term, further)] for text, further in zip((title, body), inflected, strict=True)
    )
    frequencies = Counter(of_body)
    for number in of_title:
        frequencies[number] += TITLE_WEIGHT
    terms = sorted(frequencies)
    places = dict(zip(terms, range(1, len(terms) + 1), strict=True))
    check_texts(*document.date_ranges)
    key, counts = facet_key(document.title), list(map(frequencies.__getitem__, terms))
    most = max(counts, default=0)
    if most > MOST_FREQUENT:
        counts = [min(count, MOST_FREQUENT) for count in counts]
    facets = sorted({tokens.of_facet(name, each) for name, values in document.facets.items() for each in values})
    states = [] if document.state is State.CURRENT else [tokens.of_state(document.state)]
    written = title.words | body.words
    unread = dict.fromkeys((*title.unread, *body.unread))
    spelt = (spell(map(places.__getitem__, part)) for part in (of_title, of_body))
    return Derived(
        title_key=key,
        length=frequencies.total(),
        terms=terms,
        frequencies=_pack(counts),
        high_frequencies=bytes(count >> 8 for count in counts) if most > 255 else None,
        sequence=spell([len(terms) + 1]).join(spelt),
        facets=facets,
        others=[EVERY, *states, *sorted({*map(shorten, facets), *tokens.of_title(key), *written.difference(terms)})],
        inflected=[term for term in terms if term not in written],
        texts=(*title.whole, *body.whole, *(_cut("\n".join(unread)) if unread else ())),
        date_ranges=tuple(
            (name, *ends) for name, spans in document.date_ranges.items() for ends in encode_date_ranges(spans)
        ),
    )


class _Numbered(NamedTuple):
    """A text as numbers.

    Attributes:
        terms: Of its terms, in order.
        words: Of its plain words, as they are written.
        unread: Its other pieces, which PostgreSQL is to parse.
        whole: The text in the place of both: to PostgreSQL tags reach over blanks.
    """

    terms: Sequence[int]
    words: frozenset[int]
    unread: Sequence[str] = ()
    whole: Sequence[str] = ()


def _number(text: str, tokens: Tokens) -> _Numbered:
    """Return the numbers of a text.

    PostgreSQL's parser reads each piece between blanks by itself, but for tags. Most pieces of most texts are plain
    words, which it takes far longer for.
    """
    pieces = _part(text)
    numbered = list(map(tokens.numbers.of_pieces.__getitem__, pieces))
    terms = [term for piece in numbered for term in piece[1:]]
    if "<" in text:
        return _Numbered(terms, frozenset(), whole=tuple(_cut(text)))
    words = frozenset(piece[0] for piece in numbered)
    if NONE not in words:
        return _Numbered(terms, words)
    unread = [piece for piece, numbers in zip(pieces, numbered, strict=True) if numbers[0] == NONE]
    return _Numbered(terms, words - {NONE}, unread)


def _part(text: str) -> list[str]:
    """Return the pieces between blanks, which are those that PostgreSQL knows."""
    if text.isascii() and not any(map(text.__contains__, _OTHER_BLANKS)):
        return text.split()
    return _BETWEEN_BLANKS.findall(text)


def _pack(counts: Sequence[int]) -> bytes:
    if len(counts) < 2 or max(counts) > MOST_IN_HALF:
        return bytes(count & 255 for count in counts)
    halves = counts if len(counts) % 2 == 0 else [*counts, 0]
    return bytes([low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=True)])


class Ahead:
    """Derives what searches need of documents while the database, or others' turns, are waited for."""

    def __init__(self) -> None:
        self._documents: Sequence[Document] = ()
        self._derived: dict[int, tuple[Document, Derived]] = {}

    def begin(self, documents: Sequence[Document]) -> None:
        """Derive it as soon as this task waits, unless it would keep other tasks waiting."""
        if sum(len(document.body) for document in documents) <= SHORT:
            self._documents = documents
            asyncio.get_running_loop().call_soon(self._derive)

    def take(self, document: Document) -> Derived:
        """Return it; errors as in `derive`."""
        self._documents = ()
        known, derived = self._derived.pop(id(document), (None, None))
        return derived if derived is not None and known is document else derive(document)

    def _derive(self) -> None:
        for document in self._documents:
            # What cannot be stored is refused where it is put, if it is.
            with suppress(InvalidInputError):
                self._derived[id(document)] = document, derive(document)


def spell(places: Iterable[int]) -> str:
    """Return a character for each place, counted from 1; none is half of a surrogate pair."""
    every = list(places)
    if (most := max(every, default=0)) < 256:
        return bytes(every).decode("latin-1")
    if most < _SURROGATES:
        return "".join(map(chr, every))
    return "".join([chr(place if place < _SURROGATES else place + _SURROGATE_COUNT) for place in every])


def _hash(text: str, key: bytes, size: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=size).digest()


def _cut(text: str) -> Iterable[str]:
    """Yield the text in pieces of at most `PIECE`, cut at blanks where there are any."""
    start = 0
    while len(text) - start > PIECE:
        blank = max(text.rfind(mark, start, start + PIECE) for mark in " \n")
        end = blank + 1 if blank > start else start + PIECE
        yield text[start:end]
        start = end
    yield text[start:]
