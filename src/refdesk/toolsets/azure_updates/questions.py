"""Reads dates and stages out of a question: "which VM series are retired before June 2027" asks for a filter.

What is read becomes a filter, and its words are searched no more. Only what is said plainly is read: a stage by its
usual names, a period by its preposition and its date. Anything else stays words.
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

    from refdesk.toolsets.azure_updates.models import Ring

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

_STAGES: tuple[tuple[Ring, str], ...] = (
    (
        "Retirement",
        r"retire[ds]?|retiring|retirements?|deprecat(?:ed|ing|ions?)|end[- ]of[- ](?:life|support)|sunset(?:ting)?"
        r"|discontinued|discontinuing|phased out|shut(?:ting)? down|going away",
    ),
    ("Private Preview", r"(?:in )?private previews?"),
    ("Preview", r"(?:in )?(?:public )?previews?"),
    ("General Availability", r"GA|GAed|GA'd|general(?:ly)? (?:availability|available)"),
)


_ASKS_FOR_MANY = re.compile(
    r"\s*(?:what|which|list|show|all|any|every|everything)\b|.*\bpreviews\b", re.IGNORECASE | re.DOTALL
)
_GENERAL = """
    a about all am an announced announcement announcements any anything are at azure be been being changed
    changes coming did do does everything feature features for gets getting give go goes got had has have i in
    into is it list me new news now of on or our out please s service services show tell that the there things
    to update updates us was we went were what when which will with you your
"""
"""Words that ask and name nothing: with a filter and no other word the question browses."""


Side: TypeAlias = Literal["past", "future", "nearest"]


@dataclass(frozen=True, slots=True)
class Period:
    """Days, both included; `None` is no bound."""

    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a question says.

    Attributes:
        text: What is left to search; empty when nothing is.
        ring: The stage it asks for.
        period: The days it asks for; `None` where it names none.
    """

    text: str
    ring: Ring | None = None
    period: Period | None = None


def read_question(question: str, today: date) -> Reading:
    """Return what a question asks for. Words in double quotes are never read; of several stages or periods, none is."""
    period, rest = _take_period(_blank_quotes(question), question, today)
    ring, searched = _take_stage(_blank_quotes(rest), rest)
    if ring not in (None, "Retirement") and period is None and not _ASKS_FOR_MANY.match(question):
        # "Is X generally available?" wants X, whatever its stage. In titles the words of a stage are everywhere.
        ring, searched = None, searched if ring == "General Availability" else rest
    if ring is None and period is None:
        return Reading(" ".join(searched.split()) or question)
    words = set(re.findall(r"[^\W_]+", searched.casefold()))
    return Reading("" if words <= set(_GENERAL.split()) else " ".join(searched.split()), ring, period)


def find_days(text: str) -> list[date]:
    """Return the days that a text names whole, such as "August 30, 2027", each once, in its order."""
    found = (_read_date(match[0], date.min) for match in _get_day_pattern().finditer(text))
    return list(dict.fromkeys(read[0] for read in found if read is not None and read[0] == read[1]))


@cache
def _get_day_pattern() -> re.Pattern[str]:
    day = r"\d\d?(?:st|nd|rd|th)?"
    month = rf"(?:{_MONTH})\.?"
    forms = rf"{month} {day} ?,? ?{_YEAR}|{day} (?:of )?{month},? {_YEAR}|{_YEAR}-\d\d-\d\d"
    return re.compile(rf"(?<!\w)(?:{forms})(?!\w)", re.IGNORECASE)


def _blank_quotes(text: str) -> str:
    return re.sub(r'"[^"]*"', lambda quoted: "\x00" * len(quoted[0]), text)


def _take_stage(plain: str, text: str) -> tuple[Ring | None, str]:
    found: dict[Ring, list[tuple[int, int]]] = {}
    for ring, pattern in _compile_stages():
        for match in pattern.finditer(plain):
            if not any(start <= match.start() < end for spans in found.values() for start, end in spans):
                found.setdefault(ring, []).append(match.span())
    if len(found) != 1:
        return None, text
    [(ring, spans)] = found.items()
    return ring, _cut(text, spans)


@cache
def _compile_stages() -> tuple[tuple[Ring, re.Pattern[str]], ...]:
    # GA in capitals only: "ga" is no word that people mean it by.
    return tuple(
        (ring, re.compile(rf"\b(?:{words.replace('GA|GAed|', '(?-i:GA|GAed)|', 1)})\b", re.IGNORECASE))
        for ring, words in _STAGES
    )


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return text


