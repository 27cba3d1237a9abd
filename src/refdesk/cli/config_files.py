"""Edits of other programs' configuration files that leave every other byte as it was: JSON with comments, and TOML.

An edit is made in the text and then checked: apart from the one entry, the file must parse to what it did before.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from refdesk import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SKIPPED = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"[^\s,\]}/]+")
_HEADER = re.compile(r"^[ \t]*\[\[?([^\]\n]+)\]\]?[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_MARK = "\ufeff"
"""The byte order mark that some editors put at the beginning of a file."""

_BY_HAND = "its {} is written in a way that is best edited by hand"
_TRAILING = re.compile(r"(?<=\n)(?:[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z))+\Z")
"""Empty lines and comments at the end of a text."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class UnreadableFileError(errors.InvalidInputError):
    """A configuration file is not in the format that its program reads, or an entry cannot be edited on its own."""


@dataclass(slots=True)
class _Member:
    """A member of an object: where it begins, and where its value begins and ends."""

    start: int
    value_start: int
    end: int
    node: _Node


@dataclass(slots=True)
class _Node:
    """A value: where it begins, and its members if it is an object."""

    value: Any
    start: int
    members: dict[str, _Member] = field(default_factory=dict[str, _Member])


@dataclass(frozen=True, slots=True)
class _Style:
    """How a file is formatted: its indentation step and its line breaks."""

    step: str
    line_break: str


class _Reader:
    """Reads JSON with comments and trailing commas, and keeps the positions of values."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def read(self) -> _Node:
        node = self._read_value()
        self._skip()
        if self.position < len(self.text):
            raise ValueError("text after the value")
        return node

    def _skip(self) -> None:
        found = _SKIPPED.match(self.text, self.position)
        self.position = self.position if found is None else found.end()

    def _peek(self) -> str:
        self._skip()
        return self.text[self.position : self.position + 1]

    def _take(self, character: str) -> None:
        if self._peek() != character:
            raise ValueError(f"{character} expected at {self.position}")
        self.position += 1

    def _read_value(self) -> _Node:
        first = self._peek()
        start = self.position
        if first == "{":
            return self._read_object(start)
        if first == "[":
            return self._read_array(start)
        found = (_STRING if first == '"' else _LITERAL).match(self.text, self.position)
        if found is None:
            raise ValueError(f"a value expected at {self.position}")
        self.position = found.end()
        return _Node(json.loads(found.group()), start)

    def _read_object(self, start: int) -> _Node:
        node = _Node({}, start)
        self._take("{")
        while self._peek() != "}":
            key_start = self.position
            if self._peek() != '"':
                raise ValueError(f"a name expected at {key_start}")
            key = self._read_value().value
            self._take(":")
            value = self._read_value()
            node.members[key] = _Member(key_start, value.start, self.position, value)
            node.value[key] = value.value
            if self._peek() != "}":
                self._take(",")
        self._take("}")
        return node

    def _read_array(self, start: int) -> _Node:
        values: list[Any] = []
        self._take("[")
        while self._peek() != "]":
            values.append(self._read_value().value)
            if self._peek() != "]":
                self._take(",")
        self._take("]")
        return _Node(values, start)


def read_json(text: str) -> dict[str, Any]:
    """Return the object in a text of JSON with comments; an empty text yields an empty object.

    Raises:
        UnreadableFileError: The text holds no JSON object.
    """
    return cast("dict[str, Any]", _read_node(text).value)


def _read_node(text: str) -> _Node:
    rest = _split_mark(text)[1]
    try:
        node = _Reader(text if rest.strip() else "{}").read()
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError(f"it is not valid JSON ({error})") from None
    if not isinstance(node.value, dict):
        raise UnreadableFileError("it is JSON, but no object")
    return node


def edit_json(text: str, section: str, name: str, entry: Mapping[str, Any] | None) -> str:
    """Return the text with an entry of a section added or replaced; with `None`, removed.

    Raises:
        UnreadableFileError: The text is not a JSON object, or the section is something other than an object.
    """
    before = read_json(text)
    if not isinstance(before.get(section, {}), dict):
        raise UnreadableFileError(f'its "{section}" is no object')
    mark, rest = _split_mark(text)
    edited = mark + _edit_json(rest if rest.strip() else "{}\n", section, name, entry)
    return _check(edited, read_json(edited), before, section, name, entry)


def _split_mark(text: str) -> tuple[str, str]:
    return (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)


def _find_break(text: str) -> str:
    """Return the line break that ends the file's first line."""
    first = text.find("\n")
    return "\r\n" if text[max(0, first - 1) : first] == "\r" else "\n"


def _edit_json(text: str, section: str, name: str, entry: Mapping[str, Any] | None) -> str:
    root = _read_node(text)
    style = _Style(_find_step(text, root), _find_break(text))
    held = root.members.get(section)
    if held is None:
        return text if entry is None else _insert(text, root, section, {name: entry}, style, 1)
    member = held.node.members.get(name)
    if entry is None:
        return text if member is None else _cut(text, member)
    if member is None:
        return _insert(text, held.node, name, entry, style, 2)
    return text[: member.value_start] + _dump(entry, style, 2) + text[member.end :]


def _find_step(text: str, root: _Node) -> str:
    """Return the indentation step of the file: the blanks before its first member."""
    for member in root.members.values():
        line = text[text.rfind("\n", 0, member.start) + 1 : member.start]
        if line and not line.strip():
            return line
    return "  "


