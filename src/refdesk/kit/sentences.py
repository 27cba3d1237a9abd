"""Splits a conversation into sentences and drops those without content."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import regex

from refdesk.core.machine_orders import is_order
from refdesk.kit import phrases

MAX_REMEMBERED = 8192
"""Most texts whose sentences are cached: a refinement reads again what earlier ones have read."""

MAX_SENTENCE = 240
"""How many code points of a sentence are kept."""

_END = regex.compile(
    r"(?<=[.!?…])(?<!\b(?:Dr|Mr|Mrs|Ms|Prof|St|No|vs|etc|e\.g|i\.e|approx|Inc|Ltd)\.)\s+|(?<=[。！？])\s*|\n+"
)
_WRAPPED = regex.compile(
    r"""(?<=[^\n]{50}(?<![.!?:;…。！？\s]))[ \t]*\n[ \t]*(?=\p{Ll})
    | (?<=[\p{L}\d,\])'"’”])[ \t]*\n[ \t]*(?=(?:that|which|and|or|of|for|with|but|because|as|than|until|from|by)\b)""",
    regex.VERBOSE,
)
"""Where a line was broken within a sentence: after a long one, or before a word that goes on with it."""

_ASSENT = r"""(?:no|right)(?=[,.!?:;–…](?!\d)|\ -|$|\s+(?:i|we|you|he|she|it|they|this|that|there|these|those|the|my|our
    |your|i['’]\p{L}+|\p{L}+n['’]t|is|was|are|did|not|still|but|and|so|please|sorry|thanks?|let|just|because|when|where|what
    |how|why)\b)"""
"""Words that are an answer only in certain contexts, and more than that before a noun: "No internet", "Right
speaker"."""

_GREETING = regex.compile(
    rf"""^(?:(?:(?:hi|hey|hello|helo|howdy|hiya|greetings|dear|good\ (?:morning|afternoon|evening|day)|ok|okay
    |so(?!\ far\b)|well|oh|um|yes|yeah|yep|sure|nope|thanks|thank\ you|sorry(?!\ \p{{L}})|great|alright|perfect
    |excellent|awesome|no\ (?:problem|worries)(?=[,.!;:–…]|\ -|$)|welcome(?=[,.!:;–…]|$|\ (?:to|back)\b)
    |(?-x:{phrases.write_greetings()}))
    (?:\ (?:there|again|everyone|all|ai|assistant|team|support|sir|madam|very\ much|so\ much))?
    | {_ASSENT})(?:(?:[\s,.!?:;–…]|-+(?![\p{{L}}\d]))+|$)
    |(?-x:{phrases.write_unspaced_greetings()})(?:[\s、。，！？,.!?]+|$))+""",
    regex.IGNORECASE | regex.VERBOSE,
)
_CIVIL = regex.compile(
    r"""^(?:
      (?:that'?s|that\ is|it'?s|its)\ (?:all|it|fine|great|ok|okay|good|right|correct|perfect)\b.{0,40}
    | (?:i'?m|i\ am|this\ is|it'?s|it\ is|here\ is)
      \ (?:(?:(?-i:\p{Lu}\p{Ll}[\p{L}.'-]*)|\[name[\ \d]{0,3}\])[\s,.!]*){1,4}
    | (?:my\ name\ is|name\ is|you\ can\ call\ me|call\ me)\ (?:(?:\p{L}[\p{L}.'-]*|\[name[\ \d]{0,3}\])[\s,.!]*){1,4}
    | (?:are\ you|is\ (?:any|some)(?:one|body))\ there.{0,10}
    | .{0,24}\b(?:how\ (?:can|may)\ i\ (?:help|assist)|what\ can\ i\ do\ for\ you|can\ i\ help\ you
      |anything\ else)\b.{0,80}
    | (?:can|could|would|will)\ you\ (?:please\ )?(?:help|assist)(?:\ me)?(?:\ out)?(?:\ please)?
    | (?:i\ )?need\ (?:some\ |your\ )?(?:help|assistance)(?:\ please)? | help(?:\ me)?(?:\ (?:out|please))?
    | (?:have\ a|enjoy)\b.{0,40} | (?:good)?bye\b.{0,20} | you'?re\ welcome.{0,20}
    | no\ problem(?:\ at\ all)? | glad\ .{0,40}
    | (?:thank|thanks|thx|cheers|appreciate|much\ appreciated)\b.{0,60}
    | (?:i'?m\ |i\ am\ |we'?re\ |we\ are\ )?(?:so\ |very\ |really\ |truly\ )?sorry\ (?:to\ hear|about|for)\b.{0,60}
    | (?:(?:that['’]?s|that\ is)\ )?(?:great|good|glad|nice|happy|lovely|wonderful)?\ ?to\ hear\b.{0,40}
    | one\ moment.{0,30} | (?:please\ )?(?:hold\ on|bear\ with\ (?:me|us)|hang\ on|stand\ by)\b.{0,40}
    | (?:please\ )?take\ your\ time\b.{0,40} | (?:please\ )?(?:feel\ free|do(?:n['’]t
        |\ not)\ hesitate)\ to\ (?:reach|contact|ask|let|call|write|get|message).{0,60}
    | (?:it['’]?s\ |it\ is\ |it\ was\ )?(?:a|my)\ pleasure\b.{0,50} | not\ (?:a\ )?problem\b.{0,10}
        | safe\ (?:travels?|journey|trip)\b.{0,20}
    | (?:please\ )?let\ me\ (?:just\ |quickly\ )?(?:check|look|see|have\ a\ look|take\ a\ look
        |retrieve)(?:\ (?:that|this|it|into\ (?:it|this|that)|up|on\ that
      |that\ information|the\ details))*(?:\ for\ you)?(?:\ now|\ quickly|\ right\ away)?
    | (?:i\ )?(?:will|won['’]?t|can|do|did|don['’]?t|shall) | i(?:['’]m|\ am)\ here\ to\ (?:help|assist)\b.{0,40}
    | i\ (?:completely\ |totally\ |fully\ )?understand\ (?:your|the|how|that\ this)\b.{0,60}
        | (?:just\ )?a\ (?:moment|second|minute).{0,20} | take\ care | none | how\ are\ you.{0,30}
    | (?:i\ )?(?:see|understand|got\ it|agree|did|done)\b[\s,.!]*(?:thank.{0,40})?
    | (?:(?:so\ )?(?:lovely|cool|fine|nice|brilliant|phew|wow|yay|great|super)[\s,.!]*)+
      (?:(?:find|catch|news|job|one|work|thanks?|thx|ty)\b.{0,40})?
    | (?:phew|wow|yay|and)?[\s,.!]*good\ luck\b.{0,40}
    | (?:(?:kind|best|warm|warmest|with\ kind)\ )?regards | (?:yours\ )?(?:sincerely|faithfully|truly)
    | i\ hope\ (?:you|this|all|everything)\b.{0,40} | (?:please\ )?advise
    | here(?:'s|\ is|\ are)(?:\ (?:how|the\ steps|what\ (?:to\ do|you\ need\ to\ do)))?.{0,3}
    | let['’]?s\ see | let['’]?s\ (?:start|begin)(?:\ with\ (?:the|your|that|this)\b.{0,30})?
    | (?:it'?s|it\ is|that'?s|that\ is|(?:the|my)\ [\p{L}\ ]{2,20}\ is)?\s?[#\d][\w\-/:.]*
    )[\s.!?,]*$""",
    regex.IGNORECASE | regex.VERBOSE,
)
_MASKED = regex.compile(r"\[(?:card number|e-mail|phone number|account number|social security number|secret)\]")


