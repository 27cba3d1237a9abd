"""How text is cut into the words that are searched."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_EAST_ASIAN = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff66-\uff9f々ー"
_RUN = re.compile(rf"[{_EAST_ASIAN}]+|[^\W\d_{_EAST_ASIAN}]+|\d+")


_WILD_RUN = re.compile(rf"[{_EAST_ASIAN}]+|(?:[^\W\d_{_EAST_ASIAN}][*?]*)+|(?:\d[*?]*)+")


def split_words(text: str, *, wild: bool = False) -> Iterator[str]:
    """Yield the words of a text in order, in lower case and without accents.

    Words end at blanks, punctuation, and where letters and digits meet. East Asian writing, which has no blanks, is cut
    into overlapping pairs of characters. With `wild`, asterisks and question marks belong to the word before them.
    """
    for match in (_WILD_RUN if wild else _RUN).finditer(_fold(text)):
        yield from _cut(match[0])


def _fold(text: str) -> str:
    # Voicing marks of kana are combining characters too, and are part of the sound.
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(
        character for character in decomposed if not unicodedata.combining(character) or character in "\u3099\u309a"
    )
    return unicodedata.normalize("NFC", kept)


def _cut(run: str) -> Iterator[str]:
    if re.match(f"[{_EAST_ASIAN}]", run) and len(run) > 1:
        yield from (run[start : start + 2] for start in range(len(run) - 1))
    else:
        yield run
