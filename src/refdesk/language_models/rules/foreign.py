"""Orders, reports and questions in other languages than English: recognised, and quoted instead of reworded."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import regex

from refdesk.core.search import languages
from refdesk.kit import phrases, sentences

Sort: TypeAlias = Literal["ask", "have", "forbid", "act", ""]

MIN_WORDS = 3
"""Fewest words of a sentence whose language is recognised: fewer are as likely to be names."""

_POLITE = regex.compile(
    r"^(?:(?:bitte|por favor|veuillez|proszę|prosze|per favore|dann|请|請|麻烦您?)\b,?\s*|[请請])+", regex.IGNORECASE
)
_ENGLISH = regex.compile(
    r"\bI['’](?:m|ve|ll|d)\b|n['’]t\b|\b[Ll]et['’]s\b"
    r"|\bI\ (?:need|see|have|am|want|do|don|still|can|will|was|would|got|think|just)\b"
)
"""What only English has; a short sentence may look like another language by its letters."""

_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")


@lru_cache(sentences.MAX_REMEMBERED)
def is_foreign(sentence: str) -> bool:
    """Return whether a sentence is in another language than English, as far as that can be told."""
    if _UNSPACED.search(sentence):
        return True
    if len(sentence.split()) < MIN_WORDS or _ENGLISH.search(sentence):
        return False
    return languages.recognise(sentence) not in {None, languages.ENGLISH}


@lru_cache(sentences.MAX_REMEMBERED)
def sort(sentence: str) -> Sort:
    """Return whether a sentence asks, orders, forbids or reports what was done; empty if it does none of these."""
    if phrases.has("QUESTION", sentence):
        return "ask"
    if phrases.has("FORBIDDEN", sentence):
        return "forbid"
    if phrases.has("ORDER", sentence):
        return "have"
    if sentences.asks(sentence[-2:]):
        return "ask"
    return "act" if phrases.has("REPORT", sentence) else ""


def leave_polite(sentence: str) -> str:
    """Return an order without "please", so that its verb comes first where the language puts it there."""
    return _POLITE.sub("", sentence).strip()


def word(sentence: str) -> str:
    """Return a sentence as an order to the agent; it is quoted, because nobody could check a translation."""
    said = sentence.strip().rstrip(" .。")
    lead = {
        "ask": "Ask",
        "have": "Have the customer do this",
        "forbid": "Tell the customer",
        "act": "Do this and say so",
    }.get(sort(sentence), "Say")
    return f"{lead}: “{said}”"
