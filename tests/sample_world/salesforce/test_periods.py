"""Which days the date literals mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sample_world.salesforce.periods import resolve_period

# A Tuesday in the third quarter.
NOW = datetime(2026, 9, 1, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("word", "count", "start", "end"),
    [
        ("TODAY", 0, "2026-09-01", "2026-09-02"),
        ("YESTERDAY", 0, "2026-08-31", "2026-09-01"),
        ("TOMORROW", 0, "2026-09-02", "2026-09-03"),
        ("THIS_WEEK", 0, "2026-08-30", "2026-09-06"),
        ("LAST_WEEK", 0, "2026-08-23", "2026-08-30"),
        ("NEXT_MONTH", 0, "2026-10-01", "2026-11-01"),
        ("THIS_QUARTER", 0, "2026-07-01", "2026-10-01"),
        ("LAST_FISCAL_QUARTER", 0, "2026-04-01", "2026-07-01"),
        ("LAST_YEAR", 0, "2025-01-01", "2026-01-01"),
        ("LAST_90_DAYS", 0, "2026-06-03", "2026-09-02"),
        ("NEXT_90_DAYS", 0, "2026-09-02", "2026-12-01"),
        ("LAST_N_DAYS", 1, "2026-08-31", "2026-09-02"),
        ("NEXT_N_DAYS", 2, "2026-09-02", "2026-09-04"),
        ("N_DAYS_AGO", 3, "2026-08-29", "2026-08-30"),
        ("LAST_N_WEEKS", 2, "2026-08-16", "2026-08-30"),
        ("NEXT_N_MONTHS", 2, "2026-10-01", "2026-12-01"),
        ("LAST_N_MONTHS", 12, "2025-09-01", "2026-09-01"),
        ("N_MONTHS_AGO", 9, "2025-12-01", "2026-01-01"),
        ("N_FISCAL_YEARS_AGO", 1, "2025-01-01", "2026-01-01"),
    ],
)
def test_a_literal_means_these_days(word: str, count: int, start: str, end: str) -> None:
    found = resolve_period(word, count, NOW)
    assert [instant.isoformat()[:10] for instant in found] == [start, end]
    assert {instant.timetz().isoformat() for instant in found} == {"00:00:00+00:00"}


@pytest.mark.parametrize("unit", ["DAYS", "WEEKS", "MONTHS", "QUARTERS", "YEARS"])
def test_a_count_that_leaves_the_calendar_reaches_its_end(unit: str) -> None:
    start, _ = resolve_period(f"LAST_N_{unit}", 10_000, NOW)
    _, end = resolve_period(f"NEXT_N_{unit}", 10_000, NOW)
    assert start < NOW - timedelta(days=9_000)
    assert end > NOW + timedelta(days=9_000)
