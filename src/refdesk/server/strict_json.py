"""Strict JSON parsing of every argument, identical for every transport and engine.

What engines treat differently (NUL, lone surrogates), what is not JSON (NaN, Infinity) and what parsers treat
differently (duplicate keys, other encodings, deep nesting) is refused here with a clear message, before anything else
sees it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

from refdesk import errors

MAX_DEPTH = 32
MAX_BYTES = 1024 * 1024
"""Largest request in bytes, 1 MiB, unless its operation accepts more."""

ENVELOPE_BYTES = 64 * 1024
"""Bytes that a protocol message may hold in addition to the arguments of a call."""

MAX_DIGITS = 400
"""Most digits of a whole number."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parse(body: bytes, most_bytes: int = MAX_BYTES) -> object:
    """Return the value of a JSON text.

    Raises:
        InvalidInputError: It is not strict JSON in UTF-8; the message says what is wrong and never shows the text.
        TooLargeError: It is longer than `most_bytes`.
    """
    if len(body) > most_bytes:
        raise too_large(most_bytes)
    text = _decode(body)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_number,
        )
    except json.JSONDecodeError as error:
        raise errors.InvalidInputError(
            f"The body is not JSON, but must be: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    check(value)
    return value


def check(value: object, path: str = "", depth: int = 0) -> None:
    """Check that a parsed value holds only what every engine can store.

    Raises:
        InvalidInputError: A text holds NUL or a lone surrogate, a number is not finite, or the value is nested too
            deeply.
    """
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, float) and not math.isfinite(value):
        raise errors.InvalidInputError(f"{_at(path)} is not a finite number; send one that JSON can write.")
    elif isinstance(value, Mapping | Sequence) and depth >= MAX_DEPTH:
        raise _too_deep()
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            _check_text(key, path)
            check(inner, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, Sequence):
        for index, inner in enumerate(cast("Sequence[object]", value)):
            check(inner, f"{path}[{index}]", depth + 1)


def dump(value: object) -> str:
    """Return a value as compact JSON, without escaping characters beyond ASCII."""
    return _ENCODER.encode(value)


def too_large(most_bytes: int = MAX_BYTES) -> errors.TooLargeError:
    """Return the error for a request that is too large."""
    return errors.TooLargeError(f"The request is larger than {most_bytes} bytes; send less at once.")


def _decode(body: bytes) -> str:
    if body.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise errors.InvalidInputError("The body starts with a byte order mark; send plain UTF-8 without one.")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise errors.InvalidInputError(f"The body is not UTF-8: see byte {error.start}.") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise errors.InvalidInputError("An object in the body has the same key twice; send each key once.")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise errors.InvalidInputError(f"{name} is not JSON; send a finite number or leave the field out.")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise errors.InvalidInputError("A number in the body has too many digits: send it as text.")
    return int(digits)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise errors.InvalidInputError("A number in the body is too large to be kept: send it as text.")
    return value


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise errors.InvalidInputError(f"{_at(path)} holds a NUL character; remove it.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise errors.InvalidInputError(f"{_at(path)} holds half a surrogate pair; send valid Unicode text.") from None


def _at(path: str) -> str:
    printable = path.encode("ascii", "replace").decode().replace("\x00", "?")
    return f"`{printable[:80]}`" if printable else "The body"


def _too_deep() -> errors.InvalidInputError:
    return errors.InvalidInputError(f"The request is nested deeper than {MAX_DEPTH} levels; flatten it.")
