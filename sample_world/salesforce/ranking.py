"""Which articles a search finds, and in which order: words weighed by field and rarity. The same every time."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


def rank(records: Iterable[Record], fields: Sequence[Field], expression: SearchExpression) -> list[Record]:
    """Return the records in which the expression is found, best first; ties newest first, then by id."""
    texts = [_read(record, fields) for record in records]
    found = [text for text in texts if _finds(text, expression)]
    terms = list(_collect(expression))
    counts = Counter(term for text in texts for term in terms if _finds_term(text, term))
    scored = [(_score(text, terms, counts, len(texts)), text.record) for text in found]
    scored.sort(key=lambda pair: str(pair[1]["Id"]))
    scored.sort(key=lambda pair: str(pair[1].get("LastPublishedDate") or ""), reverse=True)
    scored.sort(key=lambda pair: -pair[0])
    return [record for _, record in scored]


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


def _finds(text: _Text, expression: SearchExpression) -> bool:
    if isinstance(expression, Term):
        return _finds_term(text, expression)
    if isinstance(expression, Without):
        return not _finds(text, expression.part)
    decide = all if isinstance(expression, Every) else any
    return decide(_finds(text, part) for part in expression.parts)


def _finds_term(text: _Text, term: Term) -> bool:
    if not term.exact and not term.wild:
        return _stem(term.words[0], str(text.record.get("Language"))) in text.weights
    return any(_has_run(words, term) for words in text.fields.values())


def _has_run(words: Sequence[str], term: Term) -> bool:
    tests = [_compile_word(word) for word in term.words]
    starts = range(len(words) - len(tests) + 1)
    return any(all(test.fullmatch(words[start + at]) for at, test in enumerate(tests)) for start in starts)


@cache
def _compile_word(word: str) -> re.Pattern[str]:
    return re.compile(re.escape(word).replace(r"\*", ".*").replace(r"\?", "."))


def _collect(expression: SearchExpression) -> Iterable[Term]:
    if isinstance(expression, Term):
        yield expression
    elif isinstance(expression, Every | Some):
        for part in expression.parts:
            yield from _collect(part)


def _score(text: _Text, terms: Sequence[Term], counts: Counter[Term], total: int) -> float:
    score = 0.0
    for term in terms:
        if _finds_term(text, term):
            rarity = math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5))
            stems = [_stem(word, str(text.record.get("Language"))) for word in term.words]
            weight = max(text.weights.get(stem, 1.0) for stem in stems)
            score += rarity * weight / (weight + _SATURATION) * len(stems)
    return score
