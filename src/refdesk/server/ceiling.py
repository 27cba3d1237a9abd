"""The ceiling on the size of an answer, so that it fits a model's context, and how to read what was cut.

Tokens are estimated, since vocabularies are large and every model has its own: for real text and JSON of many scripts
the estimate lies at or above what o200k counts, by a tenth to a third. `tests/server/test_ceiling.py` holds it to that.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

from refdesk.core.operations import TRUNCATED
from refdesk.server.answers import to_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from refdesk.core.operations import Shortening

MOST_TOKENS = 10_000
"""Most tokens of one answer; clients warn above this."""

_WINDOW = 1000
_MARGIN = 1.05
_WORD, _DIGITS, _ACCENTED, _SCRIPT, _HANGUL, _SYMBOL, _PUNCTUATION = range(1, 8)
_PIECES = re.compile(
    r"([A-Z]?[a-z]+|[A-Z]+)|(\d+)|([\u0080-\u02ff\u1e00-\u1eff])|([\u0370-\u1fff]+)|([\uac00-\ud7af]+)|([^\x00-\x7f])"
    r"|([^\sA-Za-z0-9\u0080-\U0010ffff]+)|(\n\s*| {2,})"
)
_LEAST_VOWELS = 0.3
"""Least share of vowels among the letters of natural language; among random letters it is a fifth, and about two of
those cost a token."""


def estimate_tokens(text: str) -> int:
    """Return an estimate of a text's tokens, which is rarely too low."""
    windows = (text[start : start + _WINDOW] for start in range(0, len(text), _WINDOW))
    return round(sum(_estimate(window) for window in windows) * _MARGIN)


