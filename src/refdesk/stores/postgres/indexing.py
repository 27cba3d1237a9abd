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
"""Goes up whenever `derive` or `Tokens` would return something else for some document, by a thousand if the layout
changes; what another version derived is derived anew."""

GRAM = 3
"""Code points of the pieces by which titles are found: for shorter texts every title is read."""

PIECE = 60_000
"""Most code points of a text that PostgreSQL parses at once: a longer one might have more words than it accepts."""

EVERY = 0
"""The number that every entry holds."""

NONE = -1
"""A number that no entry holds."""

MOST_FREQUENT = 2**15 - 1
"""The highest frequency that is stored; repetitions stop counting far below it."""

MOST_REMEMBERED = 2**15
"""Most pieces of text, and most other things, whose numbers are cached per collection: most pieces are common."""

MOST_COLLECTIONS = 8
"""Most collections for which numbers are cached: those that were last written to or searched."""

MOST_IN_HALF = 15
"""The highest frequency that half a byte holds."""

SHORT = 20_000
"""Code points that are analysed in a few milliseconds: handing them to a thread would take longer."""

_WORD_BITS = 2**30
"""Numbers of facets and pieces of titles are below this; those of terms, and of words as written, are not."""

_SURROGATES, _SURROGATE_COUNT = 0xD800, 0x800

_PLAIN_WORD = re.compile(r"([A-Za-z]{1,100})[.,;:!?]?")
"""What PostgreSQL's parser reads as one word and nothing else, if blanks are on either side."""

_BETWEEN_BLANKS = re.compile(r"[^ \n\t\r\f\v]+")
_OTHER_BLANKS = "\x1c\x1d\x1e\x1f"
"""ASCII characters that separate words for Python but not for PostgreSQL."""


@dataclass(frozen=True, slots=True)
class Derived:
    """What searches need of a document.

    Attributes:
        length: How many words it has, those of the title counted as `TITLE_WEIGHT` each.
        terms: Their numbers, ascending.
        frequencies: How often each occurs; a word of the title counts as `TITLE_WEIGHT`. Two to a byte, the lower half
            first, if none occurs more often than `MOST_IN_HALF`; else a byte for each, the lower one.
        high_frequencies: The higher byte of each, if any of them needs it.
        sequence: A character for each term, in order, with a separator between the title's and the body's; see `spell`.
        facets: Numbers of facet values, ascending.
        others: Further numbers by which it is found, including those of plain words that are not terms.
        inflected: Terms that are not plain words of it as they are written.
        texts: What is not plain words in it, in pieces that PostgreSQL can parse.
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
    """Numbers for what the entries of one collection hold; entries of others cost its searches next to nothing."""

    def __init__(self, collection: Collection) -> None:
        self._key = _hash(f"{len(collection.org)}:{collection.org}{collection.toolset}", b"", 16)
        self.numbers = _get_numbers(self._key)

    @property
    def of_collection(self) -> str:
        """The key with which the database hashes words as they are written, in hexadecimal."""
        return self._key.hex()

    def of_term(self, term: str) -> int:
        """Return the number of an analysed term; a word that is written the same has the same number."""
        return self.numbers.of_word(term)

    def of_facet(self, name: str, value: str) -> int:
        """Return the number of a facet value, by its `facet_key`: 64 bits with a sign."""
        return int.from_bytes(_hash(f"f:{len(name)}:{name}{facet_key(value)}", self._key, 8), "big", signed=True)

    def of_state(self, state: State) -> int:
        """Return the number of a state; entries that are current, as most are, hold none."""
        return self.numbers.of_marks[f"s:{state.value}"]

    def of_title(self, key: str) -> list[int]:
        """Return the numbers of the pieces of a title's words, or of part of a title; none if all words are shorter."""
        words = key.split()
        pieces = dict.fromkeys(word[start : start + GRAM] for word in words for start in range(len(word) - GRAM + 1))
        return [self.numbers.of_marks[f"t:{piece}"] for piece in pieces]


class _Numbers:
    """Recently used numbers of one collection: looking one up takes a fraction of the time of hashing.

    Attributes:
        of_word: Returns the number of a term, or of a word as it is written.
        of_pieces: For each piece between blanks, the number of the word that it is to PostgreSQL, or `NONE` if
            PostgreSQL is to parse it; then the numbers of its terms, in order, which are the same for the piece alone
            as in its text.
        of_marks: The number of each piece of a title, and of each state.
    """

    def __init__(self, key: bytes) -> None:
        hash_word, from_bytes = hashlib.sha256, int.from_bytes

        def number_word(word: str) -> int:
            """Return what `refdesk_number` returns in the database, by one of few hashes that it shares with Python."""
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
    """Return what searches need of the document.

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
        terms: The numbers of its terms, in order.
        words: The numbers of its plain words, as they are written.
        unread: Its other pieces, which PostgreSQL is to parse.
        whole: The whole text, instead of both, if it may have tags: to PostgreSQL these extend over blanks.
    """

    terms: Sequence[int]
    words: frozenset[int]
    unread: Sequence[str] = ()
    whole: Sequence[str] = ()


def _number(text: str, tokens: Tokens) -> _Numbered:
    """Return the numbers of a text.

    PostgreSQL's parser reads each piece between blanks by itself, except for tags. Most pieces of most texts are plain
    words, which it takes far longer to read.
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
    """Return the pieces between blanks, by PostgreSQL's notion of these."""
    if text.isascii() and not any(map(text.__contains__, _OTHER_BLANKS)):
        return text.split()
    return _BETWEEN_BLANKS.findall(text)


def _pack(counts: Sequence[int]) -> bytes:
    if len(counts) < 2 or max(counts) > MOST_IN_HALF:
        return bytes(count & 255 for count in counts)
    halves = counts if len(counts) % 2 == 0 else [*counts, 0]
    return bytes([low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=True)])


class Ahead:
    """Derives what searches need of documents while waiting for the database or for others' turns."""

    def __init__(self) -> None:
        self._documents: Sequence[Document] = ()
        self._derived: dict[int, tuple[Document, Derived]] = {}

    def begin(self, documents: Sequence[Document]) -> None:
        """Derive it as soon as this task waits, unless that would keep other tasks waiting."""
        if sum(len(document.body) for document in documents) <= SHORT:
            self._documents = documents
            asyncio.get_running_loop().call_soon(self._derive)

    def take(self, document: Document) -> Derived:
        """Return what is derived of a document; errors as in `derive`."""
        self._documents = ()
        known, derived = self._derived.pop(id(document), (None, None))
        return derived if derived is not None and known is document else derive(document)

    def _derive(self) -> None:
        for document in self._documents:
            # What cannot be stored is refused when it is put, if it ever is.
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
    """Yield the text in pieces of at most `PIECE` code points, cut at blanks if there are any."""
    start = 0
    while len(text) - start > PIECE:
        blank = max(text.rfind(mark, start, start + PIECE) for mark in " \n")
        end = blank + 1 if blank > start else start + PIECE
        yield text[start:end]
        start = end
    yield text[start:]
