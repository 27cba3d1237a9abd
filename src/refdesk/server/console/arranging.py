"""Arranges the answer of any operation for a page: a title, texts to read, facts, and lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

Fields: TypeAlias = "Mapping[str, Any]"

TITLES = ("title", "name", "subject")
TEXTS = ("summary", "problem", "description", "body", "content", "resolution", "answer")
"""Fields that are shown as texts, in this order; other fields are mostly facts."""

CAUTION = "caution"
LONG_CHARACTERS = 200

_WITHIN_STEP = re.compile(r"\n( +\*\*)")
_HEAD = re.compile(r"\A# [^\n]*\n+(?:Version [^\n]*\n+)?")


@dataclass(frozen=True, slots=True)
class Table:
    """Several things with the same fields.

    Attributes:
        columns: Names of fields.
        rows: The values of each thing.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class Arranged:
    """An answer for a page.

    Attributes:
        texts: What is read as Markdown, by field.
        facts: Short values, by field: text, numbers, or lists of them.
        tables: Lists of things, by field.
        parts: Things with fields of their own, by field.
        groups: Lists of things that themselves contain lists of things, by field.
        caution: What to heed before relying on it.
    """

    title: str
    texts: Mapping[str, str]
    facts: Mapping[str, object]
    tables: Mapping[str, Table]
    parts: Mapping[str, Arranged]
    groups: Mapping[str, Sequence[Arranged]]
    caution: str = ""


def find_text(thing: Fields, names: Sequence[str]) -> str:
    """Return the first of these fields that holds text."""
    found = (thing.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value.strip()), "")


def arrange(answer: Fields, title: str = "") -> Arranged:
    """Return an answer for a page; an answer that holds a single thing is shown as that thing."""
    thing = _unwrap(answer)
    heading = find_text(thing, TITLES) or title
    texts = {name: text for name in TEXTS if (text := find_text(thing, (name,)))}
    rest = {name: value for name, value in thing.items() if name not in (*texts, CAUTION) and value != heading}
    texts |= {name: value for name, value in rest.items() if isinstance(value, str) and _is_long(value)}
    facts: dict[str, object] = {}
    tables: dict[str, Table] = {}
    parts: dict[str, Arranged] = {}
    groups: dict[str, Sequence[Arranged]] = {}
    for name, value in rest.items():
        if name in texts or value is None or value in ("", [], {}):
            continue
        if isinstance(value, Mapping):
            parts[name] = arrange(cast("Fields", value))
        elif _is_list_of_things(value):
            things = cast("Sequence[Fields]", value)
            if any(_is_list_of_things(inner) for each in things for inner in each.values()):
                groups[name] = [arrange(each) for each in things]
            else:
                tables[name] = _tabulate(things)
        else:
            facts[name] = value
    return Arranged(heading, texts, facts, tables, parts, groups, find_text(thing, (CAUTION,)))


def _unwrap(answer: Fields) -> Fields:
    """Return the one thing that an answer is about: `{"article": {…}}`, or a search by id that found one."""
    things = [cast("Fields", value) for value in answer.values() if isinstance(value, Mapping)]
    if len(answer) == len(things) == 1:
        return things[0]
    results = answer.get("results")
    if _is_list_of_things(results) and len(cast("Sequence[Fields]", results)) == 1:
        return cast("Sequence[Fields]", results)[0]
    return answer


def _is_long(text: str) -> bool:
    return len(text) > LONG_CHARACTERS or "\n" in text


def _is_list_of_things(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(cast("list[object]", value))
        and all(isinstance(each, Mapping) for each in cast("list[object]", value))
    )


def _tabulate(things: Sequence[Fields]) -> Table:
    columns = list(dict.fromkeys(name for thing in things for name in thing))
    return Table(columns, [[thing.get(name, "") for name in columns] for thing in things])


def strip_head(resolution: str) -> str:
    """Return a playbook without its title and its status line, which its page shows elsewhere."""
    return _HEAD.sub("", resolution)


def break_lines(playbook: str) -> str:
    """Return a playbook whose steps keep their lines when it is read as Markdown."""
    return _WITHIN_STEP.sub("  \n\\1", playbook)