@lru_cache(MAX_REMEMBERED)
def split(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that have content, each as one line, without leading greetings.

    Left out are pleasantries, names, bare numbers, and sentences that address a machine instead of a person: readers of
    a playbook are to do what helped, not what a customer's text orders.
    """
    return tuple(_split(text))


def _split(text: str) -> Iterator[str]:
    for part in _END.split(unwrap(text)):
        sentence = " ".join(part.split())
        if is_order(sentence) or not says_something(sentence):
            continue
        sentence = drop_greeting(sentence)
        if says_something(sentence):
            yield shorten(sentence, MAX_SENTENCE)


@lru_cache(MAX_REMEMBERED)
def split_all(text: str) -> tuple[str, ...]:
    """Return every sentence of a text as one line, pleasantries too."""
    return tuple(sentence for part in _END.split(unwrap(text)) if (sentence := " ".join(part.split())))


def unwrap(text: str) -> str:
    """Return a text with the lines of a sentence joined that was wrapped: the next goes on in lower case."""
    return _WRAPPED.sub(" ", text) if "\n" in text else text


def drop_greeting(sentence: str) -> str:
    """Return a sentence without the greeting or assent that it begins with."""
    return _GREETING.sub("", sentence).strip(" ,;:-–")


def says_something(sentence: str) -> bool:
    """Return whether a sentence is more than a pleasantry, a name, a number or a masked value."""
    bare = _MASKED.sub("", sentence)
    return sum(map(str.isalpha, bare)) >= 2 and not _CIVIL.match(bare.strip()) and not phrases.is_whole("CIVIL", bare)


def asks(text: str) -> bool:
    """Return whether a question mark is in a text."""
    return "?" in text or "？" in text


def is_unspaced(text: str) -> bool:
    """Return whether a text contains a script that is written without blanks between words."""
    return regex.search(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]", text) is not None


def shorten(text: str, length: int) -> str:
    """Return at most `length` code points, cut between words and marked with an ellipsis."""
    if len(text) <= length:
        return text
    head = text[: length - 1]
    at = head.rfind(" ")
    return (head[:at] if at > length // 2 else head).rstrip(" ,;:") + "…"
