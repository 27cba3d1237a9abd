"""Numbers of things, in words."""

from __future__ import annotations


def say_count(number: int, one: str, many: str | None = None) -> str:
    """Return how many there are: "1 document", "2,000 documents".

    Args:
        number: At least 0.
        one: The singular, with its verb where there is one: "document waits".
        many: The plural; by default `one` with an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
