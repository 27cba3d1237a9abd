r"""Front matter: a small strict part of YAML, written so that every YAML reader understands it and read without one.

Written is one `name: value` a line, each value in JSON, which is YAML, too. Read are besides: plain and single-quoted
scalars (all of them strings), lists on one line, lists of one scalar a line, blank lines and comments. Anchors,
aliases, tags, nested blocks and block scalars are refused line by line, so nothing can grow beyond what was read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import regex

from refdesk.toolsets.knowledge.transfer.strict_values import RefusedError, parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.model import JsonValue

FENCE = "---"
LONGEST = 16 * 1024 * 1024
"""Characters of front matter."""

_LONGEST_LOOSE_VALUE = 10_000
"""Characters of a value that is not JSON: a quote that does not end is looked for once for each character."""

_FIELD = regex.compile(r"([\p{L}\p{N}_][\p{L}\p{N}_. /-]{0,100}?):(?:[ \t]+(.*))?")
_ITEM = regex.compile(r"[ \t]*-(?:[ \t]+(.*))?")
_REFUSED_STARTS = tuple("&*!|>%@`{}]")
_COMMENT = regex.compile(r"(?<![ \t])[ \t]++#.*")
_QUOTED_END = regex.compile(r"[ \t]*+(#.*)?")
# What YAML does not let stand for itself: C1 controls, DEL, line and paragraph separators, the byte-order mark, U+FFFE
# and U+FFFF.
_UNPRINTED = regex.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(slots=True)
class FrontMatter:
    """What was read.

    Attributes:
        values: By name.
        lines: The line of the file that each name stands on.
        refused: Lines that were not understood, each with the reason.
    """

    values: dict[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    refused: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


def write(values: Mapping[str, JsonValue]) -> str:
    """Return the values between fences, each line ended by a line feed."""
    lines = [f"{name}: {_dump(value)}\n" for name, value in values.items()]
    return "".join([FENCE, "\n", *lines, FENCE, "\n"])


def split(text: str) -> tuple[str | None, str]:
    """Return the front matter and what follows it, verbatim; no front matter when the text has none that ends."""
    first, feed, rest = text.partition("\n")
    if first.rstrip() != FENCE or not feed:
        return None, text
    end = regex.search(r"^---[ \t]*\r?(?:\n|\Z)", rest[: LONGEST + len(FENCE)], regex.MULTILINE)
    return (rest[: end.start()], rest[end.end() :]) if end else (None, text)


def read(text: str) -> FrontMatter:
    """Return what stands between the fences; its first line is the second of the file."""
    matter = FrontMatter()
    reader = _Reader(matter)
    for number, line in enumerate(text.split("\n"), start=2):
        try:
            reader.read_line(number, line.rstrip())
        except RefusedError as error:
            matter.refused.append((number, str(error)))
    return matter


class _Reader:
    """Reads line by line; knows the list that further items would belong to."""

    def __init__(self, matter: FrontMatter) -> None:
        self._matter = matter
        self._items: list[JsonValue] | None = None
        self._name: str | None = None

    def read_line(self, number: int, line: str) -> None:
        if not line.strip() or line.lstrip().startswith("#"):
            return
        if self._name is not None and (item := _ITEM.fullmatch(line)):
            self._add_item(item[1] or "")
            return
        self._name = self._items = None
        found = _FIELD.fullmatch(line)
        if found is None:
            raise RefusedError("is not a name and a value on one line")
        name, value = str(found[1]).strip(), str(found[2] or "")
        if name in self._matter.values:
            raise RefusedError(f"repeats {name}")
        self._matter.lines[name] = number
        if _COMMENT.sub("", f" {value}").strip():
            self._matter.values[name] = read_value(value)
        else:
            self._matter.values[name], self._name = None, name

    def _add_item(self, value: str) -> None:
        item = read_value(value)
        if self._items is None:
            self._items = []
            self._matter.values[str(self._name)] = self._items
        self._items.append(item)


def read_value(text: str) -> JsonValue:
    """Return a value on one line: a JSON value, or a plain or quoted scalar or a list of those, as strings.

    Raises:
        RefusedError: It is something else.
    """
    text = text.strip()
    if text.startswith(('"', "{", "[")):
        try:
            return parse_json(text)
        except RefusedError:
            if text.startswith("{"):
                raise
    if len(text) > _LONGEST_LOOSE_VALUE:
        raise RefusedError("is too long for a value that is not JSON")
    return _read_list(text) if text.startswith("[") else _read_scalar(text)


def _read_scalar(text: str) -> JsonValue:
    if text.startswith("'"):
        return _read_single_quoted(text)
    if text.startswith('"'):
        return _read_double_quoted(text)
    if text.startswith(_REFUSED_STARTS) or text.startswith(("- ", "? ")):
        raise RefusedError("uses a part of YAML that is not read: write the value in double quotes")
    plain = str(_COMMENT.sub("", text)).strip()
    if regex.fullmatch(r"-?(0|[1-9]\d{0,399})", plain):
        return int(plain)
    return None if plain in ("", "~", "null") else plain


def _read_single_quoted(text: str) -> str:
    found = regex.match(r"'((?:[^']|'')*+)'", text)
    if found is None or not _QUOTED_END.fullmatch(text, found.end()):
        raise RefusedError("has a quote that does not end")
    return str(found[1]).replace("''", "'")


def _read_double_quoted(text: str) -> JsonValue:
    found = regex.match(r'"(?:[^"\\]|\\.)*+"', text)
    if found is None or not _QUOTED_END.fullmatch(text, found.end()):
        raise RefusedError("has a quote that does not end")
    return parse_json(str(found[0]))


def _read_list(text: str) -> list[JsonValue]:
    text = str(_COMMENT.sub("", text)) if not text.endswith("]") else text
    if not text.endswith("]"):
        raise RefusedError("has a list that does not end on its line")
    inner = text[1:-1].strip().removesuffix(",")
    parts = regex.findall(r"""(?:'(?:[^']|'')*+'|"(?:[^"\\]|\\.)*+"|[^,\[\]{}])++|[\[\]{}]""", inner)
    if any(part in "[]{}" for part in parts):
        raise RefusedError("has a list in a list")
    return [_read_scalar(part.strip()) for part in parts if part.strip()]


def _dump(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return str(_UNPRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
