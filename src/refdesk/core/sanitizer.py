r"""Makes stored text safe to show: nothing in it is hidden from people, controls a terminal or loads by itself.

What agents read was written by others, and some of it tries to give orders that no person would see: in characters
that are not drawn, in HTML comments, in escape sequences, in the marks by which chat templates change speakers; or to
carry data away in the address of an image. Such things are taken out when text is read; what is stored stays as it was.
Hidden text that is long enough to say something is replaced by the mark `HIDDEN`, so that the reader of a hit knows; a
tag or comment too short for a mark is left as text that is no longer markup. A text never becomes longer. In Markdown
code, only what is invisible is taken out; the same holds for pages, which show markup as text.

Invisible characters stay where they have a use: joiners within emoji and within words of scripts that need them,
variation selectors after a character that has variants, the tags of regional flags, and direction marks beside letters
that are written from right to left.

Sources: Unicode Standard, chapter 23; UAX #9 (bidirectional text); UTS #51 (emoji); CVE-2021-42574 (direction that
hides code); ECMA-48 (escape sequences); CommonMark (code).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

import regex

from refdesk.core.visible import ESCAPE, INVISIBLE

HIDDEN = "[hidden text removed]"
ELEMENT = "[removed]"

MOST_ROUNDS = 4
"""Taking something out may join what stood around it into something that has to go, too. Deeper nesting than this is no
accident."""

_RIGHT_TO_LEFT = r"[\p{Hebrew}\p{Arabic}\p{Syriac}\p{Thaana}\p{Nko}]"
_JOINED = (
    r"[\p{Arabic}\p{Syriac}\p{Mongolian}\p{Nko}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}\p{Tamil}"
    r"\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
)
_SELECTORS = r"\uFE00-\uFE0F\U000E0100-\U000E01EF"
_USEFUL = (
    r"\U0001F3F4[\U000E0030-\U000E0039\U000E0061-\U000E007A]{2,6}\U000E007F",
    r"(?<=[\p{Extended_Pictographic}\uFE0F\U0001F3FB-\U0001F3FF])\u200D(?=\p{Extended_Pictographic})",
    rf"(?<={_JOINED})[\u200C\u200D](?=[\s\p{{P}}]|{_JOINED}|$)",
    rf"(?<=[\p{{Emoji}}\p{{Extended_Pictographic}}])[\uFE0E\uFE0F](?![{_SELECTORS}])",
    rf"(?<=[\p{{Han}}\p{{Math}}])[\uFE00-\uFE02\U000E0100-\U000E01EF](?![{_SELECTORS}])",
    rf"(?<={_RIGHT_TO_LEFT}.{{0,3}})[\u200E\u200F\u061C]",
    rf"[\u200E\u200F\u061C](?=.{{0,3}}{_RIGHT_TO_LEFT})",
)
_SUSPECT_SIGN = re.compile("[" + INVISIBLE[1:-2] + r"\r\x1B\x9B\u2028\u2029]")
_SUSPECT_MARKUP = re.compile(r"<[!|A-Za-z\u0080-\U0010FFFF]")
"""Most texts have no match for either pattern, and need no further work."""

_WITHOUT_TEXT = frozenset((int, float, bool, type(None)))

_FENCED = (
    r"(?m:^ {0,3}(?<ticks>`{3,}|~{3,})[^\n]*\n(?s:.*?)(?:^ {0,3}(?P=ticks)[`~]*[ \t]*$|\Z))",
    r"(?<!`)(?<span>`{1,8})(?!`)[^\n]+?(?<!`)(?P=span)(?!`)",
)


def clean(text: str) -> str:
    """Return a text made safe to show; it is never longer than before."""
    if not _is_suspect(text):
        return text
    for _ in range(MOST_ROUNDS):
        before, text = text, _active().sub(_replace_active, _unseen().sub(_replace_unseen, text))
        if text == before:
            return text
    return text.replace("<", "‹").replace("![", "[")


def drop_unseen(text: str) -> str:
    """Return a text without its invisible parts, leaving markup alone: for what shows markup as text."""
    if text.isascii() and text.isprintable():
        return text
    for _ in range(MOST_ROUNDS):
        before, text = text, _unseen().sub(_replace_unseen, text)
        if text == before:
            break
    return text


def _is_suspect(text: str) -> bool:
    """Return whether something may have to be taken out: nothing is from a text that has none of these signs."""
    # Printable ASCII, which is most of a result, need not be searched for suspect signs.
    return (
        (not (text.isascii() and text.isprintable()) and _SUSPECT_SIGN.search(text) is not None)
        or ("<" in text and _SUSPECT_MARKUP.search(text) is not None)
        or "![" in text
        or ";base64," in text
    )


def clean_json(value: Any, clean: Callable[[str], str] = clean) -> Any:  # noqa: ANN401 - JSON in, JSON of the same shape out
    """Return a JSON value with `clean` applied to each of its texts; the keys stay as they are."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: item if type(item) in _WITHOUT_TEXT else clean_json(item, clean) for key, item in items}
    if isinstance(value, list):
        return [clean_json(item, clean) for item in cast("list[Any]", value)]
    return value


@cache
def _unseen() -> regex.Pattern[str]:
    kinds = {"useful": "|".join(_USEFUL), "escape": "|".join(ESCAPE), "run": INVISIBLE}
    return regex.compile(
        "|".join(f"(?<{name}>{pattern})" for name, pattern in kinds.items()) + r"|(?<line>\r(?!\n)|[\u2028\u2029])"
    )


@cache
def _active() -> regex.Pattern[str]:
    kinds = {
        "code": "|".join(_FENCED),
        "comment": r"<!--(?s:.*?)(?:-->|\Z)",
        "image": r"!(?=\[)",
        "element": r"<(?i:img|image|iframe|script|style|object|embed|video|audio|source|link|meta|base)\b[^<>]*>",
        "turn": r"<\|(?=[\w ]{1,40}\|>)",
        "data": r"(?<=data:[\w/+.-]{0,80}(?:;[\w=-]{1,40}){0,3};base64,)[A-Za-z0-9+/=]{64,}",
    }
    return _compile(kinds)


def _compile(kinds: Mapping[str, str]) -> regex.Pattern[str]:
    return regex.compile("|".join(f"(?<{name}>{pattern})" for name, pattern in kinds.items()))


def _replace_unseen(found: regex.Match[str]) -> str:
    if found.lastgroup == "useful":
        return found[0]
    if found.lastgroup == "line":
        return "\n"
    return _mark(found[0], HIDDEN) if found.lastgroup == "run" else ""


def _replace_active(found: regex.Match[str]) -> str:
    if found["code"] is not None:
        return found[0]
    if found["comment"] is not None:
        return _mark(found[0], HIDDEN) or _disarm(found[0])
    if found["element"] is not None:
        return _mark(found[0], ELEMENT) or _disarm(found[0])
    if found["turn"] is not None:
        return "<"
    return "…" if found["data"] is not None else ""


def _mark(taken: str, mark: str) -> str:
    return mark if len(taken) >= len(mark) else ""


def _disarm(tag: str) -> str:
    return f"‹{tag[1:]}"
