"""Text analysis: turns documents and queries into the same terms, which keyword search matches.

A word is a run of letters and digits of any script. It is compared without case, diacritics and compatibility forms,
and English inflection is taken off (Snowball's English stemmer, "Porter2"; words of other languages pass nearly
unchanged). Scripts written without blanks (Han, kana, Hangul, Thai, Lao, Khmer, Burmese) give overlapping pairs
of characters. An emoji is a word of its own: of a joined sequence each part is one, skin tones and variation selectors
say nothing, and a flag is its pair of letters. Nothing in a text is syntax but the double quotes of a question, where
they bind.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import regex
import Stemmer

from refdesk.model import TextQuery

VERSION = 2
"""Raised by one whenever some text gives other terms than before, so that what was indexed must be analysed anew."""

MAX_TERMS = 64
"""A question's further terms are dropped: beyond these they change its meaning no more, only its cost."""

MAX_PHRASES = 16
"""Quoted words beyond these phrases count as plain words."""

MAX_TERM_LENGTH = 64
"""Code points of a word that are compared; beyond them stands encoded data, not language."""

_STOP_WORDS = """
    a an the this that these those such
    i me my we our you your he she it its they them their
    am is are was were be been being do does did has have had can could should would will shall must might
    and or but if then than so as of at by for from in into on onto to with about between through during
    how what when where which who whom whose why
    not no there here some any each both also just very much many more most other
    please want need get use used using make tell know
"""

_INVISIBLE = "\u00ad\u200c\u200d\u2060"
_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc\uff70\uff9e\uff9f\u3005\u3007"
)
_LETTER = rf"[\p{{L}}\p{{N}}\u3300-\u33ff--[{_UNSPACED}]]"
_EMOJI = r"\p{Extended_Pictographic}--[\p{Emoji_Modifier}©®™‼⁉Ⓜ▪▫]"
"""Without what is punctuation, a bullet or a mark of trade in nearly every text."""
_WORD = regex.compile(
    rf"""
    [{_UNSPACED}][{_UNSPACED}\p{{M}}]*+
    | [A-Za-z](?:\#|\+\+)(?!\w)
    | {_LETTER}[\p{{L}}\p{{N}}\p{{M}}\u3300-\u33ff{_INVISIBLE}--[{_UNSPACED}]]*+ (?:['’](?i:s|t|d|m|re|ve|ll)(?!\w))?
    | [{_EMOJI}] | \p{{Regional_Indicator}}{{1,2}}
    """,
    regex.VERBOSE | regex.VERSION1,
)
_ASCII_WORD = re.compile(r"[A-Za-z](?:#|\+\+)(?!\w)|[A-Za-z0-9]++(?:'(?i:s|t|d|m|re|ve|ll)(?!\w))?", re.ASCII)
"""What `_WORD` finds in a text of ASCII alone, in a fifth of the time."""
_STARTS_UNSPACED = regex.compile(f"[{_UNSPACED}]", regex.VERSION1)
_CONTRACTION = regex.compile(r"['’](?:s|d|m|re|ve|ll)$")
_DIACRITIC = regex.compile(
    rf"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20e3\ufe0e\ufe0f\ufe20-\ufe2f{_INVISIBLE}]"
)
_PLURAL_INITIALS = regex.compile(r"[b-df-hj-np-tv-xz]{1,2}[b-df-hj-np-rtv-xz]s")
"""VMs, TVs: Snowball leaves words without a vowel alone."""
_UNDECOMPOSED = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
_SPECIAL = regex.compile("[" + "".join(_UNDECOMPOSED) + r"]|[\p{Nd}--0-9]", regex.VERSION1)
_QUOTED = regex.compile(r'(?<![0-9])["“”„‟＂]([^"“”„‟＂]*)["“”„‟＂]')

_of_thread = threading.local()


def analyse(text: str) -> list[str]:
    """Return the terms of a text in its order, repetitions and stop words included; linear in its length.

    Any string will do, with control characters and lone surrogates in it: they part words.
    """
    words = _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(text)
    # What `_get_terms` does, without a call for each word.
    return [
        term
        for word in words
        for term in (_get_short_word_terms(word) if len(word) <= MAX_TERM_LENGTH else _get_new_terms(word))
    ]


def locate(text: str, start: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, term) for each term that `analyse` returns, in its order; offsets count code points of `text`.

    Begins at the offset `start`, which must not lie within a word. A term that is a part of a compatibility form, such
    as one half of a fraction sign, has the offsets of the whole.
    """
    for match in _WORD.finditer(text, start):
        begin, end = match.span()
        terms = _get_terms(match[0])
        is_paired = len(terms) == end - begin - 1 and is_unspaced(match[0])
        for index, term in enumerate(terms):
            yield (begin + index, begin + index + 2, term) if is_paired else (begin, end, term)


def parse_query(text: str, *, quotes_bind: bool = False) -> TextQuery:
    """Return what a question asks for. Each term counts once, stop words only where nothing else remains.

    Where quotes bind, words in double quotes, straight or curly, form a phrase (a single word too) that must occur. A
    quote without its partner, and one behind a digit (the inch sign), is just text. See `MAX_TERMS` and `MAX_PHRASES`.
    """
    phrases: dict[tuple[str, ...], None] = {}

    def take(match: regex.Match[str]) -> str:
        if len(phrases) >= MAX_PHRASES:
            return match[0]
        if phrase := analyse(match[1])[:MAX_TERMS]:
            phrases[tuple(phrase)] = None
        return "\n"

    asked = dict.fromkeys(analyse(_QUOTED.sub(take, text) if quotes_bind else text))
    terms = [term for term in asked if term not in get_stop_terms()]
    if not terms and not phrases:
        terms = list(asked)
    return TextQuery(tuple(terms[:MAX_TERMS]), tuple(phrases))


def fold(text: str) -> str:
    """Return the text in NFKC, without case and diacritics, digits as 0 to 9; folding again changes nothing."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFKC", _SPECIAL.sub(_replace, _DIACRITIC.sub("", decomposed)))


def _replace(special: regex.Match[str]) -> str:
    sign = special[0]
    return _UNDECOMPOSED.get(sign) or str(unicodedata.decimal(sign, sign))


def is_unspaced(word: str) -> bool:
    """Return whether a word is of a script written without blanks, so that its terms are pairs of characters."""
    return _STARTS_UNSPACED.match(word) is not None


def _get_terms(word: str) -> tuple[str, ...]:
    # Long runs are rarely met again: they would only fill the cache.
    return _get_short_word_terms(word) if len(word) <= MAX_TERM_LENGTH else _get_new_terms(word)


def _get_new_terms(word: str) -> tuple[str, ...]:
    if _STARTS_UNSPACED.match(word):
        run = fold(word)
        return tuple(map(str.__add__, run, run[1:])) or (run,)
    folded = _CONTRACTION.sub("", fold(word[:MAX_TERM_LENGTH])).replace("'", "").replace("’", "")
    parts = [folded] if folded.isalnum() else _WORD.findall(folded)
    return tuple(_stem(part[:MAX_TERM_LENGTH]) for part in parts)


_get_short_word_terms = lru_cache(maxsize=1 << 16)(_get_new_terms)


def _stem(word: str) -> str:
    if _PLURAL_INITIALS.fullmatch(word):
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
