from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refdesk.model import JsonObject
from refdesk.toolsets.azure_updates.periods import Period
from refdesk.toolsets.azure_updates.questions import Reading, read_question
from tests.toolsets.azure_updates.samples import ask, get_ids, make_context, make_record

TODAY = date(2026, 8, 21)


def days(since: str | None = None, until: str | None = None) -> Period:
    return Period(*(None if day is None else date.fromisoformat(day) for day in (since, until)))


@pytest.mark.parametrize(
    ("said", "period"),
    [
        ("before June 2027", days(until="2027-05-31")),
        ("by the end of 2026", days(until="2026-12-31")),
        ("by September 30, 2026", days(until="2026-09-30")),
        ("until March", days(until="2027-03-31")),
        ("since March", days("2026-03-01")),
        ("after 2026-03", days("2026-04-01")),
        ("since October", days("2025-10-01")),
        ("from January to March 2026", days("2026-01-01", "2026-03-31")),
        ("between 2026-01-15 and 2026-02-01", days("2026-01-15", "2026-02-01")),
        ("in Q3 2025", days("2025-07-01", "2025-09-30")),
        ("in 2026", days("2026-01-01", "2026-12-31")),
        ("in February 2024", days("2024-02-01", "2024-02-29")),
        ("in January", days("2027-01-01", "2027-01-31")),
        ("on 1 August 2026", days("2026-08-01", "2026-08-01")),
        ("this month", days("2026-08-01", "2026-08-31")),
        ("last quarter", days("2026-04-01", "2026-06-30")),
        ("next year", days("2027-01-01", "2027-12-31")),
        ("last week", days("2026-08-10", "2026-08-16")),
        ("in the next 90 days", days("2026-08-21", "2026-11-19")),
        ("over the past two weeks", days("2026-08-07", "2026-08-21")),
        ("yesterday", days("2026-08-20", "2026-08-20")),
    ],
)
def test_a_period_is_read_and_its_words_are_not_searched(said: str, period: Period) -> None:
    assert read_question(f"AKS networking {said}", TODAY) == Reading("AKS networking", None, period)


@pytest.mark.parametrize(
    "question",
    [
        "Windows Server 2022",
        "May I use TLS 1.0",
        "in 2026 or in 2027",
        "in February 30, 2026",
        '"before June 2027"',
        "“before June 2027”",
        "“VM series retired”",
        "Python 3.10",
        "preview or GA of agents",
        "when will ga be",
        "machine learning preview",
        "",
        "before",
        "in 2026-13",
    ],
)
def test_what_is_not_said_plainly_stays_words(question: str) -> None:
    assert read_question(question, TODAY) == Reading(question)


@pytest.mark.parametrize(
    ("question", "reading"),
    [
        ("VM series that are retired", Reading("VM series that are", "Retirement")),
        ("end of support for Ubuntu", Reading("for Ubuntu", "Retirement")),
        ("What is being retired?", Reading("", "Retirement")),
        ("which AKS features are in public preview", Reading("which AKS features are", "Preview")),
        ("confidential computing previews", Reading("confidential computing", "Preview", is_any_preview=True)),
        ("confidential VMs that are generally available", Reading("confidential VMs that are", "General Availability")),
        ("public previews of AKS", Reading("of AKS", "Preview")),
        ("private previews", Reading("", "Private Preview")),
        ("what went GA this month", Reading("", "General Availability", days("2026-08-01", "2026-08-31"))),
        ("Is HorizonDB generally available?", Reading("Is HorizonDB ?")),
    ],
)
def test_a_stage_is_read_where_it_is_asked_for(question: str, reading: Reading) -> None:
    assert read_question(question, TODAY) == reading


@pytest.mark.parametrize(
    "question",
    [
        *(
            "which virtual machines are not being retired",
            "not retired",
            "never retired VM series",
            "non-retired sizes",
        ),
        *("which services are not being retired in 2027", "which features aren't in preview", "what isn't in preview"),
        *("which regions isn’t GA in", "all features without preview", "features no longer in preview in AKS"),
        *("except retirements", "everything but retirements", "updates other than previews", "exclude deprecations"),
        *("what has left preview this year", "which features came out of public preview", "which are yet to be GA"),
        *("what did not change since last year", "no previews since March 2026", "not before June 2027", "not in 2026"),
        *("which services can't be created after March 2027", "neither retired nor new", "unretired VM series"),
    ],
)
def test_a_question_that_negates_stays_words(question: str) -> None:
    assert read_question(question, TODAY) == Reading(question)


