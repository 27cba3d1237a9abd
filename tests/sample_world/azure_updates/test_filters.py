"""The `$filter` parser, against conditions written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_world.azure_updates.filters import MAXIMUM_DEPTH, BadFilterError, parse_filter

RECORD: dict[str, object] = {
    "id": "912345",
    "title": "O'Reilly books in the portal",
    "status": "In preview",
    "locale": None,
    "tags": ["Security", "Features"],
    "products": [],
    "productCategories": ["Pricing & Offerings"],
    "created": "2026-05-01T10:00:00.0000000Z",
    "modified": "2026-05-02T10:00:00.1234567Z",
    "generalAvailabilityDate": "2026-05",
    "availabilities": [
        {"ring": "Preview", "year": 2025, "month": "June"},
        {"ring": "General Availability", "year": 2026, "month": "May"},
    ],
}

TRUE = [
    "id eq '912345'",
    "status eq 'In preview'",
    "status ne 'Launched'",
    "locale eq null",
    "status ne null",
    "title eq 'O''Reilly books in the portal'",
    "generalAvailabilityDate eq '2026-05'",
    "generalAvailabilityDate gt '2026-04'",
    "modified eq 2026-05-02T10:00:00.1234567Z",
    "modified ge 2026-05-02T10:00:00.1234567Z",
    "modified gt 2026-05-02T10:00:00.1234566Z",
    "modified le 2026-05-02T12:00:00.1234567+02:00",
    "modified lt 2026-05-02T10:00:00.123456799Z or id eq '912345'",
    "created ge 2026-05-01T10:00Z",
    "tags/any(t: t eq 'Security')",
    "tags/any(x:x eq 'Security' and x ne 'Features')",
    "tags/any()",
    "not products/any()",
    "products/all(p: p eq 'AKS')",
    "productCategories/any(c: c eq 'Pricing & Offerings')",
    "availabilities/any(a: a/ring eq 'General Availability' and a/year eq 2026)",
    "availabilities/any(a: a/year lt 2026) and availabilities/any(a: a/month eq 'May')",
    "  ( id eq '912345' )  ",
    "status eq 'Launched' or status eq 'In preview' and id eq '912345'",
    "not not id eq '912345'",
]
FALSE = [
    "id eq '1'",
    "tags/any(t: t eq 'security')",
    "tags/all(t: t eq 'Security')",
    "availabilities/any(a: a/ring eq 'Preview' and a/year eq 2026)",
    "modified gt 2026-05-02T10:00:00.1234567Z",
    "modified lt 2026-05-02T10:00:00.1234567Z",
    "not (status eq 'In preview')",
    "not status eq 'Launched' and id eq '1'",
    "(status eq 'In preview' or id eq '912345') and id eq '1'",
    "locale gt 'a'",
    "description eq 'absent'",
    "products/any()",
]
REFUSED = [
    "",
    "id",
    "id eq",
    "id = '1'",
    "id eq 1",
    "id eq '1",
    "id eq '1' and",
    "id eq '1')",
    "(id eq '1'",
    "colour eq 'red'",
    "modified ge '2026-05-01'",
    "modified ge 2026-05-01",
    "modified ge 2026-05-01T10:00:00",
    "modified ge 2026-13-01T10:00:00Z",
    "modified ge 2026-05-01T10:00:00 00:00",
    "tags eq 'Security'",
    "tags/some(t: t eq 'Security')",
    "tags/any(t eq 'Security')",
    "tags/any(t: u eq 'Security')",
    "tags/any(id: id eq 'Security')",
    "availabilities/any(a: a eq 'Preview')",
    "availabilities/any(a: a/day eq 1)",
    "availabilities/any(a: a/year eq '2026')",
    "contains(title, 'x')",
    "t eq 'Security' and tags/any(t: t eq 'Security')",
    "tags/any(t: t eq 'a') and t eq 'a'",
    "id eq '1' ; drop",
]


@pytest.mark.parametrize("text", TRUE)
def test_a_record_meets_the_condition(text: str) -> None:
    assert parse_filter(text)(RECORD) is True


@pytest.mark.parametrize("text", FALSE)
def test_a_record_does_not_meet_the_condition(text: str) -> None:
    assert parse_filter(text)(RECORD) is False


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_service_would_not_take_is_refused(text: str) -> None:
    with pytest.raises(BadFilterError):
        parse_filter(text)


def test_a_record_of_wrong_types_meets_no_comparison_and_breaks_none() -> None:
    broken: dict[str, object] = {"id": 7, "modified": "yesterday", "tags": "Security", "availabilities": None}
    assert not parse_filter("id eq '7' or modified ge 2020-01-01T00:00:00Z")(broken)
    assert not parse_filter("tags/any(t: t eq 'Security') or availabilities/any()")(broken)


def test_items_of_wrong_types_inside_a_list_meet_no_comparison() -> None:
    broken: dict[str, object] = {"tags": [1, None], "availabilities": ["Preview", {"year": "2026"}]}
    assert not parse_filter("tags/any(t: t eq 'Security')")(broken)
    assert not parse_filter("availabilities/any(a: a/year eq 2026)")(broken)


def test_a_refusal_says_where_the_filter_goes_wrong() -> None:
    with pytest.raises(BadFilterError, match="unexpected nand at position 10"):
        parse_filter("id eq '1' nand id eq '2'")


def test_deep_nesting_is_refused_instead_of_exhausting_the_stack() -> None:
    allowed = MAXIMUM_DEPTH - 1
    assert parse_filter("(" * allowed + "id eq '912345'" + ")" * allowed)(RECORD)
    with pytest.raises(BadFilterError, match="deeply"):
        parse_filter("(" * 20_000 + "id eq '1'" + ")" * 20_000)


@given(st.text())
def test_any_text_makes_a_string_literal_when_its_quotes_are_doubled(text: str) -> None:
    condition = parse_filter("title eq '{}'".format(text.replace("'", "''")))
    assert condition({"title": text})
    assert not condition({"title": text + "'"})


@given(st.text(alphabet="()'/:. tTeqandornyi2026-", max_size=60))
def test_no_text_raises_anything_but_a_refusal(text: str) -> None:
    try:
        condition = parse_filter(text)
    except BadFilterError:
        return
    assert condition(RECORD) in (True, False)
