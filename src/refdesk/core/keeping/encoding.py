"""Portable encodings of stored values: text, JSON, instants as numbers, vectors in half precision."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from refdesk.errors import InvalidInputError

if TYPE_CHECKING:
    from refdesk.model import DateRange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode_instant(instant: datetime) -> int:
    """Return whole microseconds since 1970-01-01 UTC."""
    return (instant - _EPOCH) // _MICROSECOND


def decode_instant(microseconds: int) -> datetime:
    """Return the instant, in UTC."""
    return _EPOCH + microseconds * _MICROSECOND


def encode_date_ranges(spans: Iterable[DateRange]) -> list[tuple[int, int]]:
    """Return the ends of each span."""
    return [(encode_instant(span.start), encode_instant(span.end)) for span in spans]


def encode_json(value: object) -> str:
    """Return compact JSON.

    Raises:
        InvalidInputError: It holds a NUL, half of a surrogate pair, a number that is not finite, or no JSON at all.
    """
    if value == {}:
        return "{}"  # as most facets, spans and further data are
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            "A value cannot be written as JSON: send texts, finite numbers, lists and objects."
        ) from error
    # A NUL is always escaped so; whether it is not a backslash followed by "u0000" needs a closer look.
    if "\\u0000" in text and _holds_nul(value):
        raise InvalidInputError("A text holds a NUL, which cannot be stored: leave it out.")
    check_texts(text)
    return text


def decode_json(text: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value of what `encode_json` wrote."""
    # `json.loads` also looks for blanks around the value, which takes as long as decoding such short texts.
    return _DECODER.raw_decode(text)[0]


def check_texts(*texts: str) -> None:
    """Check that every text can be stored.

    Raises:
        InvalidInputError: One holds a NUL or half of a surrogate pair.
    """
    for text in texts:
        if "\x00" in text:
            raise InvalidInputError("A text holds a NUL, which cannot be stored: leave it out.")
        if not is_encodable(text):
            raise InvalidInputError("A text holds a lone surrogate, which cannot be stored: leave it out.")


def is_encodable(text: str) -> bool:
    """Return whether the text can be sent at all: it contains no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_storable(text: str) -> bool:
    """Return whether the text can be stored: it contains no NUL and no half of a surrogate pair."""
    return "\x00" not in text and is_encodable(text)


def _holds_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return any(_holds_nul(key) or _holds_nul(item) for key, item in pairs)
    return isinstance(value, list | tuple) and any(map(_holds_nul, cast("list[object]", value)))
