"""Text analysis: turns documents and queries into the same terms, which keyword search matches.

A word is a run of letters and digits of any script. It is compared without case, diacritics and compatibility forms,
and English inflection is taken off (Snowball's English stemmer, "Porter2"; words of other languages pass nearly
unchanged). Stretches that are recognised as another language give a second set of terms, by that language's stemmer,
after these. Nothing depends on the language being recognised: a question in English, or with too few words to tell,
finds the text by the first set all the same. Last come the parts of words that are joined of several (`joined`).
Scripts written without blanks (Han, kana, Hangul, Thai, Lao, Khmer, Burmese) give overlapping pairs of characters. An
emoji is a word of its own: in a joined sequence each part is one, skin tones and variation selectors are ignored, and a
flag is its pair of letters. Nothing in a text is syntax except the double quotes of a question, where they bind.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeVar

import regex
import Stemmer

from refdesk.core.search.folding import INVISIBLE, fold
from refdesk.core.search.inflection import inflect
from refdesk.core.search.joined import find_word, list_parts
from refdesk.core.search.languages import ENGLISH, get_stop_words
from refdesk.core.search.languages.stretches import Stretch, find_languages, find_stretches
from refdesk.core.search.naming import list_identifiers
from refdesk.model import TextQuery

VERSION = 5
"""Increased by one whenever some text gives different terms than before, so that indexed texts are analysed anew."""

MAX_TERMS = 64
"""Most terms of a question; further ones are dropped, since they hardly change its meaning, only its cost."""

MAX_PHRASES = 16
"""Most phrases of a question; quoted words beyond these count as plain words."""

MAX_TERM_LENGTH = 64
"""Most code points of a word that are compared; anything longer is encoded data, not language."""

_STOP_WORDS = """
    a an the this that these those such
    i me my we our you your he she it its they them their
    am is are was were be been being do does did has have had can could should would will shall must might
    and or but if then than so as of at by for from in into on onto to with about between through during
    how what when where which who whom whose why
    not no there here some any each both also just very much many more most other
    please want need get use used using make tell know
