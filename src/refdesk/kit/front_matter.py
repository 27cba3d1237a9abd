r"""Front matter: written as a small, strict subset of YAML that every YAML parser understands, and read leniently.

It is written as one `name: value` per line, each value in JSON, which is YAML too. It is read field by field, so that
only a field that is not understood is lost: first as people write fields (plain text with colons in it, lists with one
scalar per line), then, if that fails, as YAML with nested maps and lists and block scalars, within the limits of
`yaml_values`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import regex

from refdesk.kit.strict_values import RefusedError, parse_json
from refdesk.kit.yaml_values import parse_yaml, read_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refdesk.model import JsonValue

FENCE = "---"
LONGEST = 16 * 1024 * 1024
"""Most characters of front matter."""

_LONGEST_LOOSE_VALUE = 10_000
"""Most characters of a value on one line that is not JSON: the end of an unterminated quote is searched for once per
character."""

_MOST_YAML = 262_144
"""Most characters that are read as YAML in all fields together; each takes some microseconds."""

_FIELD = regex.compile(r"([\p{L}\p{N}_][\p{L}\p{N}_. /-]{0,100}?):(?:[ \t]+(.*))?")
_ITEM = regex.compile(r"[ \t]*-(?:[ \t]+(.*))?")
_REFUSED_STARTS = tuple("&*!|>%@`{}]")
_COMMENT = regex.compile(r"(?<![ \t])[ \t]++#.*")
_QUOTED_END = regex.compile(r"[ \t]*+(#.*)?")
# Characters that YAML requires to be escaped: C1 controls, DEL, line and paragraph separators, the byte-order mark,
# U+FFFE and U+FFFF.
_UNPRINTED = regex.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class _TooLongError(RefusedError):
    """The value is so long that it is not even tried as YAML."""


@dataclass(slots=True)
class FrontMatter:
    """The front matter that was read.

    Attributes:
        values: The values by name.
        lines: The line of each name in the file.
        refused: The numbers of lines that were not understood, each with the reason; for a field of several lines, that
            of the first.
    """

    values: dict[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    refused: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


def write(values: Mapping[str, JsonValue]) -> str:
    """Return the values between fences, each line ending with a line feed."""
    lines = [f"{name}: {_dump(value)}\n" for name, value in values.items()]
    return "".join([FENCE, "\n", *lines, FENCE, "\n"])


def split(text: str) -> tuple[str | None, str]:
    """Return the front matter and what follows it, verbatim; no front matter if the text has none, or none with a
    closing fence."""
    first, feed, rest = text.partition("\n")
    if first.rstrip() != FENCE or not feed:
        return None, text
    end = regex.search(r"^---[ \t]*\r?(?:\n|\Z)", rest[: LONGEST + len(FENCE)], regex.MULTILINE)
    return (rest[: end.start()], rest[end.end() :]) if end else (None, text)


def read(text: str) -> FrontMatter:
    """Return the fields between the fences; the first line of the text is line 2 of the file."""
    reader = _Reader()
    for found in _split_fields(text):
        try:
            reader.read_field(found)
        except RefusedError as error:
            reader.matter.refused.append((found.number, str(error)))
    return reader.matter


@dataclass(slots=True)
class _Field:
    """A line with a name, or one that is not understood, and the lines below that belong to it.

    Attributes:
        number: The number of its first line in the file.
        name: The name; empty if the line has none.
        value: What follows the name on its line.
        more: The lines below.
    """

    number: int
    name: str
    value: str
    more: list[str] = field(default_factory=list[str])

    @property
    def is_empty(self) -> bool:
        """Whether nothing but a comment follows the name on its line."""
        return bool(self.name) and not _COMMENT.sub("", f" {self.value}").strip()

    def find_more(self) -> int | None:
        """Return the number of the first line below that is neither blank nor a comment."""
        numbers = (number for number, line in enumerate(self.more, start=self.number + 1) if not _is_silent(line))
        return next(numbers, None)


def _split_fields(text: str) -> Iterator[_Field]:
    """Yield the fields. The indented lines, blank lines and comments below a field belong to it, as do the items of its
    list."""
    current: _Field | None = None
    for number, line in enumerate(map(str.rstrip, text.split("\n")), start=2):
        if current is not None and (_is_silent(line) or line[0] in " \t" or (current.is_empty and _is_item(line))):
            current.more.append(line)
        elif not _is_silent(line):
            if current is not None:
                yield current
            found = _FIELD.fullmatch(line)
            current = _Field(number, str(found[1]).strip(), str(found[2] or "")) if found else _Field(number, "", line)
    if current is not None:
        yield current


def _is_silent(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _is_item(line: str) -> bool:
    return _ITEM.fullmatch(line) is not None


class _Reader:
    """Reads field by field, and keeps track of how much YAML it has read."""

    def __init__(self) -> None:
        self.matter = FrontMatter()
        self._room = _MOST_YAML

    def read_field(self, found: _Field) -> None:
        if not found.name:
            raise RefusedError("is not a name and a value")
        if found.name in self.matter.values:
            raise RefusedError(f"repeats {found.name}")
        self.matter.lines[found.name] = found.number
        try:
            self.matter.values[found.name] = _read_lines(found)
        except _TooLongError:
            raise
        except RefusedError:
            self.matter.values[found.name] = self._read_yaml(found)

    def _read_yaml(self, found: _Field) -> JsonValue:
        """Return the value as YAML; if the lines below are not valid YAML, the value of the first line without them."""
        try:
            return self._parse("\n".join([f"value: {found.value}", *found.more, ""]))
        except RefusedError as error:
            number = found.find_more()
            if number is None or not (found.is_empty or _is_simple(found.value)):
                raise
            self.matter.refused.append((number, str(error)))
            return None if found.is_empty else read_value(found.value)

    def _parse(self, text: str) -> JsonValue:
        if len(text) > self._room:
            raise RefusedError(f"is beyond the {_MOST_YAML} characters of YAML that are read")
        self._room -= len(text)
        value = parse_yaml(text)
        if not isinstance(value, dict) or list(value) != ["value"]:
            raise RefusedError("is not one value")
        return value["value"]


def _is_simple(value: str) -> bool:
    try:
        read_value(value)
    except RefusedError:
        return False
    return True


def _read_lines(found: _Field) -> JsonValue:
    """Return the value of a field as people write it: on its line, or as a list with one scalar per line.

    Raises:
        RefusedError: It is something else.
    """
    lines = [line for line in found.more if not _is_silent(line)]
    if not lines:
        return None if found.is_empty else read_value(found.value)
    items = [_ITEM.fullmatch(line) for line in lines]
    if not found.is_empty or not all(items):
        raise RefusedError("takes several lines")
    texts = [str(item[1] or "") for item in items if item]
    if any(_FIELD.fullmatch(text) or _is_item(text) for text in texts):
        raise RefusedError("has a map or a list in a list")
    return [read_value(text) for text in texts]


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
        raise _TooLongError("is too long for a value on one line that is not JSON")
    return _read_list(text) if text.startswith("[") else _read_scalar(text)


def _read_scalar(text: str) -> JsonValue:
    if text.startswith("'"):
        return _read_single_quoted(text)
    if text.startswith('"'):
        return _read_double_quoted(text)
    if text.startswith(_REFUSED_STARTS) or text.startswith(("- ", "? ")):
        raise RefusedError("uses a part of YAML that is not read: write the value in double quotes")
    return read_plain(str(_COMMENT.sub("", text)).strip())


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
