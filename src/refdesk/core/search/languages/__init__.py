"""Recognises the language of a text by its function words, and that of a short text also by its letters.

A wrong answer does little harm: it only adds terms to those that every text gives. Still, English must not be taken for
another language, so the answer in case of doubt is `None`, which is treated like English.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from itertools import chain
from math import sqrt
from operator import itemgetter

import regex

from refdesk.core.search.languages.function_words import FUNCTION_WORDS

ENGLISH = "en"

MOST_CHARACTERS = 240
"""How much of the beginning of a text is looked at; the rest would tell no more."""

FEW_WORDS = 16
"""Up to how many words letters are looked at, too."""

_ENGLISH = """
    the of and to in is for that with on as are by this be or an at from can it if not you your which will when has have
    was use using how what why where who does do did should would could but all any there these those into its than
    then so we they their i my me our us am been being were he she his her them about between through during because
    while also only other some such no yes please a more most may must
"""

_WORD = regex.compile(r"(?<![\p{N}_])[\p{L}][\p{L}\p{M}]*+(?![\p{N}_])")
_BLANKS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
_NON_LATIN = regex.compile(r"[\p{L}--\p{Latin}]", regex.VERSION1)

_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_UNSPACED_SHARE = 8
"""If more than one in this many characters is of a script written without blanks, the text is taken to be in a language
without inflection, whatever else is in it."""

_OWN_LETTERS = regex.compile(
    r"""
    (?P<ar>[\u0621-\u063a\u0641-\u064a\u064b-\u0652]{2,}) | (?P<el>\p{Greek}{2,}) | (?P<hi>\p{Devanagari}{2,})
    | (?P<hy>\p{Armenian}{2,}) | (?P<ru>[а-яё]{2,}) | (?P<ta>\p{Tamil}{2,})
    """,
    regex.VERBOSE,
)
"""Words in the letters of one language that few others use, or all of whose other letters they lack."""

_LEAST_EVIDENCE = 0.9
"""Least evidence: about one word that no other language has."""

_LEAST_SHARE = 0.05
"""Least evidence as a share of the words looked at: function words are a third of every running text, but shared ones
count less."""

_LEAD = 1.5
"""How many times the evidence of its rival a language must have: of English or, for English, of the next best."""

_SURE = 1.5
"""The evidence from which on, if it is for English, the letters of few words need not be looked at."""

_REMEMBERED = 400
"""Most characters of a text whose language is cached."""

_LETTERS_WEIGH = 0.09
"""The weight of one natural logarithm of the letters' likelihood, relative to a word."""

_LEAST_LETTERS = 1.5
_LEAD_OF_LETTERS = 1.4
"""The least evidence by letters alone, and its lead over English, much of which is of Latin and French descent."""


def recognise(text: str) -> str | None:
    """Return the ISO 639-1 code of the language of a text, or `None` if none of `LANGUAGES` stands out."""
    return _recognise_again(text) if len(text) <= _REMEMBERED else _recognise(text)


def recognise_document(title: str, body: str) -> str | None:
    """Return the language of a document in the same way."""
    return _recognise(f"{title[:MOST_CHARACTERS]}\n{body[:MOST_CHARACTERS]}")


def _recognise(text: str) -> str | None:
    head = text[:MOST_CHARACTERS].lower()
    if len(head) == MOST_CHARACTERS:
        head = head.rpartition(" ")[0] or head
    words = list(dict.fromkeys(_find_words(head)))
    if not head.isascii() and _UNSPACED_SHARE * len(_UNSPACED.findall(head)) > len(head):
        return None
    evidence = _weigh_words(words)
    least, lead = max(_LEAST_EVIDENCE, _LEAST_SHARE * len(words)), 0.0
    if 0 < len(words) <= FEW_WORDS and not _NON_LATIN.search(head) and _choose(evidence, _SURE, 0.0) != ENGLISH:
        if max(evidence.values(), default=0.0) < _LEAST_EVIDENCE:
            least, lead = max(_LEAST_LETTERS, least), _LEAD_OF_LETTERS
        for language, letters in _weigh_letters(words).items():
            evidence[language] = evidence.get(language, 0.0) + _LETTERS_WEIGH * letters
    return _choose(evidence, least, lead) or (None if head.isascii() else _recognise_by_script(words))


def _recognise_by_script(words: Sequence[str]) -> str | None:
    """Return the language in whose letters at least half of the words are written, if they are hardly any other's.

    Keywords hold no function words, and languages with letters of their own, such as Ukrainian or Persian, are left out
    by these.
    """
    by_script = Counter(match.lastgroup for word in words if (match := _OWN_LETTERS.fullmatch(word)))
    language, most = max(by_script.items(), key=itemgetter(1), default=(None, 0))
    return language if 2 * most >= len(words) else None


