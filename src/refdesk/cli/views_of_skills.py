"""Renders the history of skills for people, in plain text as wide as the terminal."""

from __future__ import annotations

import shutil
import sys
from datetime import date, timedelta
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from refdesk.cli.views_of_entries import tell_more, tell_none
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NARROW, WIDE = 40, 120
"""Columns: a narrower terminal is treated as this wide, a wider one is not filled."""

BAR = 20
ROOM_FOR_BARS = 70
MOST_CASES = 12
MOST_WEEKS = 26
MOST_CHANGES = 3


def render_history(history: Mapping[str, Any], width: int | None = None, encoding: str | None = None) -> str:
    """Return a skill's versions with how well they worked, the evidence for each step, and the cases.

    Args:
        history: The answer of `get_skill_history`.
        width: In columns; `None` is the terminal's.
        encoding: What the output can write; `None` is that of standard output.
    """
    width = max(NARROW, min(WIDE, width or shutil.get_terminal_size().columns))
    signs = _choose_signs(encoding or getattr(sys.stdout, "encoding", None) or "ascii")
    lines = ["## Versions", "", *_list_versions(history["versions"], width, signs)]
    lines += ["", "## Reports by week", "", *_list_weeks(history, width, signs)]
    lines += ["", "## Evidence", "", *_list_steps(history, width)]
    lines += ["", "## Conversations", "", *_list_cases(history["cases"], width)]
    for id in history["merged_from"]:
        lines += ["", f"Merged with {id}; refdesk skills unmerge {id} undoes it."]
    return _printable("\n".join(lines) + "\n")


def render_list(answer: Mapping[str, Any]) -> str:
    """Return a page of skills for people: two lines each, then which part of the whole it is, and the areas."""
    lines: list[str] = []
    for skill in answer["skills"]:
        area, times = skill["product_area"] or "no area", skill["times_used"]
        lines.append(f"{skill['skill_id']}  {skill['title']}")
        lines.append(
            f"  {area}; version {skill['version']} of {skill['updated_at'][:10]}; confidence "
            f"{round(skill['confidence'] * 100)} %; used {say_count(times, 'time')}"
        )
    first, last = answer["offset"] + 1, answer["offset"] + len(answer["skills"])
    lines.append(
        f"{first} to {last} of {answer['total']}" if answer["skills"] else tell_none("skills", answer["total"])
    )
    lines += tell_more(answer)
    if areas := ", ".join(f"{each['value']} {each['skills']}" for each in answer["product_areas"]):
        lines.append(f"By product area: {areas}")
    return "\n".join(_printable(line) for line in lines)


def _choose_signs(encoding: str) -> tuple[str, str, str]:
    """Return the characters of a bar: for the part that surely works, the part that may, and the rest."""
    try:
        "█▒░".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "#", "+", "."
    return "█", "▒", "░"


def _list_versions(versions: Sequence[Mapping[str, Any]], width: int, signs: tuple[str, str, str]) -> Iterator[str]:
    for version in versions:
        day = str(version["updated_at"])[:10]
        yield from _fold(f"Version {version['version']}, {version['kind']} {day} by {version['made_by']}", width, "")
        yield from _fold(_draw(version, width, signs), width, "  ")
        if version["verdict"]:
            yield from _fold(str(version["verdict"]), width, "  ")
        for change in version["changes"][:MOST_CHANGES]:
            yield from _fold(f"- {change}", width, "  ")
        if len(version["changes"]) > MOST_CHANGES:
            left = len(version["changes"]) - MOST_CHANGES
            yield from _fold(f"- and {left} more; refdesk skills history has all", width, "  ")


def _draw(version: Mapping[str, Any], width: int, signs: tuple[str, str, str]) -> str:
    """Return how a version worked: a bar up to its rate, solid up to what is certain, then the figures."""
    worked, failed = float(version["worked"]), float(version["failed"])
    if not worked + failed:
        return "no reports yet"
    said = f"{worked:g} of {worked + failed:g} worked, surely {version['least']:.0%} to {version['most']:.0%}"
    if width < ROOM_FOR_BARS:
        return said
    solid, to = (round(BAR * float(version[name])) for name in ("least", "rate"))
    sure, maybe, rest = signs
    return f"{sure * solid}{maybe * (to - solid)}{rest * (BAR - to)}  {said}"


def _list_weeks(history: Mapping[str, Any], width: int, signs: tuple[str, str, str]) -> Iterator[str]:
    """Yield what was reported for each version in each week, and where steps of an earlier version came back."""
    most = max((each["worked"] + each["failed"] for each in history["weeks"]), default=0.0)
    lines = [(each["week"], each["version"], _draw_week(each, most, width, signs)) for each in history["weeks"]]
    for version in history["versions"]:
        if version["kind"] == "rolled back":
            day = date.fromisoformat(str(version["updated_at"])[:10])
            monday = day - timedelta(days=day.weekday())
            lines.append((str(monday), version["version"], f"rolled back on {day}: the steps before are back"))
    lines.sort()
    if not lines:
        yield "No reports yet."
    if len(lines) > MOST_WEEKS:
        yield f"({len(lines) - MOST_WEEKS} before them; --json has all)"
    for monday, version, said in lines[-MOST_WEEKS:]:
        yield from _fold(f"{monday}  v{version:<3} {said}", width, "", keeps_blanks=True)


def _draw_week(week: Mapping[str, Any], most: float, width: int, signs: tuple[str, str, str]) -> str:
    """Return a bar for the week's reports, scaled to those of the fullest week, then the figures."""
    worked, failed = float(week["worked"]), float(week["failed"])
    said = f"{worked:g} worked, {failed:g} failed"
    if width < ROOM_FOR_BARS:
        return said
    whole = max(1, round(BAR * (worked + failed) / most))
    good = round(whole * worked / (worked + failed))
    return f"{signs[0] * good}{signs[2] * (whole - good)}{' ' * (BAR - whole)}  {said}"


def _list_steps(history: Mapping[str, Any], width: int) -> Iterator[str]:
    if not history["steps"]:
        yield "No steps: it was imported in its own words."
    for number, step in enumerate(history["steps"], start=1):
        yield from _fold(f"{number}. {step['do']}", width, "")
        yield from _fold(_tell_support(step), width, "   ")
    if history["seldom"]:
        yield from _fold(f"Seldom done, no step yet: {len(history['seldom'])}.", width, "")


def _tell_support(step: Mapping[str, Any]) -> str:
    if not step["cases"]:
        return f"{step['id'] or 'no id'}: written, not seen in a conversation"
    led_on = f", led on in {step['led_on']}" if step["led_on"] else ""
    return f"{step['id']}: in {step['support']} of {say_count(step['of'], 'conversation')}{led_on}"


def _list_cases(cases: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    if not cases:
        yield "None is kept."
    for case in cases[-MOST_CASES:]:
        parts = [str(case["at"])[:10], f"{case['turns']} turns", f"by {case['agent']}", case["outcome"]]
        said = ", ".join(part for part in parts if part)
        moved = f", came with {case['merged_from']}" if case["merged_from"] else ""
        yield from _fold(f"{case['id'][:8]}: {said}{moved}", width, "")
    if len(cases) > MOST_CASES:
        yield f"and {len(cases) - MOST_CASES} before them; --json has all"


def _fold(text: str, width: int, indent: str, *, keeps_blanks: bool = False) -> list[str]:
    return wrap(
        text if keeps_blanks else " ".join(text.split()), width, initial_indent=indent, subsequent_indent=f"{indent}  "
    )


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)