@pytest.mark.parametrize("said", ["no later than", "not later than"])
def test_not_later_negates_nothing(said: str) -> None:
    expected = Reading("", "Retirement", days(until="2027-06-30"))
    assert read_question(f"retirements {said} June 2027", TODAY) == expected
    assert read_question('"not" retired in 2027', TODAY).ring == "Retirement"


async def test_no_filter_is_made_of_what_a_question_negates() -> None:
    context = await make_context(RECORDS)
    answer = await ask(context, query="which VM series are not being retired in 2027")
    assert (set(get_ids(answer)), "understood" in answer) == ({"gone", "later", "here"}, False)


@given(st.text(max_size=200))
def test_any_question_can_be_read(question: str) -> None:
    read_question(question, TODAY)


RECORDS = [
    make_record("gone", title="VM series A", availabilities=[{"ring": "Retirement", "year": 2027, "month": "May"}]),
    make_record("later", title="VM series B", availabilities=[{"ring": "Retirement", "year": 2028, "month": "May"}]),
    make_record("here", title="VM series C", availabilities=[{"ring": "Preview", "year": 2027, "month": "May"}]),
]
QUESTION = "which VM series are retired before June 2027"


async def test_the_answer_names_what_was_read_and_it_can_be_switched_off() -> None:
    context = await make_context(RECORDS)
    answer = await ask(context, query=QUESTION)
    assert get_ids(answer) == ["gone"]
    assert answer["understood"] == {"availabilityRing": "Retirement", "dateTo": "2027-05-31"}
    for off in ({"interpret": False}, {"semantic": False}):
        plain = await ask(context, query=QUESTION, **off)
        assert (set(get_ids(plain)), "understood" in plain) == ({"gone", "later", "here"}, False)


async def test_filters_of_the_caller_stand_and_a_reading_that_leaves_nothing_is_dropped() -> None:
    context = await make_context(RECORDS)
    asked = await ask(context, query=QUESTION, filters={"availabilityRing": "Preview"})
    assert (get_ids(asked), asked["understood"]) == (["here"], {"dateTo": "2027-05-31"})
    nothing = await ask(context, query="VM series retired before 2020")
    assert (len(nothing["results"]), "understood" in nothing) == (3, False)


def make_staged(id: str, *rings: tuple[str, str]) -> JsonObject:
    return make_record(id, title="Enclave", availabilities=[{"ring": r, "year": 2026, "month": m} for r, m in rings])


@pytest.mark.parametrize(
    ("question", "ids", "ring"),
    [
        (
            "which Enclave previews are there",
            {"public", "private"},
            "Preview or Private Preview, not General Availability",
        ),
        ("which Enclave is in public preview", {"public"}, "Preview, not General Availability"),
        ("Enclave private previews", {"private"}, "Private Preview, not Preview or General Availability"),
        ("Enclave previews in May 2026", {"public", "private", "past"}, "Preview or Private Preview"),
        ("which Enclave is generally available", {"past"}, "General Availability"),
    ],
)
async def test_previews_are_of_either_kind_and_what_has_left_preview_is_none(
    question: str, ids: set[str], ring: str
) -> None:
    records = [
        make_staged("public", ("Private Preview", "April"), ("Preview", "May")),
        make_staged("private", ("Private Preview", "May")),
        make_staged("past", ("Preview", "May"), ("General Availability", "July")),
    ]
    answer = await ask(await make_context(records), query=question)
    assert (set(get_ids(answer)), answer["understood"]["availabilityRing"]) == (ids, ring)


async def test_a_beginning_of_a_word_in_curly_quotes_stays() -> None:
    context = await make_context([make_record("1", title="Virtual machines")])
    assert "understood" not in await ask(context, query="machines “virt”")
