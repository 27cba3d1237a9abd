"""Renders search results for people: fitted to the terminal, plain text when piped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WIDEST = 110
"""Most columns used: longer lines are hard to read."""

PIPED_WIDTH = 100
SNIPPET_LINES = 3
INDENT = 5
BETWEEN = " · "

_LISTS = ("results", "matches", "articles")
_DATES = ("modified", "createdAt", "updated_at", "last_published", "freshness")
_FACTS = ("toolset", "id", "skill_id", "article_type", "status", *_DATES, "author", "source")
_STATUSES = {
    "late": "was late",
    "failed": "failed",
    "forbidden": "was not asked",
    "left_out": "was left out",
    "not_served": "is not served",
}
_BODIES = ("snippet", "description", "problem", "summary", "resolution")
_MONTH = re.compile(r"^(\d{4}-\d\d)-01$")
_DAY = re.compile(r"^\d{4}-\d\d-\d\d(?=T)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"(?m)^\s*(?:#+|[*-]|\d+\.)\s+|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")


def show(answer: Mapping[str, Any], query: str) -> None:
    """Print the results of a search, best first, followed by what to know about them."""
    console = Console(highlight=False, soft_wrap=False)
    console.width = min(console.width, WIDEST) if console.is_terminal else PIPED_WIDTH
    words: list[str] = re.findall(r"\w{3,}", query)
    with console.capture() as captured:
        _show_one(console, answer, words)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _show_one(console: Console, answer: Mapping[str, Any], words: list[str]) -> None:
    offset = int(answer.get("offset", 0))
    hits: list[Mapping[str, Any]] = next(answer[name] for name in _LISTS if name in answer)
    if answer.get("notice"):
        console.print(Text(_one_line(answer["notice"]), style="bold"))
        console.print()
    for number, hit in enumerate(hits, offset + 1):
        _show_hit(console, number, hit, words)
    console.print(Text(_summary(len(hits), offset, answer.get("total")), style="dim"))
    for unknown in answer.get("unknownFilterValues", []):
        near = " or ".join(unknown["didYouMean"])
        console.print(
            Text(
                f"Nothing has {_one_line(unknown['value'])} as a value of {unknown['filter']}."
                + (f" Try {near}." if near else "")
            )
        )
    for note in (*answer.get("notes", []), *_list_silences(answer.get("coverage", []))):
        console.print(Text(_one_line(note)))


def _list_silences(coverage: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what there is to know about each toolset that was asked."""
    for line in coverage:
        if line.get("note"):
            name = line["toolset"]
            words = "" if line["status"] == "answered" else f" {_STATUSES.get(line['status'], line['status'])}"
            yield f"{name}{words}: {line['note']}"


def _show_hit(console: Console, number: int, hit: Mapping[str, Any], words: list[str]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(width=3, justify="right", style="dim")
    grid.add_column()
    title = Text(_one_line(str(hit.get("title", ""))), style="bold")
    body = Text(_body(hit, (console.width - INDENT) * SNIPPET_LINES))
    for text in (title, body):
        text.highlight_words(words, style="bold yellow", case_sensitive=False)
    grid.add_row(str(number), title)
    console.print(grid)
    for line in fold_facts(list(_facts(hit)), console.width - INDENT):
        console.print(Text(" " * INDENT + line, style="cyan"), soft_wrap=True)
    if body:
        console.print(Padding(body, (0, 0, 0, INDENT)))
    console.print()


def fold_facts(facts: Sequence[str], width: int) -> list[str]:
    """Return facts in lines of at most this width, without breaking any: an id is of use only if it is whole."""
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + len(BETWEEN) + len(fact) <= width:
            lines[-1] += f"{BETWEEN}{fact}"
        else:
            lines.append(fact)
    return lines


def _facts(hit: Mapping[str, Any]) -> Iterator[str]:
    for key in _FACTS:
        if hit.get(key) is not None:
            day = _DAY.match(str(hit[key]))
            yield day.group() if day else str(hit[key])
    if hit.get("match"):
        yield f"{hit['match']} match"
    if hit.get("confidence") is not None:
        yield f"confidence {_percent(hit['confidence'])} %"
    for availability in hit.get("availabilities", []):
        yield " ".join(_MONTH.sub(r"\1", str(value)) for value in availability.values() if value is not None)
    if hit.get("tags"):
        yield ", ".join(hit["tags"])


def _percent(confidence: float) -> int:
    """Return a confidence in percent: entries have whole numbers, skills a fraction."""
    return confidence if isinstance(confidence, int) else round(confidence * 100)


def _body(hit: Mapping[str, Any], length: int) -> str:
    body = next((str(hit[key]) for key in _BODIES if hit.get(key)), "").removeprefix(f"# {hit.get('title')}\n")
    # In three lines, the steps say more than an introduction that repeats the title.
    body = body.partition("## Steps")[2] or body
    text = _one_line(_MARKS.sub("", _LINK.sub(r"\1", body)))
    return text if len(text) <= length else text[: length - 1].rsplit(" ", 1)[0] + "…"


def _one_line(text: str) -> str:
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def _summary(shown: int, offset: int, total: object) -> str:
    if not shown:
        return "Nothing found." if not offset else "Nothing further."
    return f"{offset + 1} to {offset + shown}" + (f" of {total}" if total is not None else "")
