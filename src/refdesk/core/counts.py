"""Numbers of things, in words."""

from __future__ import annotations


def say_count(number: int, one: str, many: str | None = None) -> str:
    """Return how many there are: "1 document", "2,000 documents".

    Args:
        number: At least 0.
        one: What a single one is called, and what it does where that is said, too: "document waits".
        many: The same of several; without it `one` with an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
