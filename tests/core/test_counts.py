"""Numbers of things, in words."""

import pytest

from refdesk.core.counts import say_count


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 documents"), (1, "1 document"), (2, "2 documents"), (12_000, "12,000 documents")],
)
def test_only_one_is_told_of_as_one(number: int, said: str) -> None:
    """Thousands are set apart."""
    assert say_count(number, "document") == said


def test_what_has_another_plural_is_given_it() -> None:
    """What a thing does goes with it."""
    assert say_count(1, "entry holds", "entries hold") == "1 entry holds"
    assert say_count(3, "entry holds", "entries hold") == "3 entries hold"
