"""Numbers in one normal form, however they are written."""

from __future__ import annotations

import re

_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
}
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "billion": 1e9}
_NUMBER = re.compile(
    r"(?<![\w.])\d[\d,.]*\d(?:\s?(?:k|million|thousand|m)\b)?|(?<![\w.])\d(?:\s?(?:k|million|m)\b)?"
    r"|\b(?:one|two|three|five|ten)\s+(?:million|thousand)\b",
    re.IGNORECASE,
)
_FORMER = re.compile(
    r"(?:previous(?:ly)?|up\s+from|increased?\s+from|raised\s+from|doubled\s+from|from|beyond\s+the\s+previous|former"
    r"|used\s+to\s+be|instead\s+of)[^.]{0,60}?(?P<value>\d[\d,.]*(?:\s?(?:million|thousand|billion|k|m))?)",
    re.IGNORECASE,
)


def normalise_number(text: str) -> str:
    """Return a number without separators and words of scale: `1 million` and `1,000,000` are the same."""
    match = re.match(r"\s*([\d.,]+|[a-z]+)\s*(k|m|thousand|million|billion)?", text.lower())
    if match is None:
        return text
    digits = _WORDS.get(match[1], match[1]).replace(",", "").strip(".")
    try:
        value = float(digits) * _SCALES.get(match[2] or "", 1)
    except ValueError:
        return text
    return f"{value:g}" if value < 1e6 else str(int(value))


def find_numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text, in normal form."""
    return frozenset(normalise_number(match[0]) for match in _NUMBER.finditer(text))


def find_former(text: str) -> frozenset[str]:
    """Return the numbers that a text which announces new ones says were valid before."""
    return frozenset(normalise_number(match["value"]) for match in _FORMER.finditer(text))