def _insert(text: str, into: _Node, key: str, value: object, style: _Style, depth: int) -> str:
    """Insert a member as the first, so that those after it keep their commas and comments."""
    written = f"{style.line_break}{style.step * depth}{json.dumps(key)}: {_dump(value, style, depth)}"
    place = into.start + 1
    if into.members:
        return text[:place] + written + "," + text[place:]
    rest = text[place:]
    # An object without members may hold comments, which stay.
    ends = rest.lstrip(" \t").startswith(("\n", "\r\n"))
    return text[:place] + written + ("" if ends else f"{style.line_break}{style.step * (depth - 1)}") + rest


def _cut(text: str, member: _Member) -> str:
    """Remove a member, and one comma with it."""
    start, end = member.start, member.end
    following = _SKIPPED.match(text, end)
    after = end if following is None else following.end()
    if text[after : after + 1] == ",":
        end = after + 1
    else:
        before = text[:start].rstrip()
        start = len(before) - 1 if before.endswith(",") else start
    line = text.rfind("\n", 0, start)
    # A member alone on its line takes the line along. If more follows it there, the break before stays: it may end a
    # comment.
    if line >= 0 and not text[line:start].strip() and text[end : end + 1] in ("\r", "\n"):
        start = line - 1 if text[:line].endswith("\r") else line
    return text[:start] + text[end:]


def _dump(value: object, style: _Style, depth: int) -> str:
    written = json.dumps(value, indent=style.step, ensure_ascii=False)
    return written.replace("\n", f"{style.line_break}{style.step * depth}")


def read_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        UnreadableFileError: The text is not valid TOML.
    """
    import tomllib

    try:
        return tomllib.loads(_split_mark(text)[1])
    except tomllib.TOMLDecodeError as error:
        raise UnreadableFileError(f"it is not valid TOML ({error})") from None


def edit_toml(text: str, section: str, name: str, entry: Mapping[str, Any] | None) -> str:
    """Return the text with a table of a section added or replaced; with `None`, removed.

    Raises:
        UnreadableFileError: The text is not valid TOML, or the table is written in a way that cannot be edited alone.
    """
    before = read_toml(text)
    if not isinstance(before.get(section, {}), dict):
        raise UnreadableFileError(f"its [{section}] is no table")
    mark, rest = _split_mark(text)
    written = None if entry is None else _dump_table([section, name], entry)
    edited = mark + _put_table(rest, section, name, written, _find_break(text))
    try:
        after = read_toml(edited)
    except UnreadableFileError:
        raise UnreadableFileError(_BY_HAND.format(section)) from None
    return _check(edited, after, before, section, name, entry)


def _put_table(text: str, section: str, name: str, written: str | None, line_break: str) -> str:
    """Replace the tables of an entry by the written one, append it where there are none, or remove them without one."""
    own = list(_find_tables(text, section, name))
    for start, end in reversed(own[1:]):
        text = _take_out(text, start, end)
    table = written.replace("\n", line_break) if written is not None else ""
    if own:
        start, end = own[0]
        return text[:start] + table + text[end:] if table else _take_out(text, start, end)
    if not table or not text:
        return text + table
    gap = "" if text.endswith(("\n\n", "\n\r\n")) else line_break if text.endswith("\n") else line_break * 2
    return text + gap + table


def _find_tables(text: str, section: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield where the tables of an entry begin and end. Adjacent tables count as one; comments just before the next
    header belong to that header."""
    headers = list(_HEADER.finditer(text))
    ends = [*(header.start() for header in headers), len(text)][1:]
    start: int | None = None
    end = 0
    for header, next_start in zip(headers, ends, strict=True):
        if _split_key(header.group(1))[:2] == [section, name]:
            start = header.start() if start is None else start
            end = header.start() + len(_TRAILING.sub("", text[header.start() : next_start]))
        elif start is not None:
            yield start, end
            start = None
    if start is not None:
        yield start, end


def _take_out(text: str, start: int, end: int) -> str:
    """Remove a part, and the empty line before it if an empty line or nothing follows."""
    before, after = text[:start], text[end:]
    if before.endswith(("\n\n", "\n\r\n")) and (not after or after.startswith(("\n", "\r\n"))):
        before = before.removesuffix("\n").removesuffix("\r")
    return before + after


def _split_key(key: str) -> list[str]:
    parts = re.findall(r'"[^"]*"|\'[^\']*\'|[^.\s]+', key)
    return [part.strip("\"'") for part in parts]


def _dump_table(path: list[str], table: Mapping[str, Any]) -> str:
    header = ".".join(part if _BARE.fullmatch(part) else json.dumps(part) for part in path)
    lines = [f"[{header}]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in table.items() if not isinstance(value, dict)]
    tables = {key: cast("dict[str, Any]", value) for key, value in table.items() if isinstance(value, dict)}
    below = [_dump_table([*path, key], value) for key, value in tables.items()]
    return "\n".join(lines) + "\n" + "".join(f"\n{each}" for each in below)


def _check(
    edited: str,
    after: Mapping[str, Any],
    before: Mapping[str, Any],
    section: str,
    name: str,
    entry: Mapping[str, Any] | None,
) -> str:
    entries = {**before.get(section, {}), name: entry}
    if entry is None:
        del entries[name]
    wanted = {**before, section: entries}
    if not entries and not after.get(section):
        wanted, after = _without(wanted, section), _without(after, section)
    if wanted != after:
        raise UnreadableFileError(_BY_HAND.format(section))
    return edited


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}
