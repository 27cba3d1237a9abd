"""What can be seen of a text: blanks, invisible characters and escape sequences cannot."""

from __future__ import annotations

import re

ESCAPE = (
    r"\x1b\[[0-?]*[ -/]*[@-~]?",
    r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?",
    r"\x1b[ -/]*[0-~]?",
    r"\x9b[0-?]*[ -/]*[@-~]?",
)
"""Patterns of the sequences that control terminals (ECMA-48), unfinished ones included."""

INVISIBLE = (
    r"[\x00-\x08\x0B\x0C\x0E-\x1A\x1C-\x1F\x7F-\x9A\x9C-\x9F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F"
    r"\u202A-\u202E\u2060-\u206F\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFFB\U0001BCA0-\U0001BCA3\U0001D173-\U0001D17A"
    r"\U000E0000-\U000E0FFF]+"
)
"""A pattern of characters that are not drawn."""

_SEEN = re.compile(r"[^\s\u2800" + INVISIBLE[1:-2] + r"\x1B\x9B]")
"""A character that is drawn: neither a blank (including the blank of Braille) nor invisible."""

_ESCAPES = re.compile("|".join(ESCAPE))


def is_seen(text: str) -> bool:
    """Return whether a text says anything to somebody who looks at it: it has a character that is drawn."""
    if _SEEN.search(text) is None:
        return False
    if "\x1b" not in text and "\x9b" not in text:
        return True
    # Characters of an escape sequence are not drawn.
    return _SEEN.search(_ESCAPES.sub("", text)) is not None
