"""The values that a text gives: quantities (in one unit for each kind), times of day, days and weekdays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from refdesk.impact.dates import MONTH, MONTHS, get_month
from refdesk.impact.wording import get_terms

_COUNTED = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORDS = {
    **{word: float(number) for number, word in enumerate(_COUNTED)},
    "half": 0.5,
    "fifteen": 15.0,
    "twenty": 20.0,
    "thirty": 30.0,
    "sixty": 60.0,
    "once": 1.0,
    "twice": 2.0,
}
_NEEDS_UNIT = frozenset(("one", "half", "once", "twice"))
_KINDS: dict[str, dict[float, str]] = {
    "time": {
        1 / 60000: "ms millisecond milliseconds",
        1 / 60: "s sec secs second seconds",
        1.0: "min mins minute minutes",
        60.0: "h hour hours hrs",
        1440.0: "d day days night nights",
        10080.0: "week weeks",
        43800.0: "month months",
        131400.0: "quarter quarters",
        525600.0: "year years",
    },
    "size": {
        1 / 1024: "kb kib kilobytes",
        1.0: "mb mib megabyte megabytes",
        1024.0: "gb gib g gigabytes",
        1024.0**2: "tb tib terabytes",
    },
    "length": {0.1: "mm", 1.0: "cm", 100.0: "m metre metres meter meters", 100_000.0: "km"},
    "mass": {1.0: "kg kilograms", 1000.0: "t tonne tonnes tons"},
    "eur": {1.0: "eur € euro euros"},
    "usd": {1.0: "usd $ dollars"},
    "gbp": {1.0: "gbp £ pounds"},
    "chf": {1.0: "chf francs"},
    "percent": {1.0: "% percent"},
    "degrees": {1.0: "°c ° degrees celsius"},
    "volume": {1.0: "ml", 1000.0: "l litres"},
    **{unit: {1.0: unit} for unit in ("rpm", "bar", "ppm", "mmol")},
}
_UNITS = {
    unit: (kind, factor) for kind, units in _KINDS.items() for factor, names in units.items() for unit in names.split()
}
_PERIODS = {
    "hourly": 60.0,
    "daily": 1440.0,
    "nightly": 1440.0,
    "weekly": 10080.0,
    "monthly": 43800.0,
    "yearly": 525600.0,
    "annually": 525600.0,
}
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_UNIT = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_QUANTITY = re.compile(
    rf"(?<![\w.,/-])(?P<currency>[€$£])?(?:(?P<number>-?(?:{_NUMBER}))|(?P<word>(?:{_WORD})\b))(?:\s*(?:x|×)\b)?"
    rf"(?:[\s-]?(?:an?\s+)?(?P<unit>{_UNIT})(?![A-Za-z]))?",
    re.IGNORECASE,
)
_EACH = re.compile(r"\b(?:each|every|per|once an?)\s+(?P<unit>hour|day|night|week|month|quarter|year)\b", re.IGNORECASE)
_PERIOD = re.compile(rf"\b(?:{'|'.join(_PERIODS)})\b", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?<![\d:.])(?P<hour>[01]?\d|2[0-3])(?::(?P<minute>[0-5]\d))?\s*(?P<half>am|pm|o'clock)?(?![\d:])(?=\W|$)",
    re.IGNORECASE,
)
_ALWAYS = re.compile(r"\b(?:around the clock|24/7|24x7|day and night)\b", re.IGNORECASE)
_WEEKDAY = re.compile(r"\b(?P<day>mon|tues|wednes|thurs|fri|satur|sun|week)days?\b|\bweekends?\b", re.IGNORECASE)
_WEEK = ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun", "week", "weekend")
_DAY = re.compile(
    rf"\b(?P<aday>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<amonth>{MONTH})(?:\s*,?\s*(?P<ayear>20\d\d))?\b"
    rf"|\b(?P<bmonth>{MONTH})\s+(?P<bday>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s*%)(?:\s*,?\s*(?P<byear>20\d\d))?"
    r"|\b(?P<cyear>20\d\d)-(?P<cmonth>\d\d)-(?P<cday>\d\d)\b"
    r"|\b(?P<dday>\d{1,2})\.(?P<dmonth>\d{1,2})\.(?P<dyear>20\d\d)\b"
    rf"|\b(?P<emonth>{MONTH})\s+(?P<eyear>20\d\d)\b|\bend of (?P<fyear>20\d\d)\b",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"\b(?P<number>\d{1,2})(?:st|nd|rd|th)\b", re.IGNORECASE)
_NAMED_WEEK = re.compile(r"\bweek (?P<number>\d{1,2})\b", re.IGNORECASE)
_NO_LABEL = "|".join(
    (
        *(
            "In",
            "On",
            "At",
            "To",
            "For",
            "By",
            "Over",
            "Up",
            "With",
            "Above",
            "After",
            "Within",
            "Until",
            "Only",
            "And",
        ),
        *("Or", "Of", "Per", "Since", "From", "Before", "Every", "Each", "About", "Least", "Most", "Nearly", "The"),
        *("Set", "Keep", "Give", "Dose", "Port", "Limit", "MTU", "Heap", "Max", "Min", "Memory", "Size", "Height"),
        *("Level", "Version", "Timeout", "Retention", "Node", "Python", "Java", "Windows", "Ubuntu", "TLS"),
        *("VAT", "EUR", "USD", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        *(month.capitalize() for month in MONTHS),
    )
)
_LABELLED = re.compile(
    rf"\b(?!(?:{_NO_LABEL})\b)(?P<noun>[A-Z][A-Za-z]{{1,12}}|hall|room|rack|gate|line|bus|dock|tank|truck|error|step|floor"
    r"|building|order|sprint|chapter|bay|zone|slot|priority|tier|phase) (?P<number>\d{1,6}|[A-Z])"
    rf"(?![\w.,:%°/-]*\d)(?!\s*(?:{_UNIT})\b)"
)
_LAST_OF_MONTH = 12.99


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a text.

    Attributes:
        kinds: What it is a value of: the kind of its unit or, for a bare number, the terms beside it, as `of term`.
        amount: The amount, in the one unit used for its kind.
        start, end: Offsets in the text.
    """

    kinds: frozenset[str]
    amount: float
    start: int
    end: int

    def agrees(self, other: Value) -> bool:
        """Return whether both are the same, whatever the exact lengths of months and years."""
        tolerance = 0.02 if "time" in self.kinds else 1e-9
        return abs(self.amount - other.amount) <= tolerance * max(abs(self.amount), abs(other.amount))


