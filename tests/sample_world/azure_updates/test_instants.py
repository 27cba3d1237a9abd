"""Instants with seven digits."""

from __future__ import annotations

import pytest

from sample_world.azure_updates.instants import TICKS_PER_SECOND, to_ticks


def test_the_seventh_digit_counts_and_the_eighth_does_not() -> None:
    first = to_ticks("2026-05-01T10:00:00.1234567Z")
    assert first is not None
    assert to_ticks("2026-05-01T10:00:00.1234568Z") == first + 1
    assert to_ticks("2026-05-01T10:00:00.12345679Z") == first


def test_offsets_name_the_same_instant() -> None:
    assert to_ticks("2026-05-01T00:30:00+01:00") == to_ticks("2026-04-30T23:30:00Z")


def test_seconds_may_be_left_out() -> None:
    assert to_ticks("2026-05-01T10:00Z") == to_ticks("2026-05-01T10:00:00.0Z")


def test_ticks_count_from_the_year_one() -> None:
    assert to_ticks("0001-01-02T00:00:01Z") == 86_401 * TICKS_PER_SECOND


@pytest.mark.parametrize(
    "value", ["", "2026-05-01", "2026-05-01T10:00:00", "2026-02-30T10:00:00Z", "0001-01-01T00:00:00+20:00x", 5, None]
)
def test_what_is_no_instant_with_a_zone_has_no_ticks(value: object) -> None:
    assert to_ticks(value) is None
