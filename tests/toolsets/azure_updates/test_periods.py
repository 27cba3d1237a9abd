"""Periods in questions, as of Thursday, November 26, 2026."""

from __future__ import annotations

from datetime import date

import pytest

from refdesk.toolsets.azure_updates.questions import Reading, read_question

TODAY = date(2026, 11, 26)
NAMED = {
    "last week": ("2026-11-16", "2026-11-22"),
    "this week": ("2026-11-23", "2026-11-29"),
    "next week": ("2026-11-30", "2026-12-06"),
    "last month": ("2026-10-01", "2026-10-31"),
    "this month": ("2026-11-01", "2026-11-30"),
    "next month": ("2026-12-01", "2026-12-31"),
    "last quarter": ("2026-07-01", "2026-09-30"),
    "this quarter": ("2026-10-01", "2026-12-31"),
    "next quarter": ("2027-01-01", "2027-03-31"),
    "last year": ("2025-01-01", "2025-12-31"),
    "the previous year": ("2025-01-01", "2025-12-31"),
    "this year": ("2026-01-01", "2026-12-31"),
    "the current year": ("2026-01-01", "2026-12-31"),
    "next year": ("2027-01-01", "2027-12-31"),
    "2027": ("2027-01-01", "2027-12-31"),
    "March 2027": ("2027-03-01", "2027-03-31"),
    "Q2 2027": ("2027-04-01", "2027-06-30"),
    "2027-03-15": ("2027-03-15", "2027-03-15"),
    "today": ("2026-11-26", "2026-11-26"),
    "yesterday": ("2026-11-25", "2026-11-25"),
    "tomorrow": ("2026-11-27", "2026-11-27"),
}
PERIODS = {name: days for name, days in NAMED.items() if name not in {"today", "yesterday", "tomorrow"}}


def move(day: str, by: int) -> str:
    return date.fromordinal(date.fromisoformat(day).toordinal() + by).isoformat()


def read(said: str) -> tuple[str | None, str | None] | None:
    """Return the first and the last day read; `None` where everything stays words."""
    question = f"Key Vault {said}"
    reading = read_question(question, TODAY)
    if reading.period is None:
        assert reading == Reading(question)
        return None
    assert reading.text == "Key Vault", "its words are searched no more"
    since, until = reading.period.since, reading.period.until
    return since and since.isoformat(), until and until.isoformat()


@pytest.mark.parametrize("name", NAMED)
def test_every_preposition_is_read_with_every_period(name: str) -> None:
    first, last = NAMED[name]
    for said, expected in {
        "since": (first, None),
        "starting": (first, None),
        "on or after": (first, None),
        "after": (move(last, 1), None),
        "later than": (move(last, 1), None),
        "before": (None, move(first, -1)),
        "prior to": (None, move(first, -1)),
        "on or before": (None, last),
        "until": (None, last),
        "till": (None, last),
        "by": (None, last),
        "no later than": (None, last),
        "up to": (None, last),
        "through": (None, last),
    }.items():
        assert read(f"{said} {name}") == expected, said
    assert read(f"from {name} onwards") == (first, None)


@pytest.mark.parametrize("name", PERIODS)
def test_the_edge_of_a_period_is_the_instant_between_two_days(name: str) -> None:
    first, last = PERIODS[name]
    for the in ("", "the "):
        for said in ("before", "by", "until", "up to"):
            assert read(f"{said} {the}end of {name}") == (None, last), said
            assert read(f"{said} {the}beginning of {name}") == (None, move(first, -1)), said
            assert read(f"{said} {the}start of {name}") == (None, move(first, -1)), said
        for said in ("since", "after", "from"):
            assert read(f"{said} {the}end of {name}") == (move(last, 1), None), said
            assert read(f"{said} {the}start of {name}") == (first, None), said


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("by the end of the year", (None, "2026-12-31")),
        ("by end of year", (None, "2026-12-31")),
        ("before the end of the month", (None, "2026-11-30")),
        ("since the beginning of the year", ("2026-01-01", None)),
        ("by June 2027 at the latest", (None, "2027-06-30")),
        ("up until March 2027", (None, "2027-03-31")),
        ("since March", ("2026-03-01", None)),
        ("before March", (None, "2027-02-28")),
        ("until the end of March", (None, "2027-03-31")),
        ("since December", ("2025-12-01", None)),
        ("from May 2026 to now", ("2026-05-01", "2026-11-26")),
        ("between last month and next month", ("2026-10-01", "2026-12-31")),
        ("from the beginning of 2026 to the end of March 2027", ("2026-01-01", "2027-03-31")),
        ("from last year to this year", ("2025-01-01", "2026-12-31")),
        ("from last month", ("2026-10-01", "2026-10-31")),
        ("from next year", ("2027-01-01", None)),
        ("from 2027 on", ("2027-01-01", None)),
        ("later this year", ("2026-11-26", "2026-12-31")),
        ("earlier this year", ("2026-01-01", "2026-11-26")),
        ("in the past year", ("2025-11-26", "2026-11-26")),
        ("over the last month", ("2026-10-27", "2026-11-26")),
        ("in the next year", ("2026-11-26", "2027-11-26")),
        ("in the next quarter", ("2027-01-01", "2027-03-31")),
        ("throughout 2026", ("2026-01-01", "2026-12-31")),
    ],
)
def test_other_ways_to_say_it(said: str, expected: tuple[str | None, str | None]) -> None:
    assert read(said) == expected


@pytest.mark.parametrize("name", ["in 2026", "last month", "next year", "before June 2027", "since last year"])
@pytest.mark.parametrize(
    "turned",
    [
        *("two weeks before {}", "30 days after {}", "more than {}", "compared to {}", "the day after {}"),
        *("{} or later", "{} and beyond", "{} or next year", "{} and 2028", "{}, March 2028", "{}-2028", "{} 3"),
        *("the end of {}", "the rest of {}", "the first half of {}", "{} of support", "{} at the earliest"),
    ],
)
def test_a_period_whose_meaning_other_words_may_turn_stays_words(turned: str, name: str) -> None:
    assert read(turned.format(name)) is None


@pytest.mark.parametrize(
    "said",
    [
        *("since before 2026", "since Ignite in 2025", "before Build in May 2027", "after the next 3 months"),
        *(
            "this year and next",
            "this or next year",
            "in March or April",
            "in March, April and May 2026",
            "in 2026-2027",
        ),
        *(
            "before March 3",
            "before the 3rd of March",
            "since 3 months ago",
            "before last October",
            "since last summer",
        ),
        *("until last month's release", "outside of 2027", "instead of 2026", "at the end of 2027", "early next year"),
        *("by mid-2027", "the day before yesterday", "the last day to migrate", "the last week of June", "as of today"),
        *("before February 30, 2026", "from 2027 to 2026", "by 31/03/2027", "in 2026.5", "later last year"),
        *("after January 2026 and before March 2026", "in or around 2026", "the month before last month"),
    ],
)
def test_what_is_not_surely_understood_stays_words(said: str) -> None:
    assert read(said) is None