def _estimate(text: str) -> int:
    tokens = letters = words = nonsense = 0
    for piece in _PIECES.finditer(text):
        kind, length = piece.lastindex, piece.end() - piece.start()
        match kind:
            case 1:
                letters += length
                words += 1 + (length - 1) // 6
                nonsense += max(1, (length * 5 + 4) // 8)
            case 2:
                tokens += (length + 2) // 3
            case 4:
                tokens += (length + 1) // 2
            case 5:
                tokens += (2 * length + 2) // 3
            case 6:
                tokens += 1 if ord(piece[0]) < 0x10000 else 3
            case 7:
                tokens += max(1, length - 2)
            case _:
                tokens += 1
    vowels = sum(map(text.count, "aeiouAEIOU"))
    is_language = vowels >= _LEAST_VOWELS * letters
    return tokens + (words if is_language else max(words, nonsense))


def shorten(
    value: dict[str, Any], how: Shortening, asked: Mapping[str, object], cursors: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an answer, shortened where it is too long: texts first, then items from the end.

    A shortened answer has `truncated`, with a `message` and, if reading on takes further arguments, those as `next`.

    Args:
        value: The answer as plain JSON values; it is not modified.
        how: What of it may be cut.
        asked: The arguments of the call.
        cursors: How to go on behind each item, where the answer is a page of a list.
    """
    if _fits(value):
        return value
    shortened = deepcopy(_shorten_items(value, how, asked, cursors) if how.items else _shorten_text(value, how, asked))
    while not _fits(shortened):
        _halve_largest(shortened)
    return shortened


def _fits(value: object) -> bool:
    text = to_text(value)
    # Two shortcuts: a byte has one token at most, and sixteen characters rarely have as few as one.
    if len(text.encode("utf-8", "surrogatepass")) <= MOST_TOKENS:
        return True
    if len(text) > MOST_TOKENS * 16:
        return False
    return estimate_tokens(text) <= MOST_TOKENS


def _shorten_items(
    value: dict[str, Any], how: Shortening, asked: Mapping[str, object], cursors: Sequence[str]
) -> dict[str, Any]:
    items = cast("list[dict[str, Any]]", value[how.items])
    reserved = _RESERVE + 2 * max(map(estimate_tokens, cursors[:1]), default=0)
    room = MOST_TOKENS - reserved - estimate_tokens(to_text({**value, how.items: []}))
    costs = [estimate_tokens(to_text({**item, **_blank(item, how)})) + 1 for item in items]
    kept = _count_that_fit(costs, room)
    room -= sum(costs[:kept])
    texts = [(item, name) for item in items[:kept] for name in how.texts if isinstance(item.get(name), str)]
    level = _find_level([estimate_tokens(item[name]) for item, name in texts], room)
    shown = [_cut_texts(item, how, level) for item in items[:kept]]
    cut = sum(after != before for after, before in zip(shown, items, strict=False))
    left_out = len(items) - kept
    told = _explain(how, cut, left_out)
    shortened: dict[str, Any] = {**value, how.items: shown, TRUNCATED: told}
    if left_out and how.pages:
        told["next"] = {"offset": _get_offset(asked) + kept}
        shortened |= {name: True for name in ("hasMore", "has_more") if name in value}
        if cursors:
            told["next"] = {**({"offset": 0} if _get_offset(asked) else {}), "cursor": cursors[kept - 1]}
            shortened["next_cursor" if "has_more" in value else "nextCursor"] = cursors[kept - 1]
    return shortened


_RESERVE = 150
"""Tokens kept free for what `truncated` says."""

_LEAST_TEXT = 12
"""Fewest tokens of a cut text that is still worth showing."""


def _blank(item: Mapping[str, Any], how: Shortening) -> dict[str, str]:
    return {name: "…" for name in how.texts if isinstance(item.get(name), str)}


def _count_that_fit(costs: list[int], room: int) -> int:
    total = 0
    for count, cost in enumerate(costs):
        total += cost
        if total > room:
            return max(1, count)
    return len(costs)


def _find_level(sizes: list[int], room: int) -> int:
    """Return how many tokens each text is cut to, so that all of them fit; short ones leave their share to long
    ones."""
    for place, size in enumerate(sorted(sizes)):
        share = room // (len(sizes) - place)
        if size > share:
            return max(share, 0)
        room -= size
    return max(sizes, default=0)


def _cut_texts(item: dict[str, Any], how: Shortening, level: int) -> dict[str, Any]:
    texts = {name: text for name in how.texts if isinstance(text := item.get(name), str)}
    return {**item, **{name: _cut(text, level) for name, text in texts.items()}}


def _cut(text: str, tokens: int) -> str:
    """Return as much of a text as fits in about this many tokens, with `…` where it was cut."""
    whole = estimate_tokens(text)
    if whole <= tokens:
        return text
    if tokens < _LEAST_TEXT:
        return "…"
    kept = text[: len(text) * (tokens - 1) // whole]
    while estimate_tokens(kept) >= tokens:
        kept = kept[: len(kept) * 9 // 10]
    return kept.rstrip() + "…"


def _shorten_text(value: dict[str, Any], how: Shortening, asked: Mapping[str, object]) -> dict[str, Any]:
    *outer, name = how.texts[0].split(".") if how.texts else [""]
    shortened = deepcopy(value)  # a text in it is cut in place
    holder: dict[str, Any] = shortened
    for key in outer:
        holder = holder[key]
    text = holder.get(name)
    shortened[TRUNCATED] = _explain(how, int(isinstance(text, str)), 0)
    if isinstance(text, str):
        holder[name] = ""
        room = MOST_TOKENS - _RESERVE - estimate_tokens(to_text(shortened))
        holder[name] = _cut(text, max(room, _LEAST_TEXT))
        if how.pages:
            kept = len(holder[name].removesuffix("…"))
            shortened[TRUNCATED]["next"] = {"offset": _get_offset(asked) + kept}
    return shortened


def _get_offset(asked: Mapping[str, object]) -> int:
    return int(str(asked.get("offset") or 0))


def _explain(how: Shortening, cut: int, left_out: int) -> dict[str, Any]:
    parts = [f"{cut} long texts are cut"] * bool(cut) + [f"{left_out} of the results are left out"] * bool(left_out)
    what = " and ".join(parts) or "parts are left out"
    on = " To read on from here, ask the same with `next` added." if how.pages and (left_out or not how.items) else ""
    return {"message": f"Not whole: {what}, so that it fits. {how.rest}{on}"}


def _halve_largest(value: dict[str, Any]) -> None:
    """Remove the second half of the largest text or list: for parts that nobody expected to be long."""
    holder, key, _ = max(_walk(value), key=lambda place: place[2])
    holder[key] = holder[key][: len(holder[key]) // 2]


def _walk(value: Any) -> Iterator[tuple[Any, Any, int]]:  # noqa: ANN401 - any JSON value
    """Yield each non-empty text and list as its container, its key there, and its length as JSON."""
    for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if isinstance(each, str | list) and each:
            yield value, key, len(to_text(cast("object", each)))
        if isinstance(each, dict | list):
            yield from _walk(each)
