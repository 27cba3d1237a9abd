"""Edits of other programs' configuration files that leave every other byte as it was: JSON with comments, and TOML.

An edit is made in the text and then checked: the file must parse to what it was, but for the one entry.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from refdesk import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

_SKIPPED = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"[^\s,\]}/]+")
_HEADER = re.compile(r"^[ \t]*\[\[?([^\]\n]+)\]\]?[ \t]*(?:#.*)?$", re.MULTILINE)
_BY_HAND = "its {} is written in a way that is best edited by hand"
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class UnreadableFileError(errors.InvalidInputError):
    """A configuration file is not what its program reads, or cannot be edited without touching the rest."""


@dataclass(slots=True)
class _Member:
    """A member of an object: where it begins, where its value begins and ends."""

    start: int
    value_start: int
    end: int
    node: _Node


@dataclass(slots=True)
class _Node:
    """A value, where it begins, and its members where it is an object."""

    value: Any
    start: int
    members: dict[str, _Member] = field(default_factory=dict[str, _Member])


class _Reader:
    """Reads JSON with comments and trailing commas, keeping where things are."""

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
    """Return the object in JSON with comments; an empty text holds an empty one.

    Raises:
        UnreadableFileError: It is none.
    """
    return cast("dict[str, Any]", _read_node(text).value)


def _read_node(text: str) -> _Node:
    try:
        node = _Reader(text if text.strip() else "{}").read()
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError(f"it is not valid JSON ({error})") from None
    if not isinstance(node.value, dict):
        raise UnreadableFileError("it is JSON, but no object")
    return node


def edit_json(text: str, section: str, name: str, entry: Mapping[str, Any] | None) -> str:
    """Return the text with an entry of a section put, replaced, or with `None` removed.

    Raises:
        UnreadableFileError: It is no JSON object, or something else stands where the section would.
    """
    before = read_json(text)
    if not isinstance(before.get(section, {}), dict):
        raise UnreadableFileError(f'its "{section}" is no object')
    edited = _edit_json(text if text.strip() else "{}\n", section, name, entry)
    return _check(edited, read_json(edited), before, section, name, entry)


def _edit_json(text: str, section: str, name: str, entry: Mapping[str, Any] | None) -> str:
    root = _read_node(text)
    step = _find_step(text, root)
    held = root.members.get(section)
    if held is None:
        return text if entry is None else _insert(text, root, section, {name: entry}, step, 1)
    member = held.node.members.get(name)
    if entry is None:
        return text if member is None else _cut(text, member)
    if member is None:
        return _insert(text, held.node, name, entry, step, 2)
    return text[: member.value_start] + _dump(entry, step, 2) + text[member.end :]


def _find_step(text: str, root: _Node) -> str:
    """Return how the file indents: by the blanks before its first member."""
    for member in root.members.values():
        line = text[text.rfind("\n", 0, member.start) + 1 : member.start]
        if line and not line.strip():
            return line
    return "  "


def _insert(text: str, into: _Node, key: str, value: object, step: str, depth: int) -> str:
    """Put a member first: what follows keeps its commas and comments."""
    written = f"\n{step * depth}{json.dumps(key)}: {_dump(value, step, depth)}"
    place = into.start + 1
    if into.members:
        return text[:place] + written + "," + text[place:]
    rest = text[place:]
    # An empty object may hold comments, which stay.
    return text[:place] + written + ("" if rest.lstrip(" \t").startswith("\n") else f"\n{step * (depth - 1)}") + rest


def _cut(text: str, member: _Member) -> str:
    """Take a member out, and one comma with it."""
    start, end = member.start, member.end
    following = _SKIPPED.match(text, end)
    after = end if following is None else following.end()
    if text[after : after + 1] == ",":
        end = after + 1
    else:
        before = text[:start].rstrip()
        start = len(before) - 1 if before.endswith(",") else start
    line = text.rfind("\n", 0, start)
    # A line of its own goes whole; its break stays where a comment before needs it, and anything follows.
    if line >= 0 and not text[line:start].strip() and text[end : end + 1] in ("\r", "\n"):
        start = line
    return text[:start] + text[end:]


def _dump(value: object, step: str, depth: int) -> str:
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", f"\n{step * depth}")


def read_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        UnreadableFileError: It is none.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableFileError(f"it is not valid TOML ({error})") from None


def edit_toml(text: str, section: str, name: str, entry: Mapping[str, Any] | None) -> str:
    """Return the text with a table of a section put, replaced, or with `None` removed.

    Raises:
        UnreadableFileError: It is no TOML, or the table is written in a way that cannot be edited alone.
    """
    before = read_toml(text)
    if not isinstance(before.get(section, {}), dict):
        raise UnreadableFileError(f"its [{section}] is no table")
    edited = _cut_tables(text, section, name)
    if entry is not None:
        edited = edited.rstrip("\n") + "\n" * 2 * bool(edited.strip()) + _dump_table([section, name], entry)
    try:
        after = read_toml(edited)
    except UnreadableFileError:
        raise UnreadableFileError(_BY_HAND.format(section)) from None
    return _check(edited, after, before, section, name, entry)


def _cut_tables(text: str, section: str, name: str) -> str:
    """Take out the table of an entry and those below it, up to the next header."""
    headers = list(_HEADER.finditer(text))
    ends = [*(header.start() for header in headers), len(text)][1:]
    for header, end in reversed(list(zip(headers, ends, strict=False))):
        if _split_key(header.group(1))[:2] == [section, name]:
            text = text[: header.start()] + text[end:]
    return text


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
