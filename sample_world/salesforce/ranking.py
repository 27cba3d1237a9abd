"""Which articles a search finds, and in which order: words weighed by field and rarity. The same every time."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

import Stemmer

from sample_world.salesforce.articles import Record
from sample_world.salesforce.schema import Field
from sample_world.salesforce.search_text import Every, SearchExpression, Some, Term, Without
from sample_world.salesforce.words import split_words

_STEMMERS = {"en_US": "english", "de": "german"}
_WEIGHTS = {"Title": 4.0, "Summary": 2.0}
# Saturates what a word adds, as k1 of BM25 does.
_SATURATION = 1.2


@dataclass(frozen=True, slots=True)
class _Text:
    """A record's words by field, and how often each stem weighs in it."""

    record: Record
    fields: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, float]


class Index:
    """The words of records, kept from one search to the next."""

    def __init__(self) -> None:
        self._texts: dict[tuple[object, ...], _Text] = {}

    def rank(self, records: Iterable[Record], fields: Sequence[Field], expression: SearchExpression) -> list[Record]:
        """Return the records in which the expression is found, best first; ties newest first, then by id.

        A record object must not change its texts between searches.
        """
        texts = [self._get(record, fields) for record in records]
        wanted = set(_collect(expression))
        terms = wanted.union(_collect(expression, excluded=True))
        hits = [frozenset(term for term in terms if _has_term(text, term)) for text in texts]
        counts = Counter(term for found in hits for term in found)
        scored = [
            (_score(text, found & wanted, counts, len(texts)), text.record)
            for text, found in zip(texts, hits, strict=True)
            if _holds(expression, found)
        ]
        scored.sort(key=lambda pair: str(pair[1]["Id"]))
        scored.sort(key=lambda pair: str(pair[1].get("LastPublishedDate") or ""), reverse=True)
        scored.sort(key=lambda pair: -pair[0])
        return [record for _, record in scored]

    def _get(self, record: Record, fields: Sequence[Field]) -> _Text:
        key = (record["Id"], *(field.name for field in fields))
        text = self._texts.get(key)
        if text is None or text.record is not record:
            text = self._texts[key] = _read(record, fields)
        return text


def get_word_pattern(expression: SearchExpression) -> re.Pattern[str] | None:
    """Return a pattern of the words that a snippet marks, or `None` where there are none."""
    words = {word for term in _collect(expression) for word in term.words}
    parts = [re.escape(word).replace(r"\*", r"\w*").replace(r"\?", r"\w") for word in sorted(words, key=len)[::-1]]
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})\w*", re.IGNORECASE) if parts else None


def _read(record: Record, fields: Sequence[Field]) -> _Text:
    values = {field.name: cast("str | None", record.get(field.name)) for field in fields}
    words = {
        name: tuple(split_words(strip_tags(value) if _is_rich(name, fields) else value))
        for name, value in values.items()
        if value
    }
    weights: dict[str, float] = {}
    for name, listed in words.items():
        for word in listed:
            stem = _stem(word, str(record.get("Language")))
            weights[stem] = weights.get(stem, 0.0) + _WEIGHTS.get(name, 1.0)
    return _Text(record, words, weights)


def _is_rich(name: str, fields: Sequence[Field]) -> bool:
    return any(field.name == name and field.extra == "richtextarea" for field in fields)


def strip_tags(text: str) -> str:
    """Return the text of some HTML, roughly: enough for an index and a snippet."""
    text = re.sub(r"(?is)<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", " ", text)
    return re.sub(r"&(?:#\d+|#x[0-9a-f]+|\w+);", " ", text, flags=re.IGNORECASE)


@cache
def _stemmer(language: str) -> Stemmer.Stemmer | None:
    name = _STEMMERS.get(language)
    return Stemmer.Stemmer(name) if name else None


def _stem(word: str, language: str) -> str:
    stemmer = _stemmer(language)
    return stemmer.stemWord(word) if stemmer else word


def _holds(expression: SearchExpression, found: Container[Term]) -> bool:
    if isinstance(expression, Term):
        return expression in found
    if isinstance(expression, Without):
        return not _holds(expression.part, found)
    decide = all if isinstance(expression, Every) else any
    return decide(_holds(part, found) for part in expression.parts)


def _has_term(text: _Text, term: Term) -> bool:
    if not term.exact and not term.wild:
        return _stem(term.words[0], str(text.record.get("Language"))) in text.weights
    return any(_has_run(words, term.words) for words in text.fields.values())


def _has_run(words: Sequence[str], run: Sequence[str]) -> bool:
    starts = [at for at, word in enumerate(words[: len(words) - len(run) + 1]) if _fits(word, run[0])]
    return any(all(_fits(words[start + at], wanted) for at, wanted in enumerate(run)) for start in starts)


def _fits(word: str, wanted: str) -> bool:
    if "*" in wanted or "?" in wanted:
        return _compile_word(wanted).fullmatch(word) is not None
    return word == wanted


@cache
def _compile_word(word: str) -> re.Pattern[str]:
    return re.compile(re.escape(word).replace(r"\*", ".*").replace(r"\?", "."))


def _collect(expression: SearchExpression, *, excluded: bool = False) -> Iterable[Term]:
    if isinstance(expression, Term):
        yield expression
    elif isinstance(expression, Every | Some):
        for part in expression.parts:
            yield from _collect(part, excluded=excluded)
    elif excluded:
        yield from _collect(expression.part, excluded=True)


def _score(text: _Text, found: Iterable[Term], counts: Counter[Term], total: int) -> float:
    score = 0.0
    for term in sorted(found, key=lambda term: term.words):
        rarity = math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5))
        stems = [_stem(word, str(text.record.get("Language"))) for word in term.words]
        weight = max(text.weights.get(stem, 1.0) for stem in stems)
        score += rarity * weight / (weight + _SATURATION) * len(stems)
    return score
