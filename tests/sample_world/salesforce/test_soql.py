"""What the grammar of SOQL takes and refuses, and where it points."""

from __future__ import annotations

import pytest

from sample_world.salesforce.errors import StatementError, point_at
from sample_world.salesforce.soql import parse_soql
from sample_world.salesforce.statements import Comparison, Path, walk

START = "SELECT Id FROM Knowledge__kav WHERE "


def where(condition: str) -> str:
    return START + condition


def read_value(condition: str) -> str:
    (comparison,) = walk(parse_soql(where(condition)).where)
    return comparison.values[0].text


@pytest.mark.parametrize(
    ("literal", "meaning"),
    [
        ("''", ""),
        (r"'it\'s'", "it's"),
        (r"'\"\\'", '"\\'),
        (r"'\n\R\t\b\F'", "\n\r\t\b\f"),
        (r"'\u00e9\u6c34'", "é水"),
        ("'%_'", "%_"),
        ("'a /* b */ -- c'", "a /* b */ -- c"),
    ],
)
def test_a_string_means_what_its_escapes_say(literal: str, meaning: str) -> None:
    assert read_value(f"Title = {literal}") == meaning


def test_a_pattern_keeps_the_escapes_that_tell_wildcards_from_characters() -> None:
    assert read_value(r"Title LIKE '50\%\_\\ it\'s %'") == r"50\%\_\\ it's %"


@pytest.mark.parametrize("literal", [r"'\q'", r"'\-'", r"'\x41'", r"'\u12'", r"'\%'", r"'\_'", "'a\nb'", "'a", "'a\\'"])
def test_a_string_with_another_escape_a_line_end_or_no_end_is_refused(literal: str) -> None:
    with pytest.raises(StatementError):
        parse_soql(where(f"Title = {literal}"))


def test_an_illegal_escape_is_named_as_the_service_names_it() -> None:
    with pytest.raises(StatementError) as caught:
        parse_soql(where(r"Title = 'ab\-c'"))
    assert caught.value.code == "MALFORMED_QUERY"
    assert caught.value.message == (
        r"Invalid string literal 'ab\-c'. Illegal character sequence '\-' in string literal."
    )


@pytest.mark.parametrize(
    "condition",
    [
        "a = 'x' AND b = 'y' OR c = 'z'",
        "a = 'x' OR b = 'y' AND c = 'z'",
        "NOT a = 'x' AND b = 'y'",
        "a = 'x' AND NOT b = 'y'",
        "NOT NOT a = 'x'",
        "a = 'x'' OR Name != '' --'",
        "a = :b",
        "a IN ()",
        "a IN 'x'",
        "a = ('x')",
        "a NOT LIKE 'x'",
        "a == 'x'",
        "'x' = a",
        "a = 'x' AND",
        "(a = 'x'",
        "a = 'x')",
        "a = 2026-13-01",
        "a = 2026-01-01T25:00:00Z",
        "a = 2026-01-01T00:00:00",
        "a = LAST_N_DAYS",
        "a = LAST_N_DAYS:0",
        "a = LAST_N_DAYS:-1",
        "a = LAST_N_DAYS: 1",
        "a = LAST_M_DAYS:1",
        "a = x",
        "a",
        "",
    ],
)
def test_a_condition_that_salesforce_refuses_is_refused(condition: str) -> None:
    with pytest.raises(StatementError):
        parse_soql(where(condition))


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "SELECT",
        "SELECT FROM Knowledge__kav",
        "SELECT Id, FROM Knowledge__kav",
        "SELECT Id Title FROM Knowledge__kav",
        "SELECT * FROM Knowledge__kav",
        "SELECT Id FROM Knowledge__kav, Account",
        "SELECT Id FROM Knowledge__kav;",
        "SELECT Id FROM Knowledge__kav LIMIT -1",
        "SELECT Id FROM Knowledge__kav LIMIT 1.5",
        "SELECT Id FROM Knowledge__kav LIMIT 1 LIMIT 2",
        "SELECT Id FROM Knowledge__kav OFFSET 1 LIMIT 2",
        "SELECT Id FROM Knowledge__kav ORDER Title",
        "SELECT Id FROM Knowledge__kav ORDER BY Title NULLS",
        "SELECT Id FROM Knowledge__kav /* all */",
        "SELECT Id FROM Knowledge__kav FOR UPDATE",
        "SELECT Id FROM Knowledge__kav UPDATE VIEWSTAT, VIEWSTAT",
        "SELECT Id FROM Knowledge__kav WITH SECURITY_ENFORCED",
        "SELECT Id FROM Knowledge__kav WITH DATA CATEGORY A__c AT b__c OR C__c AT d__c",
        "SELECT COUNT(), Id FROM Knowledge__kav",
        "SELECT FIELDS(ALL) FROM Knowledge__kav",
        "SELECT FIELDS(ALL) FROM Knowledge__kav LIMIT 201",
        "DELETE FROM Knowledge__kav",
    ],
)
def test_a_statement_that_salesforce_refuses_is_refused(statement: str) -> None:
    with pytest.raises(StatementError) as caught:
        parse_soql(statement)
    assert caught.value.code == "MALFORMED_QUERY"


