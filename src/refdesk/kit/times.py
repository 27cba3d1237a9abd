"""Instants as people type them: a date, an instant, or a span such as 90d, counted from now."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from refdesk import errors
from refdesk.core.clock import SystemClock

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SPAN = re.compile(r"([+-]?)(\d{1,4})([hdw])")
_NEARLY_SPAN = re.compile(r"[+-]?\d+ ?[A-Za-z]+")
EXAMPLES = "a date such as 2027-01-31, an instant, or a span such as 12h, 30d or 8w"


def read_span(text: str) -> timedelta | None:
    """Return a span of time, negative if it begins with a minus; `None` if the text is not a span."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        return None
    span = int(found[2]) * _UNITS[found[3]]
    return -span if found[1] == "-" else span


def parse_span(text: str, option: str) -> timedelta:
    """Return a span of time.

    Raises:
        InvalidInputError: It is not one, or has a sign; the message names the option.
    """
    span = read_span(text)
    if span is None or text.strip()[0] in "+-":
        raise errors.InvalidInputError(f"{option} takes a span such as 12h, 7d or 2w; 0h is none.")
    return span


def parse_future(text: str, now: datetime, option: str) -> datetime:
    """Return an instant; a span counts from now on, and a date means its midnight in UTC.

    Raises:
        InvalidInputError: It is neither; the message names the option.
    """
    if (span := read_span(text)) is not None:
        return now + span
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise errors.InvalidInputError(f"{option} takes {EXAMPLES}.") from None
    return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)


def spell_past(text: str, now: datetime, *, is_day: bool) -> str:
    """Return a span as the day or instant that long ago, or ahead if it begins with a plus; any other text unchanged.

    Raises:
        InvalidInputError: It is a span in an unknown unit.
    """
    span = read_span(text)
    if span is None:
        if _NEARLY_SPAN.fullmatch(text.strip()):
            raise errors.InvalidInputError(f"{text.strip()} is no time: write {EXAMPLES} (hours, days, weeks).")
        return text
    instant = now + span if text.strip().startswith("+") else now - abs(span)
    return date.isoformat(instant.date()) if is_day else instant.isoformat(timespec="seconds")


def get_now() -> datetime:
    """Return the time of this machine's clock."""
    return SystemClock().now()
