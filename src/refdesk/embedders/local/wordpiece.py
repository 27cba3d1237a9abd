"""BERT's WordPiece tokenizer for uncased English.

Source: Devlin et al., "BERT" (2018) and the tokenizer published with it: text is cleaned, accents and case are dropped,
punctuation and Han characters are split off, and each word is covered by the longest known pieces from its start.
"""

from __future__ import annotations

import gzip
import hashlib
import unicodedata
from functools import lru_cache
from itertools import islice
from pathlib import Path

import regex

from refdesk.errors import EmbedderError

VOCABULARY = Path(__file__).with_name("vocabulary.txt.gz")
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
"""Digest of the unpacked file: `vocab.txt` of bert-base-uncased, as Google published it."""

_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"
_MAX_WORD_LENGTH = 100
_CODE_POINTS_PER_PIECE = 64
"""More than any text needs for a piece; a longer text is cut off at that before it is cleaned."""

_HAN = (
    r"\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    r"\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f"
)
_ALONE = rf"\p{{P}}$+<=>^`|~{_HAN}"
_WORD = regex.compile(rf"[{_ALONE}]|[^\s{_ALONE}]++")
_DROPPED = regex.compile(r"[\p{Cc}\p{Cf}\p{Cs}\p{Co}\ufffd--\t\n\r]", regex.VERSION1)
_ACCENT = regex.compile(r"\p{Mn}")


class WordPiece:
    """The tokenizer; safe to share between threads."""

    def __init__(self) -> None:
        self._numbers = _read_vocabulary()
        self._start, self._end = self._numbers[_START], self._numbers[_END]
        self._cover = lru_cache(maxsize=1 << 15)(self._cover_word)

    def encode(self, text: str, limit: int) -> list[int]:
        """Return the piece numbers of a text between the start and end marks, at most `limit` (2 or more) in all."""
        text = _clean(text[: limit * _CODE_POINTS_PER_PIECE])
        pieces = (piece for match in _WORD.finditer(text) for piece in self._cover(match[0]))
        return [self._start, *islice(pieces, limit - 2), self._end]

    def _cover_word(self, word: str) -> tuple[int, ...]:
        pieces: list[int] = []
        start = 0
        while start < len(word) <= _MAX_WORD_LENGTH:
            prefix = "##" if start else ""
            end = next((end for end in range(len(word), start, -1) if prefix + word[start:end] in self._numbers), None)
            if end is None:
                break
            pieces.append(self._numbers[prefix + word[start:end]])
            start = end
        return tuple(pieces) if start == len(word) else (self._numbers[_UNKNOWN],)


def _clean(text: str) -> str:
    if not text.isascii():
        text = _ACCENT.sub("", unicodedata.normalize("NFD", _DROPPED.sub("", text)))
    else:
        text = _DROPPED.sub("", text)
    return text.lower()


def _read_vocabulary() -> dict[str, int]:
    try:
        content = gzip.decompress(VOCABULARY.read_bytes())
    except (OSError, EOFError) as error:
        raise EmbedderError("The local model's vocabulary cannot be read: install refdesk anew.") from error
    if hashlib.sha256(content).hexdigest() != VOCABULARY_SHA256:
        raise EmbedderError("The local model's vocabulary is damaged: install refdesk anew.")
    return {piece: number for number, piece in enumerate(content.decode().splitlines())}
