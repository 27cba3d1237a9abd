"""Reads YAML of unknown origin: takes the events of PyYAML's parser one by one, and gives up at the first bad sign.

Scalars stay text, including dates and `yes`: what a note means by them is not for YAML to decide. Only plain integers
and nulls are converted. Anchors, aliases, tags and repeated keys are refused, and depth, values and characters are
limited, so that nothing can grow beyond what was read and nothing but text, integers, nulls, lists and maps is ever
made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import regex
import yaml

from refdesk.kit.strict_values import RefusedError, check_value

if TYPE_CHECKING:
    from refdesk.model import JsonValue

MOST_CHARACTERS = 65_536
MOST_VALUES = 10_000
MOST_DEPTH = 20

_INTEGER = regex.compile(r"-?(0|[1-9]\d{0,399})")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


def parse_yaml(text: str) -> JsonValue:
    """Return the value of the only document in a YAML text.

    Raises:
        RefusedError: It is not YAML, uses parts of YAML that are not read, or exceeds a limit.
    """
    if len(text) > MOST_CHARACTERS:
        raise RefusedError(f"is longer than the {MOST_CHARACTERS} characters of YAML that are read")
    try:
        events = cast("Iterator[yaml.Event]", yaml.parse(text, yaml.BaseLoader))  # pyright: ignore[reportUnknownMemberType]
        value = _Builder().build(events)
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, RefusedError):
            raise
        problem = getattr(error, "problem", None) or "a character that YAML does not allow"
        raise RefusedError(f"is not YAML: {problem}") from None
    check_value(value)
    return value


def read_plain(text: str) -> JsonValue:
    """Return the value of a scalar without quotes: an integer without leading zeros, null, or its text."""
    if _INTEGER.fullmatch(text):
        return int(text)
    return None if text in _NULLS else text


class _Builder:
    """Builds the value without recursion: the open lists and maps are kept on a stack."""

    def __init__(self) -> None:
        self._open: list[list[JsonValue]] = [[]]
        self._count = 0

    def build(self, events: Iterator[yaml.Event]) -> JsonValue:
        documents = 0
        for event in events:
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                raise RefusedError("holds more than one YAML document")
            self._take(event)
        [*_, value] = self._open[0] or [None]
        return value

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.NodeEvent):
            self._check(event)
        if isinstance(event, yaml.ScalarEvent):
            self._open[-1].append(_read_scalar(event))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open.append([])
        elif isinstance(event, yaml.SequenceEndEvent):
            items = self._open.pop()
            self._open[-1].append(items)
        elif isinstance(event, yaml.MappingEndEvent):
            items = self._open.pop()
            self._open[-1].append(_pair(items))

    def _check(self, event: yaml.NodeEvent) -> None:
        self._count += 1
        if self._count > MOST_VALUES:
            raise RefusedError(f"holds more than {MOST_VALUES} values")
        if len(self._open) > MOST_DEPTH:
            raise RefusedError("is nested too deep")
        if isinstance(event, yaml.AliasEvent) or cast("str | None", event.anchor) is not None:
            raise RefusedError("uses an anchor or an alias of YAML, which are not read")
        if getattr(event, "tag", None) is not None:
            raise RefusedError("uses a tag of YAML, which is not read")


def _read_scalar(event: yaml.ScalarEvent) -> JsonValue:
    text = cast("str", event.value)
    return read_plain(text) if not event.style else text


def _pair(items: list[JsonValue]) -> dict[str, JsonValue]:
    """Return the map of alternating keys and values; a key that is not a text is converted to one."""
    pairs: dict[str, JsonValue] = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        if isinstance(key, list | dict):
            raise RefusedError("has a list or a map for a key")
        name = "null" if key is None else str(key)
        if name in pairs:
            raise RefusedError(f"repeats {name}")
        pairs[name] = value
    return pairs
