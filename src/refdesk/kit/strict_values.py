"""Strict parsing of foreign bytes: only text that every engine can store, and unambiguous JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn, cast

if TYPE_CHECKING:
    from refdesk.model import JsonObject, JsonValue

MOST_DEPTH = 32
_MOST_DIGITS = 400
_BYTE_ORDER_MARK = "\ufeff"


class RefusedError(ValueError):
    """A record cannot be imported; the message is a clause that says why, such as "is not UTF-8"."""


def decode_text(data: bytes) -> str:
    """Return the text of bytes in UTF-8, without a byte-order mark at its start.

    Raises:
        RefusedError: It is not UTF-8 or holds NUL.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(f"is not UTF-8 (byte {error.start + 1})") from None
    if "\x00" in text:
        raise RefusedError("holds a NUL character")
    return text.removeprefix(_BYTE_ORDER_MARK)


def parse_json(text: str) -> JsonValue:
    """Return the value of a JSON text.

    Raises:
        RefusedError: It is not JSON, has a key twice, a number that is not finite, text with NUL or half of a surrogate
            pair, or is nested deeper than `MOST_DEPTH`.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_make_object,
            parse_constant=_refuse_constant,
            parse_int=_read_integer,
            parse_float=_read_number,
        )
    except json.JSONDecodeError as error:
        raise RefusedError(f"is not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise RefusedError("is nested too deep") from None
    check_value(value)
    return value


def parse_object(text: str) -> JsonObject:
    """Return the object of a JSON text; raises as `parse_json` does, and also for any other value."""
    value = parse_json(text)
    if not isinstance(value, Mapping):
        raise RefusedError("is not a JSON object")
    return value


def check_value(value: JsonValue, depth: int = 0) -> None:
    """Check that every text in the value can be stored and that it is not nested too deeply; errors as in
    `parse_json`."""
    if depth > MOST_DEPTH:
        raise RefusedError("is nested too deep")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            _check_text(key)
            check_value(inner, depth + 1)
    elif isinstance(value, Sequence):
        for inner in value:
            check_value(inner, depth + 1)


def read_instant(value: object, name: str, *, assume_utc: bool) -> datetime:
    """Return an ISO 8601 date or time in UTC.

    Args:
        assume_utc: Whether a time without an offset is taken as UTC, rather than refused.

    Raises:
        RefusedError: It is not one, or outside the years that can be represented.
    """
    if not isinstance(value, str):
        raise RefusedError(f"{name} is not a time in ISO 8601")
    try:
        instant = datetime.fromisoformat(value.strip())
        if instant.tzinfo is None and assume_utc:
            instant = instant.replace(tzinfo=UTC)
        if instant.tzinfo is None:
            raise RefusedError(f"{name} has no offset from UTC")
        return instant.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        if isinstance(error, RefusedError):
            raise
        raise RefusedError(f"{name} is not a time in ISO 8601") from None


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise RefusedError("holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RefusedError("holds half of a surrogate pair") from None


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise RefusedError("has a key twice")
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise RefusedError(f"holds {name}, which is no JSON")


def _read_integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise RefusedError("holds a number of too many digits")
    return int(digits)


def _read_number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise RefusedError("holds a number that is too large")
    return number


def read_strings(value: object, name: str) -> list[str]:
    """Return a list of strings.

    Raises:
        RefusedError: It is something else.
    """
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        strings = [item for item in items if isinstance(item, str)]
        if len(strings) == len(items):
            return strings
    raise RefusedError(f"{name} is not a list of strings")


def read_string(record: Mapping[str, object], name: str) -> str:
    """Return a field that is a string.

    Raises:
        RefusedError: It is missing or something else.
    """
    value = record.get(name)
    if not isinstance(value, str):
        raise RefusedError(f"{name} is missing" if name not in record else f"{name} is not a string")
    return value