"""

_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc\uff70\uff9e\uff9f\u3005\u3007"
)
_LETTER = rf"[\p{{L}}\p{{N}}\u3300-\u33ff--[{_UNSPACED}]]"
_EMOJI = r"\p{Extended_Pictographic}--[\p{Emoji_Modifier}©®™‼⁉Ⓜ▪▫]"
"""Excludes what is punctuation, a bullet or a trademark sign in nearly every text."""
_WORD = regex.compile(
    rf"""
    [{_UNSPACED}][{_UNSPACED}\p{{M}}]*+
    | [A-Za-z](?:\#|\+\+)(?!\w)
    | {_LETTER}[\p{{L}}\p{{N}}\p{{M}}\u3300-\u33ff{INVISIBLE}--[{_UNSPACED}]]*+ (?:['’](?i:s|t|d|m|re|ve|ll)(?!\w))?
    | [{_EMOJI}] | \p{{Regional_Indicator}}{{1,2}}
    """,
    regex.VERBOSE | regex.VERSION1,
)
_ASCII_WORD = re.compile(r"[A-Za-z](?:#|\+\+)(?!\w)|[A-Za-z0-9]++(?:'(?i:s|t|d|m|re|ve|ll)(?!\w))?", re.ASCII)
"""What `_WORD` finds in a text of ASCII alone, in a fifth of the time."""
_WORD_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_'#+"
"""The ASCII characters that make up a word of `_ASCII_WORD`, or affect where one ends by standing beside it."""

_MOST_PIECES = 1 << 15
_BLANKS = {code: " " for code in range(128) if chr(code) not in _WORD_CHARACTERS}
_STARTS_UNSPACED = regex.compile(f"[{_UNSPACED}]", regex.VERSION1)
_CONTRACTION = regex.compile(r"['’](?:s|d|m|re|ve|ll)$")
_PLURAL_INITIALS = regex.compile(r"[b-df-hj-np-tv-xz]{1,2}[b-df-hj-np-rtv-xz]s")
"""VMs, TVs: Snowball leaves words without a vowel alone."""
_LONGEST_PLURAL_INITIALS = 4
QUOTED = regex.compile(r'(?<![0-9])["“”„‟＂]([^"“”„‟＂]*)["“”„‟＂]')

_of_thread = threading.local()


def analyse(text: str) -> list[str]:
    """Return the terms of a text in its order, repetitions and stop words included; linear in its length.

    Any string is accepted, even with control characters and lone surrogates: they separate words.
    """
    return list(chain.from_iterable(map(_terms.__getitem__, split(text))))


def split(text: str) -> list[str]:
    """Return the pieces of a text in its order; their terms, by `analyse_piece`, are those of the text.

    Pieces of ASCII text, the runs between blanks, recur from text to text, so callers can cache what they made of a
    piece instead of finding its words again.
    """
    return text.translate(_BLANKS).split() if text.isascii() else _WORD.findall(text)


def analyse_piece(piece: str) -> tuple[str, ...]:
    """Return the terms of a piece, without caching the piece as a whole."""
    words = _ASCII_WORD.findall(piece) if piece.isascii() else (piece,)
    return tuple(term for word in words for term in analyse_word(word))


def analyse_document(title: str, body: str) -> tuple[list[str], list[str]]:
    """Return the terms of a document's title and of its body, by which it is found.

    They are those of `analyse`, followed by the terms of each stretch in a language other than English, in that
    language, in order, and by those of the parts of joined words.
    """
    pieces = split(body)
    of_title, of_body = inflect_document(title, body, pieces)
    return analyse(title) + of_title, [*chain.from_iterable(map(_terms.__getitem__, pieces)), *of_body]


def inflect_document(title: str, body: str, pieces: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the terms of a document's title and body that `analyse` does not give, in order.

    They are those in languages other than English, where it has any, and those of the parts of joined words.

    Args:
        title: Of the document.
        body: Of the document.
        pieces: The pieces of the body, from `split`.
    """
    languages = find_languages(title, body, pieces)
    of_title = _inflect_all(title, [(0, len(title), languages.of_title)] if languages.of_title else [])
    of_body = _inflect_all(body, languages.of_body)
    return [*of_title, *_take_apart(split(title))], [*of_body, *_take_apart(pieces)]


def analyse_parts(text: str) -> list[str]:
    """Return the terms of the parts of those words of a text that are joined of several, in its order."""
    return list(_take_apart(split(text)))


def _take_apart(pieces: Iterable[str]) -> Iterator[str]:
    return chain.from_iterable(map(_parts.__getitem__, pieces))


def _analyse_parts(piece: str) -> tuple[str, ...]:
    if len(piece) > MAX_TERM_LENGTH or (piece.isalpha() and (piece.islower() or piece[1:].islower())):
        return ()
    words = _ASCII_WORD.findall(piece) if piece.isascii() else (piece,)
    return tuple(_stem(part.lower()) for word in words for part in list_parts(word))


def _inflect_all(text: str, stretches: Sequence[Stretch]) -> list[str]:
    words = ((word, language) for start, end, language in stretches for word in _WORD.findall(text[start:end]))
    return [term for word, language in words for term in inflect(word, language)]


def locate(text: str, start: int = 0, language: str | None = None) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, term) for each term that `analyse` returns, in its order; offsets count code points of `text`.

    With a language other than English, the terms of that language instead.

    Begins at the offset `start`, which must not lie within a word. A term that is part of a compatibility form, such as
    one half of a fraction sign, has the offsets of the whole.
    """
    pattern = _ASCII_WORD if text.isascii() else _WORD
    for match in pattern.finditer(text, start):
        begin, end = match.span()
        terms = inflect(match[0], language) if language else analyse_word(match[0])
        is_paired = language is None and len(terms) == end - begin - 1 and is_unspaced(match[0])
        for index, term in enumerate(terms):
            yield (begin + index, begin + index + 2, term) if is_paired else (begin, end, term)


def locate_part(text: str, place: int) -> tuple[int, int, str] | None:
    """Return (start, end, term) of the part of a joined word that begins at a place, if one does."""
    start, end = find_word(text, place)
    for part in list_parts(text[start:end]):
        begin = text.find(part, start)
        start = begin + len(part)
        if begin >= place:
            return (begin, start, _stem(part.lower())) if begin == place else None
    return None


def locate_first(text: str, start: int) -> tuple[int, int, str] | None:
    """Return what `locate` yields first; quicker if nothing else is wanted."""
    if not text.isascii():
        return next(locate(text, start), None)
    word = _ASCII_WORD.search(text, start)
    return None if word is None or not (terms := analyse_word(word[0])) else (*word.span(), terms[0])


def parse_query(text: str, *, quotes_bind: bool = False) -> TextQuery:
    """Return what a question asks for. Each term counts once, and stop words only if nothing else remains.

    Where quotes bind, words in double quotes, straight or curly, form a phrase (even a single word) that must occur. A
    quote without its partner, or one after a digit (the inch sign), is just text. See `MAX_TERMS` and `MAX_PHRASES`.
    """
    phrases: dict[tuple[str, ...], None] = {}

    def take(match: regex.Match[str]) -> str:
        if len(phrases) >= MAX_PHRASES:
            return match[0]
        if phrase := analyse(match[1])[:MAX_TERMS]:
            phrases[tuple(phrase)] = None
        return "\n"

    plain = QUOTED.sub(take, text) if quotes_bind else text
    asked = dict.fromkeys(analyse(plain))
    stretches = find_stretches(plain)
    terms = _ask_in(plain, stretches) if stretches else [term for term in asked if term not in get_stop_terms()]
    terms = list(dict.fromkeys([*terms, *(term for term in analyse_parts(plain) if term not in get_stop_terms())]))
    if not terms and not phrases:
        terms = list(asked)
    return TextQuery(tuple(terms[:MAX_TERMS]), tuple(phrases), list_identifiers(fold(text)))


def _ask_in(text: str, stretches: Sequence[Stretch]) -> list[str]:
    """Return the terms of a question with words in other languages: those of `analyse`, then those languages' terms."""
    plain, inflected, done = dict[str, None](), dict[str, None](), 0
    for start, end, language in (*stretches, (len(text), len(text), ENGLISH)):
        stop_words = get_stop_words(language)
        words = [word for word in _WORD.findall(text[start:end]) if word.lower() not in stop_words]
        for word in (*_WORD.findall(text[done:start]), *words):
            plain.update((term, None) for term in analyse_word(word) if term not in get_stop_terms())
        inflected.update((term, None) for word in words for term in inflect(word, language))
        done = end
    if len(plain) + len(inflected) <= MAX_TERMS:
        return [*plain, *inflected]
    return [*list(plain)[: MAX_TERMS // 2], *list(inflected)[: MAX_TERMS // 2]]


def is_unspaced(word: str) -> bool:
    """Return whether a word is of a script written without blanks, so that its terms are pairs of characters."""
    return _STARTS_UNSPACED.match(word) is not None


def analyse_word(word: str) -> tuple[str, ...]:
    """Return the terms of a single word."""
    # Long runs rarely recur: they would only fill the cache.
    return _get_short_word_terms(word) if len(word) <= MAX_TERM_LENGTH else _get_new_terms(word)


def _get_new_terms(word: str) -> tuple[str, ...]:
    if word.isascii() and word.isalnum():
        return (_stem(word[:MAX_TERM_LENGTH].lower()),)
    if _STARTS_UNSPACED.match(word):
        run = fold(word)
        return tuple(map(str.__add__, run, run[1:])) or (run,)
    folded = _CONTRACTION.sub("", fold(word[:MAX_TERM_LENGTH])).replace("'", "").replace("’", "")
    parts = [folded] if folded.isalnum() else _WORD.findall(folded)
    return tuple(_stem(part[:MAX_TERM_LENGTH]) for part in parts)


Value = TypeVar("Value")


class Pieces(dict[str, Value]):
    """A cache of what was made of recently seen pieces of texts; a missing value is made when it is asked for.

    Args:
        make: Makes the value of a piece.
        most: How many values are kept.
    """

    def __init__(self, make: Callable[[str], Value], most: int = _MOST_PIECES) -> None:
        super().__init__()
        self._make = make
        self._most = most // 2
        self._before: dict[str, Value] = {}

    def __missing__(self, piece: str) -> Value:
        before = self._before
        made = before[piece] if piece in before else self._make(piece)
        if len(piece) <= MAX_TERM_LENGTH:
            if len(self) >= self._most:
                # Common pieces are taken over from there again. Each step is atomic, since other threads use it too.
                self._before = dict(self)
                self.clear()
            self[piece] = made
        return made


_terms = Pieces(analyse_piece)
_parts = Pieces(_analyse_parts)
_get_short_word_terms = lru_cache(maxsize=1 << 16)(_get_new_terms)


def _stem(word: str) -> str:
    if len(word) <= _LONGEST_PLURAL_INITIALS and _PLURAL_INITIALS.fullmatch(word):
        return word[:-1]
    # A stemmer keeps state while it works and must not be shared between threads.
    try:
        stemmer: Stemmer.Stemmer = _of_thread.stemmer
    except AttributeError:
        stemmer = _of_thread.stemmer = Stemmer.Stemmer("english", 0)
    return stemmer.stemWord(word)


@lru_cache(maxsize=1)
def get_stop_terms() -> frozenset[str]:
    """Return the terms of stop words: words too common to discriminate between documents."""
    return frozenset(map(_stem, _STOP_WORDS.split()))
