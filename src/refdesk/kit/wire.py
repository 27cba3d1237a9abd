"""Building blocks for declaring arguments and answers: camel case on the wire, and types of fields that many of them
share."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, time
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from refdesk.core import visible
from refdesk.core.contracts import EXACT

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MONTH = re.compile(r"\d{4}-\d{2}")


class Message(BaseModel):
    """Camel case on the wire; unknown fields are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid", frozen=True
    )


def refuse_blank(value: str) -> str:
    """Return a text that is not blank.

    Raises:
        ValueError: It has nothing but blanks and invisible characters.
    """
    if not visible.is_seen(value):
        raise ValueError("is blank: it needs at least one character that can be seen")
    return value


def refuse_nul(text: str) -> str:
    """Return a text that every store can hold.

    Raises:
        ValueError: It has a NUL character.
    """
    if "\x00" in text:
        raise ValueError("holds a NUL character: remove it")
    return text


def read_number(value: object) -> object:
    """Return a value unchanged for the type check, unless it only looks like a number.

    Raises:
        ValueError: It is a text or a truth value, which pydantic would accept as a number.
    """
    if isinstance(value, bool | str):
        raise ValueError("is no whole number: write it without quotes, such as 10")  # noqa: TRY004 - pydantic wants it
    return value


def read_day(value: object) -> object:
    """Return a day; for a month, its first.

    Raises:
        ValueError: It is not written as YYYY-MM-DD or YYYY-MM, or does not exist in the calendar.
    """
    return _read_day(value, is_last=False)


def read_last_day(value: object) -> object:
    """Return a day; for a month, its last; errors as in `read_day`."""
    return _read_day(value, is_last=True)


def _read_day(value: object, *, is_last: bool) -> object:
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or not (_DAY.fullmatch(value) or _MONTH.fullmatch(value)):
        raise ValueError("is no day: write it as YYYY-MM-DD, such as 2026-03-31, or a month as 2026-03")
    try:
        return _get_day_of_month(value, is_last=is_last) if _MONTH.fullmatch(value) else date.fromisoformat(value)
    except ValueError:
        raise ValueError(f"names a day that is in no calendar: {value}") from None


def _get_day_of_month(month: str, *, is_last: bool) -> date:
    first = date.fromisoformat(f"{month}-01")
    return first.replace(day=monthrange(first.year, first.month)[1]) if is_last else first


def read_time(value: str) -> str:
    """Return a text that names a day, a month or an instant; errors as in `parse_time`."""
    parse_time(value, time.min)
    return value


def parse_time(value: str, at: time) -> datetime:
    """Return an instant in UTC; for a day or a month, the one at the time `at`.

    For a month, that is on its first day if `at` is midnight, else on its last.

    Raises:
        ValueError: It is neither a day nor an instant in ISO 8601, nor a month.
    """
    text = value.strip()
    try:
        if _MONTH.fullmatch(text):
            return datetime.combine(_get_day_of_month(text, is_last=at != time.min), at, UTC)
        if len(text) == len("2026-03-31"):
            return datetime.combine(date.fromisoformat(text), at, UTC)
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError("is neither a day nor an instant: write 2026-03-31, 2026-03 or 2026-03-31T12:00:00Z") from None


def read_uuid(value: str) -> str:
    """Return a UUID in its usual form.

    Raises:
        ValueError: It is none.
    """
    try:
        return str(UUID(value))
    except ValueError:
        raise ValueError("is not a UUID: take it from an answer") from None


def read_client_token(value: str) -> str:
    """Return a UUID that a caller made, in its usual form.

    Raises:
        ValueError: It is none.
    """
    try:
        return read_uuid(value)
    except ValueError:
        raise ValueError("is not a UUID: make a new one for each thing that you write") from None


SAYS_SOMETHING: dict[str, JsonValue] = {EXACT: {"pattern": r"\S"}}
"""For the schema of texts that must not be blank."""

Text: TypeAlias = Annotated[str, AfterValidator(refuse_blank), Field(json_schema_extra=SAYS_SOMETHING)]
"""A text that is not blank."""

Detail: TypeAlias = Literal["concise", "full"]
"""How much to show of each thing that was found."""

Number: TypeAlias = Annotated[int, BeforeValidator(read_number)]
"""A whole number, never written as a text."""

Day: TypeAlias = Annotated[date, BeforeValidator(read_day)]
"""YYYY-MM-DD; for YYYY-MM, the first day."""

LastDay: TypeAlias = Annotated[date, BeforeValidator(read_last_day)]
"""YYYY-MM-DD; for YYYY-MM, the last day."""

Uuid: TypeAlias = Annotated[str, AfterValidator(read_uuid), Field(json_schema_extra={"format": "uuid"})]
"""A UUID, however it is written."""

TokenUuid: TypeAlias = Annotated[str, AfterValidator(read_client_token), Field(json_schema_extra={"format": "uuid"})]
"""A UUID that the caller made, so that a repeated call counts once."""

_DAY_OR_INSTANT: dict[str, JsonValue] = {
    EXACT: {"anyOf": [{"format": "date"}, {"format": "date-time"}, {"pattern": _MONTH.pattern}]}
}

Time: TypeAlias = Annotated[str, Field(max_length=40, json_schema_extra=_DAY_OR_INSTANT), AfterValidator(read_time)]
"""A day, a month, or an instant in ISO 8601; `parse_time` reads it."""
