"""The date literals of SOQL: spans of days around now, in UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

DateRange = tuple[datetime, datetime]

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def resolve_period(word: str, count: int, now: datetime) -> DateRange:
    """Return the span that a literal means: its first instant, and the first behind it.

    Weeks begin on Sunday. Fiscal years are calendar years, as in an org that never changed them. The counted literals
    of weeks and more leave out the current one; those of days reach from midnight to midnight, today included for the
    past.
    """
    today = datetime(now.year, now.month, now.day, tzinfo=UTC)
    word = word.replace("FISCAL_", "")
    if word in ("YESTERDAY", "TODAY", "TOMORROW"):
        start = today + timedelta(days=("YESTERDAY", "TODAY", "TOMORROW").index(word) - 1)
        return start, start + timedelta(days=1)
    if word.endswith("_90_DAYS"):
        word, count = word.replace("_90_", "_N_"), 90
    unit = word.removeprefix("N_").removesuffix("_AGO").split("_")[-1].rstrip("S")
    shift = _shifter(unit, today)
    if word.endswith("_AGO"):
        return shift(-count), shift(1 - count)
    if "_N_" in word:
        return _counted(word.startswith("LAST"), unit, count, shift)
    steps = {"LAST": -1, "THIS": 0, "NEXT": 1}[word.split("_")[0]]
    return shift(steps), shift(steps + 1)


def _counted(past: bool, unit: str, count: int, shift: Callable[[int], datetime]) -> DateRange:
    if past:
        return shift(-count), shift(1 if unit == "DAY" else 0)
    return shift(1), shift(count + 1)


def _shifter(unit: str, today: datetime) -> Callable[[int], datetime]:
    if unit in ("DAY", "WEEK"):
        size = 7 if unit == "WEEK" else 1
        start = today - timedelta(days=today.isoweekday() % 7 if unit == "WEEK" else 0)
        return lambda steps: _clamp(lambda: start + timedelta(days=size * steps), steps)
    size = _MONTHS[unit]
    first = today.year * 12 + (today.month - 1) // size * size
    return lambda steps: _clamp(lambda: _month(first + size * steps), steps)


def _month(months: int) -> datetime:
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def _clamp(compute: Callable[[], datetime], steps: int) -> datetime:
    try:
        return compute()
    except (ValueError, OverflowError):
        return datetime.min.replace(tzinfo=UTC) if steps < 0 else datetime.max.replace(tzinfo=UTC)
