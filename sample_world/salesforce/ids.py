"""Record ids: 15 characters that tell case apart, or 18 that need not, because three more say which are capitals."""

from __future__ import annotations

import re
import string

_ALPHABET = string.ascii_uppercase + "012345"
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_FORM = re.compile(r"[0-9A-Za-z]{15}(?:[0-9A-Za-z]{3})?", re.ASCII)
_POD = "5g0"


def add_checksum(id: str) -> str:
    """Return the 18 characters of a 15-character id.

    Each of the three added characters stands for five of the id: bit n is set where the n-th of them is a capital.
    """
    return id + "".join(_ALPHABET[_capital_bits(id[start : start + 5])] for start in (0, 5, 10))


def make_id(prefix: str, number: int) -> str:
    """Return the 18-character id that stands for `number` under a three-character prefix."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return add_checksum(f"{prefix}{_POD}{digits:0>9}")


def is_id(text: str) -> bool:
    """Say whether the text has the form of an id, with a right checksum where it has one."""
    return _FORM.fullmatch(text) is not None and (len(text) == 15 or add_checksum(text[:15]) == text)


def to_long(text: str) -> str | None:
    """Return the 18-character form of an id, or `None` when the text is none."""
    return add_checksum(text[:15]) if is_id(text) else None


def _capital_bits(part: str) -> int:
    return sum(1 << index for index, character in enumerate(part) if character in string.ascii_uppercase)