def recognise_by_words(text: str, least: float, expected: str | None) -> str | None:
    """Return the language of a few sentences in the same way, but by their function words only.

    Args:
        text: The sentences; the first `MOST_CHARACTERS` are looked at.
        least: The least evidence for a language other than the expected one.
        expected: The language of the preceding sentences.
    """
    head = text[:MOST_CHARACTERS].lower()
    words = list(dict.fromkeys(_find_words(head)))
    evidence = _weigh_words(words)
    found = _choose(evidence, max(_LEAST_EVIDENCE, _LEAST_SHARE * len(words)), 0.0)
    return found if found == expected or evidence.get(found or "", 0.0) >= least else None


def _find_words(text: str) -> Iterable[str]:
    """Return the runs of letters, except those next to a digit or an underscore."""
    # For ASCII this finds the same as the pattern, in half the time.
    return filter(str.isalpha, text.translate(_BLANKS).split()) if text.isascii() else _WORD.findall(text)


_recognise_again = lru_cache(maxsize=1 << 10)(_recognise)
"""A cached `_recognise`: a search asks several times for the language of the same question."""


def _choose(evidence: Mapping[str, float], least: float, lead: float) -> str | None:
    """Return the language with the most evidence if that is enough, and exceeds that of its rival by enough."""
    language, most = max(evidence.items(), key=itemgetter(1), default=("", 0.0))
    others = max((each for one, each in evidence.items() if one != language), default=0.0)
    rival = others if language == ENGLISH else evidence.get(ENGLISH, 0.0)
    return language if most >= max(least, _LEAD * rival, rival + lead) else None


def get_stop_words(language: str) -> frozenset[str]:
    """Return the function words of a language in lower case; empty for English and for unknown languages."""
    return _read_stop_words().get(language, frozenset())


@lru_cache(maxsize=1)
def _read_stop_words() -> Mapping[str, frozenset[str]]:
    return {language: frozenset(words.split()) for language, words in FUNCTION_WORDS.items()}


LANGUAGES = (ENGLISH, *sorted(FUNCTION_WORDS))
"""The languages that are distinguished."""


def _weigh_words(words: Sequence[str]) -> dict[str, float]:
    find, evidence = get_markers().get, dict[str, float]()
    for language, weight in chain.from_iterable(filter(None, map(find, words))):
        evidence[language] = evidence.get(language, 0.0) + weight
    return evidence


@lru_cache(maxsize=1)
def get_markers() -> Mapping[str, tuple[tuple[str, float], ...]]:
    """Return, for each function word, its languages and its weight for each: the lower, the more languages have it.

    A single letter has a third of that weight: in tables and lists it often stands for itself.
    """
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for language, words in {ENGLISH: frozenset(_ENGLISH.split()), **_read_stop_words()}.items():
        for word in words:
            owners[word].append(language)
    share = {word: (1.0 if len(word) > 1 else 0.33) / sqrt(len(who)) for word, who in owners.items()}
    return {word: tuple((one, share[word]) for one in who) for word, who in owners.items()}


def _weigh_letters(words: Sequence[str]) -> dict[str, float]:
    """Return, for each language, the log of how much likelier the words' trigrams are in it than in all languages."""
    languages, table = _read_trigrams()
    padded = [f" {word} " for word in words]
    runs = (word[start : start + 3] for word in padded for start in range(len(word) - 2))
    rows = [row for run in runs if (row := table.get(run)) is not None]
    total, bias = sum(rows), len(rows) * _ZERO
    steps = (((total >> _LANE * place) & _LANE_MASK) - bias for place in range(len(languages)))
    return {language: 2 * each / STEPS for language, each in zip(languages, steps, strict=True)}


STEPS = 8
"""The unit of the table: how many steps make a natural logarithm of 1."""

_ZERO = 12
"""The digit that means neither for nor against; each digit more or less is two steps."""

_LANE, _LANE_MASK = 16, 0xFFFF
"""The bits of each language in the number of a row, so that the values of all languages are added in one go."""


@lru_cache(maxsize=1)
def _read_trigrams() -> tuple[tuple[str, ...], Mapping[str, int]]:
    """Return the languages of the table and a row for each trigram. `benchmarks.languages --train` writes the file."""
    text = resources.files(__name__).joinpath("trigrams.txt").read_text(encoding="utf-8")
    head, *lines = text.splitlines()
    return tuple(head.split()), {line[:3]: _pack(line[3:]) for line in lines}


def _pack(digits: str) -> int:
    return sum(int(digit, 36) << _LANE * place for place, digit in enumerate(digits))