_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_YEAR = r"(?:19|20)\d\d"
_DATE = (
    rf"(?:{_YEAR}-\d\d?-\d\d?|{_YEAR}-\d\d?"
    rf"|(?:{_MONTH})\.? \d\d?(?:st|nd|rd|th)?,? {_YEAR}|\d\d?(?:st|nd|rd|th)? (?:of )?(?:{_MONTH})\.?,? {_YEAR}"
    rf"|(?:{_MONTH})\.?,? (?:of )?{_YEAR}|q[1-4] (?:of )?{_YEAR}|{_YEAR}(?:[ -]?q[1-4])?|(?:{_MONTH})\b)"
)
_COUNT = rf"(?:\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_UNIT = rf"(?:{'|'.join(_UNITS)})s?"


@cache
def _compile_periods() -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Period | None]], ...]:
    found = (
        (rf"\b(?:between|from) ({_DATE}) (?:and|to|until|till|through) ({_DATE})(?!\w)", _read_between),
        (rf"\b(?:before|until|till|by|no later than|up to)(?: the end of)? ({_DATE})(?!\w)", _read_before),
        (rf"\b(?:since|after|from|as of|starting) ({_DATE})(?: on(?:wards?)?)?(?!\w)", _read_since),
        (rf"\b(?:in|during|of|for|on|within) ({_DATE})(?!\w)", _read_within),
        (
            r"\b(?:in |during )?(?:the )?(this|last|past|previous|next|coming) (day|week|month|quarter|year)(?!\w)",
            _read_named,
        ),
        (
            rf"\b(?:in |during |over |within )?(?:the )?(last|past|previous|next|coming) ({_COUNT}) ({_UNIT})(?!\w)",
            _read_count,
        ),
        (r"\b(today|yesterday)(?!\w)", _read_day),
    )
    return tuple((re.compile(pattern, re.IGNORECASE), read) for pattern, read in found)


def _take_period(plain: str, text: str, today: date) -> tuple[Period | None, str]:
    found: list[tuple[Period, tuple[int, int]]] = []
    for pattern, read in _compile_periods():
        for match in pattern.finditer(plain):
            period = read(match, today)
            if period is not None and not any(start < match.end() and match.start() < end for _, (start, end) in found):
                found.append((period, match.span()))
    if len(found) != 1:
        return None, text
    [(period, span)] = found
    return period, _cut(text, [span])


def _read_between(match: re.Match[str], today: date) -> Period | None:
    last = _read_date(match[2], today)
    first = _read_date(match[1], last[1] if last else today, "past")
    return Period(first[0], last[1]) if first and last and first[0] <= last[1] else None


def _read_before(match: re.Match[str], today: date) -> Period | None:
    """By and until a date include it; before it does not."""
    read = _read_date(match[1], today, "future")
    if read is None:
        return None
    is_before = match[0].casefold().startswith("before") and "the end of" not in match[0].casefold()
    return Period(until=read[0] - timedelta(days=1) if is_before else read[1])


def _read_since(match: re.Match[str], today: date) -> Period | None:
    read = _read_date(match[1], today, "past")
    if read is None:
        return None
    return Period(since=read[1] + timedelta(days=1) if match[0].casefold().startswith("after") else read[0])


def _read_within(match: re.Match[str], today: date) -> Period | None:
    read = _read_date(match[1], today)
    return Period(*read) if read else None


def _read_named(match: re.Match[str], today: date) -> Period | None:
    step = {"this": 0, "next": 1, "coming": 1}.get(match[1].casefold(), -1)
    match match[2].casefold():
        case "day":
            first = last = today + timedelta(days=step)
        case "week":
            first = today - timedelta(days=today.weekday()) + timedelta(weeks=step)
            last = first + timedelta(days=6)
        case "month":
            first, last = _get_months(today.year * 12 + today.month - 1 + step, 1)
        case "quarter":
            first, last = _get_months((today.year * 4 + (today.month - 1) // 3 + step) * 3, 3)
        case _:
            first, last = _get_months((today.year + step) * 12, 12)
    return Period(first, last)


def _read_count(match: re.Match[str], today: date) -> Period | None:
    count = _NUMBERS.get(match[2].casefold()) or int(match[2])
    days = timedelta(days=count * _UNITS[match[3].casefold().removesuffix("s")])
    is_ahead = match[1].casefold() in {"next", "coming"}
    return Period(today, today + days) if is_ahead else Period(today - days, today)


def _read_day(match: re.Match[str], today: date) -> Period | None:
    day = today if match[1].casefold() == "today" else today - timedelta(days=1)
    return Period(day, day)


def _read_date(text: str, today: date, side: Side = "nearest") -> tuple[date, date] | None:
    """Return the first and the last day of what a date names; a month alone is the nearest on that side of today."""
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


def _get_months(first: int, count: int) -> tuple[date, date]:
    """Return the first and the last day of so many months; months are counted from year 0."""
    year, month = divmod(first, 12)
    last_year, last_month = divmod(first + count - 1, 12)
    return date(year, month + 1, 1), date(last_year, last_month + 1, monthrange(last_year, last_month + 1)[1])
