"""Reads days and periods from a text: "before June 2027", "since last month", "by the end of the year".

Only plain statements are read: a period by its preposition and its name. If anything beside it may change its meaning,
as in "two weeks before June 2027" or "in 2026 and 2027", nothing is read.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *(("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",), ("june", "jun")),
            *(("july", "jul"), ("august", "aug"), ("september", "sept", "sep"), ("october", "oct")),
            *(("november", "nov"), ("december", "dec")),
        ),
        start=1,
    )
    for name in names
}
_UNITS = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}
_NUMBERS = {
    "a": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "six": 6,
    "twelve": 12,
    "few": 3,
    "couple of": 2,
}

Side: TypeAlias = Literal["past", "future", "nearest"]


@dataclass(frozen=True, slots=True)
class Period:
    """The first and the last day, both inclusive; `None` is no bound."""

    since: date | None = None
    until: date | None = None


_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_YEAR = r"(?:19|20)\d\d"
_DATE = (
    rf"(?:{_YEAR}-\d\d?-\d\d?|{_YEAR}-\d\d?"
    rf"|(?:{_MONTH})\.? \d\d?(?:st|nd|rd|th)?,? {_YEAR}|\d\d?(?:st|nd|rd|th)? (?:of )?(?:{_MONTH})\.?,? {_YEAR}"
    rf"|(?:{_MONTH})\.?,? (?:of )?{_YEAR}|q[1-4] (?:of )?{_YEAR}|{_YEAR}(?:[ -]?q[1-4])?|(?:{_MONTH})\b)"
)
_UNITS_NAMED = rf"(?:{'|'.join(_UNITS)})s?"
_COUNT = rf"(?:\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_UNIT = "(?:week|month|quarter|year)"
_RELATIVE = rf"(?:this|current|last|previous|next|coming) {_UNIT}"
_NAMED = rf"(?:{_DATE}|(?:the )?{_RELATIVE}|today|yesterday|tomorrow|now)"
_POINT = rf"(?:(?:the )?(?:end|beginning|start) of (?:{_NAMED}|(?:the )?{_UNIT})|{_NAMED})"

_WITHIN = r"(?:in|during|of|for|on|within|throughout)"
_DIRECTED = r"(?:since|after|before|until|till)"
_SAID_OF = r"news|(?:announcement|update|change|retirement|preview|feature|release|deprecation)s?|launch(?:es)?"
_TURNS_WHAT_FOLLOWS = re.compile(
    rf"\b(?:{_DIRECTED}|by|to|than|through|past|beyond|and|or|around|circa|early|late|mid|half|vs\.?|versus|like|with|as"
    r"|(?:hour|day|week|month|quarter|year)s?)[\s,-]*$",
    re.IGNORECASE,
)
_REACHES_FURTHER = re.compile(rf"\b{_DIRECTED}(?: \S+){{1,2}} ?$", re.IGNORECASE)
"""A word of direction that refers to something else than the date: "since Ignite in 2025"."""

_PART_OF = re.compile(rf"(?<!\S)(?!(?:{_SAID_OF}) of\b)\S+ of (?:the )?$", re.IGNORECASE)
_TURNS_WHAT_PRECEDES = re.compile(
    r"\s*[-–—/&+]\s*\w|\.\d|[\s,]+\d|\s+(?:of|ago|onwards?|or so|at the (?:earliest|latest))\b"
    r"|(?:,|,?\s(?:and|or|to|through|till|until|vs\.?|versus|but))\s"
    rf"(?:{_POINT}|(?:the )?(?:this|next|last|previous)|later|earlier|after|before|beyond|newer|older|up)(?!\w)",
    re.IGNORECASE,
)

Span: TypeAlias = tuple[date, date]
"""The first and the last day. The edge of a period contains no day: its last day is the one before its first."""


@cache
def _compile_periods() -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Period | None]], ...]:
    found = (
        (rf"\b(?:between|from) ({_POINT}) (?:and|to|until|till|through) ({_POINT})(?!\w)", _read_between),
        (
            r"\b((?:in|on) or before|before|prior to|earlier than|(?:up )?until|till|by|not? later than|up to|through)"
            rf" ({_POINT})(?: at the latest)?(?!\w)",
            _read_before,
        ),
        (
            r"\b((?:in|on) or after|after|later than|since|as of|from|starting(?: from| in| on)?) "
            rf"({_POINT})( onwards?| on(?=\W*$))?(?!\w)",
            _read_since,
        ),
        (rf"\b{_WITHIN} ({_DATE})(?!\w)", _read_within),
        (
            rf"\b(?:in |during |over |within )?(?:the )?(last|past|previous|next|coming) ({_COUNT})"
            rf" ({_UNITS_NAMED})(?!\w)",
            _read_count,
        ),
        (r"\b(?:in|during|over|within) the (last|next|coming) ()(day|week|month|year)(?!\w)", _read_count),
        (r"\b(?:(?:in|during|over|within) )?(?:the )?(past) ()(day|week|month|quarter|year)(?!\w)", _read_count),
        (rf"\b(?:in |during )?(?:(later|earlier) )?(?:the )?({_RELATIVE})(?!\w)", _read_relative),
        (r"\b(today|yesterday|tomorrow)(?!\w)", _read_day),
    )
    return tuple((re.compile(pattern, re.IGNORECASE), read) for pattern, read in found)


def take_period(plain: str, text: str, today: date) -> tuple[Period | None, str]:
    """Return the only period that a text names, if there is one, and the text without its words.

    Args:
        plain: The text, of the same length, with parts that are never read blanked out.
        text: The text as written.
        today: The present day.
    """
    found: list[tuple[Period | None, tuple[int, int]]] = []
    for pattern, read in _compile_periods():
        for match in pattern.finditer(plain):
            if not any(start < match.end() and match.start() < end for _, (start, end) in found):
                period = None if _is_turned(match, is_directed=read in _DIRECTED_READERS) else read(match, today)
                found.append((period, match.span()))
    if len(found) != 1 or found[0][0] is None:
        return None, text
    [(period, (start, end))] = found
    return period, f"{text[:start]} {text[end:]}"


def _is_turned(match: re.Match[str], *, is_directed: bool) -> bool:
    """Return whether words beside a period may change its meaning."""
    before, said, after = match.string[: match.start()], match[0].casefold(), match.string[match.end() :]
    if _TURNS_WHAT_FOLLOWS.search(before) or _TURNS_WHAT_PRECEDES.match(after):
        return True
    if _PART_OF.search(f"{before}of " if said.startswith("of ") else before):
        return True
    return bool(re.match(r"['’]s\b", after)) if is_directed else bool(_REACHES_FURTHER.search(before))


def find_days(text: str) -> list[date]:
    """Return the days that a text names in full, such as "August 30, 2027", each once, in order."""
    found = (_read_date(match[0], date.min) for match in _get_day_pattern().finditer(text))
    return list(dict.fromkeys(read[0] for read in found if read is not None and read[0] == read[1]))


@cache
def _get_day_pattern() -> re.Pattern[str]:
    day = r"\d\d?(?:st|nd|rd|th)?"
    month = rf"(?:{_MONTH})\.?"
    forms = rf"{month} {day} ?,? ?{_YEAR}|{day} (?:of )?{month},? {_YEAR}|{_YEAR}-\d\d-\d\d"
    return re.compile(rf"(?<!\w)(?:{forms})(?!\w)", re.IGNORECASE)


def _read_between(match: re.Match[str], today: date) -> Period | None:
    last = _read_span(match[2], today)
    first = _read_span(match[1], today, "past", near=last[1] if last else today)
    return Period(first[0], last[1]) if first and last and first[0] <= last[1] else None


def _read_before(match: re.Match[str], today: date) -> Period | None:
    """The words "by" and "until" include the date; "before" does not."""
    span = _read_span(match[2], today, "future")
    if span is None:
        return None
    is_included = match[1].casefold() not in {"before", "prior to", "earlier than"}
    return Period(until=span[1] if is_included else span[0] - timedelta(days=1))


def _read_since(match: re.Match[str], today: date) -> Period | None:
    """From a date means that date and all later ones, but "from last week" means that week only."""
    said, point = match[1].casefold(), match[2].casefold().removeprefix("the ")
    span = _read_span(match[2], today, "past")
    if span is None or (said == "as of" and point in {"today", "now"}):
        return None
    if said == "from" and not match[3] and point.split()[0] in {"this", "current", "last", "previous", "yesterday"}:
        return Period(*span)
    return Period(since=span[1] + timedelta(days=1) if said in {"after", "later than"} else span[0])


def _read_within(match: re.Match[str], today: date) -> Period | None:
    span = _read_date(match[1], today)
    return Period(*span) if span else None


def _read_relative(match: re.Match[str], today: date) -> Period | None:
    part, (first, last) = (match[1] or "").casefold(), _get_relative(match[2], today)
    if part and not first <= today <= last:
        return None
    return Period(today if part == "later" else first, today if part == "earlier" else last)


def _read_count(match: re.Match[str], today: date) -> Period | None:
    said = match[2].casefold()
    count = _NUMBERS.get(said or "one") or int(said)
    days = timedelta(days=count * _UNITS[match[3].casefold().removesuffix("s")])
    is_ahead = match[1].casefold() in {"next", "coming"}
    return Period(today, today + days) if is_ahead else Period(today - days, today)


def _read_day(match: re.Match[str], today: date) -> Period | None:
    day = _get_day(match[1], today)
    return Period(day, day)


_DIRECTED_READERS = (_read_between, _read_before, _read_since)


def _read_span(text: str, today: date, side: Side = "nearest", *, near: date | None = None) -> Span | None:
    """Return the days that a date or name means; a month without a year is the nearest on that side of `near`, or of
    today."""
    said = re.sub(r"^the ", "", text.casefold())
    if edge := re.match(r"(end|beginning|start) of (?:the )?", said):
        named = said[edge.end() :]
        span = _read_span(f"this {named}" if named in _UNITS else named, today, side, near=near)
        if span is None:
            return None
        day = span[1] + timedelta(days=1) if edge[1] == "end" else span[0]
        return day, day - timedelta(days=1)
    if said in {"today", "yesterday", "tomorrow", "now"}:
        day = _get_day(said, today)
        return day, day
    if re.fullmatch(_RELATIVE, said):
        return _get_relative(said, today)
    return _read_date(text, near or today, side)


def _get_day(said: str, today: date) -> date:
    return today + timedelta(days={"yesterday": -1, "tomorrow": 1}.get(said.casefold(), 0))


def _get_relative(said: str, today: date) -> Span:
    """Return the days of a period relative to today, such as "last month"."""
    which, unit = said.casefold().split()
    step = {"this": 0, "current": 0, "next": 1, "coming": 1}.get(which, -1)
    match unit:
        case "week":
            first = today - timedelta(days=today.weekday()) + timedelta(weeks=step)
            return first, first + timedelta(days=6)
        case "month":
            return _get_months(today.year * 12 + today.month - 1 + step, 1)
        case "quarter":
            return _get_months((today.year * 4 + (today.month - 1) // 3 + step) * 3, 3)
        case _:
            return _get_months((today.year + step) * 12, 12)


def _read_date(text: str, today: date, side: Side = "nearest") -> Span | None:
    """Return the first and last day that a date means; a month without a year is the nearest on that side of today."""
    numbers = [int(number) for number in re.findall(r"\d+", re.sub(r"q[1-4]", " ", text, flags=re.IGNORECASE))]
    year = next((number for number in numbers if number > 999), None)
    named = re.search(_MONTH, text, re.IGNORECASE)
    quarter = re.search(r"q([1-4])", text, re.IGNORECASE)
    month = _MONTHS[named[0].casefold()] if named else None
    days = [number for number in numbers if number <= 999]
    try:
        if quarter and year:
            return _get_months(year * 12 + 3 * (int(quarter[1]) - 1), 3)
        if month is None and len(days) == 2 and year:
            day = date(year, days[0], days[1])
            return day, day
        if month is None and days and year:
            return _get_months(date(year, days[0], 1).year * 12 + days[0] - 1, 1)
        if month is None:
            return _get_months(year * 12, 12) if year else None
        if year and days:
            day = date(year, month, days[0])
            return day, day
    except ValueError:
        return None
    return _get_months((year or _get_year(month, today, side)) * 12 + month - 1, 1)


def _get_year(month: int, today: date, side: Side) -> int:
    later, earlier = month > today.month, month < today.month
    match side:
        case "past":
            return today.year - later
        case "future":
            return today.year + earlier
        case _:
            return today.year + (today.month - month > 6) - (month - today.month > 6)


def _get_months(first: int, count: int) -> Span:
    """Return the first and the last day of `count` months; months are numbered from year 0."""
    year, month = divmod(first, 12)
    last_year, last_month = divmod(first + count - 1, 12)
    return date(year, month + 1, 1), date(last_year, last_month + 1, monthrange(last_year, last_month + 1)[1])
