"""Chunking: splits a body into passages, the units that are embedded and retrieved.

A passage is as long as an embedding model reads at once: with its title it fits a window of 256 word pieces, about 150
to 200 English words. It ends with a paragraph if possible, or else with a sentence, or else between words.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import regex

MAX_PIECES = 220
"""Most pieces, as estimated, of a title and one passage together. The estimate is within a sixth of what BERT's
tokenizer gives for English prose, mark-up and Chinese, so they fit the window of 256."""

MAX_TITLE_LENGTH = 200
"""Most code points of a title that are embedded with each passage."""

_PIECE = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]|[^\W_]{1,7}|[^\s\w]|_"
)
"""What becomes about one piece in a word-piece tokenizer: a short word or part of a long one, a sign, a character of a
script written without blanks."""

_SENTENCE_END = regex.compile(r"""[.!?…]["'”’)\]]*\s+|[。！？｡]["'”’」』）]*\s*|\n\s*""")
_PARAGRAPH_END = regex.compile(r"\n[^\S\n]*\n\s*$")
_ENOUGH_FOR_PARAGRAPH = 0.7
_WORD_SEARCH = 30


def split(title: str, body: str) -> list[tuple[int, int]]:
    """Return the offsets of a body's passages, (start, end) in code points, in order.

    They are disjoint, leave out only blanks between them, and are of about equal length. A body without text gives a
    single empty passage (0, 0), so that a document that has only a title is embedded too.
    """
    room = MAX_PIECES - len(_PIECE.findall(title[:MAX_TITLE_LENGTH]))
    sentences = [part for span in _get_sentences(body) for part in _cut(body, *span, room)]
    spans = [_trim(body, start, end) for start, end in _pack(body, sentences, room)]
    return [(start, end) for start, end in spans if start < end] or [(0, 0)]


def embedding_text(title: str, body: str, passage: tuple[int, int]) -> str:
    """Return what is embedded for a passage: the title, then the passage's text."""
    return f"{title[:MAX_TITLE_LENGTH]}\n{body[passage[0] : passage[1]]}".strip()


def _get_sentences(body: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _SENTENCE_END.finditer(body):
        yield start, match.end()
        start = match.end()
    if start < len(body):
        yield start, len(body)


def _cut(body: str, start: int, end: int, room: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, pieces) of a sentence, or of its parts, cut between words, if it is longer than `room`."""
    pieces = [match.start() for match in _PIECE.finditer(body, start, end)]
    first = 0
    while len(pieces) - first > room:
        after = first + room
        between_words = (at for at in range(after, after - _WORD_SEARCH, -1) if body[pieces[at] - 1].isspace())
        after = next(between_words, after)
        yield start, pieces[after], after - first
        start, first = pieces[after], after
    yield start, end, len(pieces) - first


def _pack(body: str, sentences: list[tuple[int, int, int]], room: int) -> Iterator[tuple[int, int]]:
    """Yield spans of whole sentences, each of at most `room` pieces, and of about equal length."""
    left = sum(pieces for _, _, pieces in sentences)
    share = left / max(1, ceil(left / room))
    start = end = held = 0
    for begin, stop, pieces in sentences:
        is_full = held + pieces > room or held + pieces / 2 > share
        ends_paragraph = held >= share * _ENOUGH_FOR_PARAGRAPH and _PARAGRAPH_END.search(body, end - 64, end)
        if held and (is_full or ends_paragraph):
            yield start, end
            left -= held
            share = left / max(1, ceil(left / room))
            start, held = begin, 0
        end, held = stop, held + pieces
    yield start, end


def _trim(body: str, start: int, end: int) -> tuple[int, int]:
    text = body[start:end]
    return start + len(text) - len(text.lstrip()), start + len(text.rstrip())