def find_labels(text: str) -> list[tuple[str, int, int]]:
    """Return things told apart by a number or letter, such as `tank 5`, with their offsets."""
    return [(f"{m['noun'].lower()} {m['number'].lower()}", m.start(), m.end()) for m in _LABELLED.finditer(text)]


def find_values(text: str) -> list[Value]:
    """Return the values of a text, in order; no two overlap."""
    taken = [(start, end) for _, start, end in find_labels(text)]
    found: list[Value] = []
    for value in (*_find_days(text), *_find_marked(text), *_find_clock(text), *_find_quantities(text)):
        if all(value.end <= start or value.start >= end for start, end in taken):
            found.append(value)
            taken.append((value.start, value.end))
    return sorted(found, key=lambda value: value.start)


def _find_days(text: str) -> Iterator[Value]:
    for match in _DAY.finditer(text):
        groups = match.groupdict()
        form = next(name[0] for name, value in groups.items() if value)
        month, year, day = (groups.get(f"{form}{part}") for part in ("month", "year", "day"))
        number = (int(month) if month.isdigit() else get_month(month)) if month else _LAST_OF_MONTH
        amount = (int(year) if year else 0) * 400 + number * 31 + (int(day) if day else 0)
        kind = "day" if year else "day of the year"
        yield Value(frozenset((kind,)), amount, match.start(), match.end())


def _find_marked(text: str) -> Iterator[Value]:
    for match in _ALWAYS.finditer(text):
        yield Value(frozenset(("opening",)), 24.0, match.start(), match.end())
    for match in _WEEKDAY.finditer(text):
        number = _WEEK.index((match["day"] or "weekend").lower())
        kinds = ("weekday", "opening") if number > 6 else ("weekday",)
        yield Value(frozenset(kinds), 1000.0 + number, match.start(), match.end())
    for match in _NAMED_WEEK.finditer(text):
        yield Value(frozenset(("named week",)), float(match["number"]), match.start(), match.end())
    for match in _EACH.finditer(text):
        unit = match["unit"].lower()
        kinds = ("time", "weekday") if unit in ("day", "night") else ("time",)
        yield Value(frozenset(kinds), _UNITS[unit][1], match.start(), match.end())
    for match in _PERIOD.finditer(text):
        yield Value(frozenset(("time",)), _PERIODS[match[0].lower()], match.start(), match.end())
    for match in _ORDINAL.finditer(text):
        yield Value(frozenset(("ordinal",)), float(match["number"]), match.start(), match.end())


def _find_clock(text: str) -> Iterator[Value]:
    for match in _CLOCK.finditer(text):
        if match["minute"] or match["half"]:
            is_pm = (match["half"] or "").lower() == "pm"
            hour = int(match["hour"]) % 12 + 12 if is_pm else int(match["hour"])
            minutes = 10_000.0 + hour * 60 + int(match["minute"] or 0)
            yield Value(frozenset(("clock",)), minutes, match.start(), match.end())


def _find_quantities(text: str) -> Iterator[Value]:
    for match in _QUANTITY.finditer(text):
        word = (match["word"] or "").lower()
        if word in _NEEDS_UNIT and not match["unit"]:
            continue
        amount = _WORDS[word] if word else float(match["number"].replace(",", ""))
        unit = (match["unit"] or match["currency"] or "").lower()
        if unit:
            kind, factor = _UNITS[unit]
            yield Value(frozenset((kind,)), amount * factor, match.start(), match.end())
        else:
            yield Value(_find_kinds(text, match.start(), match.end()), amount, match.start(), match.end())


def _find_kinds(text: str, start: int, end: int) -> frozenset[str]:
    """Return the terms beside a bare number: two on each side, in the same clause."""
    before = get_terms(re.split(r"[.;,]", text[max(0, start - 200) : start])[-1])
    after = get_terms(re.split(r"[.;,]", text[end : end + 200])[0])
    return frozenset(f"of {term}" for term in (*before[-2:], *after[:2]) if not term.isdigit())