def test_a_statement_ends_at_20_000_characters_and_a_string_at_4_000() -> None:
    statement = "SELECT Id FROM Account".replace(" FROM", " " * 19_979 + "FROM")
    parse_soql(statement)
    with pytest.raises(StatementError, match="20000"):
        parse_soql(statement.replace("Id", "Id "))
    parse_soql(where(f"Title = '{'x' * 4000}'"))
    with pytest.raises(StatementError, match="4000"):
        parse_soql(where(f"Title = '{'x' * 4001}'"))


def test_an_offset_over_2_000_has_a_code_of_its_own() -> None:
    parse_soql("SELECT Id FROM Account OFFSET 2000")
    with pytest.raises(StatementError) as caught:
        parse_soql("SELECT Id FROM Account OFFSET 2001")
    assert caught.value.code == "NUMBER_OUTSIDE_VALID_RANGE"


def test_a_deeply_nested_condition_is_refused_and_does_not_end_the_process() -> None:
    with pytest.raises(StatementError, match="nested too deeply"):
        parse_soql(where("(" * 9_000 + "Title = 'x'" + ")" * 9_000))


def test_the_parts_of_a_query_are_read() -> None:
    query = parse_soql(
        "select k.Id, toLabel(Language) shown FROM Knowledge__kav k WHERE (NOT Title <> 'x') AND Id IN ('a', 'b')"
        " WITH DATA CATEGORY Products__c BELOW (Hub__c, App__c) ORDER BY Title DESC NULLS LAST, Id LIMIT 5 OFFSET 2"
        " FOR VIEW UPDATE TRACKING, VIEWSTAT"
    )
    assert [(selected.kind, str(selected.path), selected.alias) for selected in query.selected] == [
        ("field", "k.Id", None),
        ("label", "Language", "shown"),
    ]
    assert [(str(part.path), part.operator, len(part.values)) for part in walk(query.where)] == [
        ("Title", "!=", 1),
        ("Id", "IN", 2),
    ]
    assert [(filter.selector, filter.categories) for filter in query.categories] == [("BELOW", ("Hub__c", "App__c"))]
    assert [(str(key.path), key.descending, key.nulls_last) for key in query.order] == [
        ("Title", True, True),
        ("Id", False, False),
    ]
    assert (query.alias, query.limit, query.offset, query.updates) == ("k", 5, 2, ("TRACKING", "VIEWSTAT"))


def test_a_hostile_text_under_the_right_escapes_stays_one_literal() -> None:
    for text in ("it's", "\\", "\\'", "' OR Title != '", "%_", "\\u0027", "{}[]:"):
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        (comparison,) = walk(parse_soql(where(f"Title = '{escaped}'")).where)
        assert isinstance(comparison, Comparison)
        assert comparison.path == Path(("Title",), len(where("")))
        assert comparison.values[0].text == text


def test_an_error_is_pointed_at_as_the_service_does() -> None:
    statement = "SELECT Nme FROM Account"
    assert point_at(statement, 7, "No such column") == (
        "\nSELECT Nme FROM Account\n       ^\nERROR at Row:1:Column:8\nNo such column"
    )
    assert "Row:2:Column:3" in point_at("SELECT Id\nFROM x", 12, "")
