"""What the grammar of SOSL takes and refuses, and what its search text means."""

from __future__ import annotations

import pytest

from sample_world.salesforce.errors import StatementError
from sample_world.salesforce.search_text import (
    NOTHING,
    Every,
    SearchExpression,
    Some,
    Term,
    Without,
    parse_forgiving,
    parse_search_text,
)
from sample_world.salesforce.sosl import parse_sosl

RESERVED = "?&|!{}[]()^~*:\\\"'+-"


def word(text: str) -> Term:
    return Term((text,))


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("reset", word("reset")),
        ("Reset HUB", Some((word("reset"), word("hub")))),
        ("reset and hub", Every((word("reset"), word("hub")))),
        ("reset AND NOT hub", Every((word("reset"), Without(word("hub"))))),
        ("a1 OR bb AND cc", Some((Term(("a", "1"), exact=True), Every((word("bb"), word("cc")))))),
        ("(reset OR erase) AND hub", Every((Some((word("reset"), word("erase"))), word("hub")))),
        ('"white ring"', Term(("white", "ring"), exact=True)),
        ('"and" OR "or"', Some((Term(("and",), exact=True), Term(("or",), exact=True)))),
        ("e\\-mail", Term(("e", "mail"), exact=True)),
        ("pass*", Term(("pass*",), wild=True)),
        ("w?ite", Term(("w?ite",), wild=True)),
        ("what\\?", word("what")),
        ("2\\*3", Term(("2", "3"), exact=True)),
        ("Größe", word("grosse")),
        ("東京都", Term(("東京", "京都"), exact=True)),
        ("reset not hub", Some((word("reset"), word("not"), word("hub")))),
        ("find returning in", Some((word("find"), word("returning"), word("in")))),
        ("\\+\\+ hub", word("hub")),
        ("\\+\\+", NOTHING),
    ],
)
def test_a_search_text_means(text: str, expression: SearchExpression) -> None:
    assert parse_search_text(text) == expression


@pytest.mark.parametrize(
    "text",
    ["AND reset", "reset OR", "reset AND AND hub", "AND", "(reset", "reset)", "()", '"reset', "*set", "?set", "OR NOT"],
)
def test_a_search_text_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(StatementError) as caught:
        parse_search_text(text)
    assert caught.value.code == "MALFORMED_SEARCH"


@pytest.mark.parametrize("text", ["", "g", " g ", '"g"', "g*", "\\g"])
def test_fewer_than_two_characters_are_refused(text: str) -> None:
    with pytest.raises(StatementError, match="search term must be longer than one character"):
        parse_search_text(text)


def test_long_texts_lose_their_operators_and_then_their_rows() -> None:
    padding = "x" * 3988
    assert isinstance(parse_search_text(f"hub AND {padding}"), Every)
    assert isinstance(parse_search_text(f"hub AND {padding}xxxxx"), Some)
    assert parse_search_text("x" * 10_001) == NOTHING


def test_deep_parentheses_are_refused_and_do_not_end_the_process() -> None:
    with pytest.raises(StatementError):
        parse_search_text("(" * 1_500 + "hub" + ")" * 1_500)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("it's {here}", Some((Term(("it", "s"), exact=True), word("here")))),
        ("AND reset", Some((word("reset"),))),
        ("(reset", word("reset")),
        ('6" pipe', Some((word("6"), word("pipe")))),
        ("*set", word("set")),
        ("C:\\Logs", Some((word("c"), word("logs")))),
        ("reset AND hub", Every((word("reset"), word("hub")))),
    ],
)
def test_outside_sosl_what_would_be_an_error_is_a_blank(text: str, expression: SearchExpression) -> None:
    assert parse_forgiving(text) == expression


@pytest.mark.parametrize("character", RESERVED)
def test_an_escaped_reserved_character_is_data(character: str) -> None:
    search = parse_sosl(f"FIND {{ab\\{character}cd}} RETURNING Account")
    assert search.expression == Term(("ab", "cd"), exact=True)


@pytest.mark.parametrize("character", sorted(set(RESERVED) - set('?*"()\\')))
def test_a_reserved_character_without_its_escape_is_refused(character: str) -> None:
    with pytest.raises(StatementError):
        parse_sosl(f"FIND {{ab{character}cd}} RETURNING Account")


@pytest.mark.parametrize("character", "xn.,%_ 漏\n")
def test_only_reserved_characters_are_escaped(character: str) -> None:
    with pytest.raises(StatementError):
        parse_sosl(f"FIND {{ab\\{character}cd}} RETURNING Account")


@pytest.mark.parametrize(
    ("statement", "message", "position"),
    [
        ("FIND {Marie-Pier Martin}", "line 1:11 mismatched character '-' expecting '}'", 11),
        (
            "FIND {John|jane_gray@uoa.edu} RETURNING Contact",
            "line 1:10 mismatched character '|' expecting '}'",
            10,
        ),
        ("FIND {name} IN ALL TYPE RETURNING Account(name)", "Malformed search token: TYPE", 19),
    ],
)
def test_errors_that_were_seen_in_the_wild_are_the_same_here(statement: str, message: str, position: int) -> None:
    with pytest.raises(StatementError) as caught:
        parse_sosl(statement)
    assert (caught.value.code, caught.value.message) == ("MALFORMED_SEARCH", message)
    assert caught.value.position == position


@pytest.mark.parametrize(
    "statement",
    [
        "FIND reset",
        "FIND 'reset'",
        "FIND{reset}",
        "FIND {reset",
        "FIND {reset} RETURNING",
        "FIND {reset} RETURNING Account()",
        "FIND {reset} RETURNING Account(WHERE Name = 'x')",
        "FIND {reset} RETURNING Account(Id LIMIT 1 WHERE Name = 'x')",
        "FIND {reset} RETURNING Account(Id WHERE Name = 'ab\\-c')",
        "FIND {reset} RETURNING Account(Id) LIMIT 0",
        "FIND {reset} RETURNING Account(Id) LIMIT 2001",
        "FIND {reset} LIMIT 5 RETURNING Account",
        "FIND {reset} RETURNING Account WITH SNIPPET WITH DATA CATEGORY A__c AT b__c",
        "FIND {reset} RETURNING Account WITH SNIPPET(target_length=5)",
        "FIND {reset} RETURNING Account WITH METADATA='ALL'",
        "FIND {reset} RETURNING Account(Id)} RETURNING User(Id)",
        "FIND {foo} evil}",
    ],
)
def test_a_statement_that_salesforce_refuses_is_refused(statement: str) -> None:
    with pytest.raises(StatementError) as caught:
        parse_sosl(statement)
    assert caught.value.code == "MALFORMED_SEARCH"


def test_the_parts_of_a_search_are_read() -> None:
    search = parse_sosl(
        "find {reset} in all fields returning Knowledge__kav(Id, toLabel(Language) WHERE Language = 'de'"
        " ORDER BY Title LIMIT 5 OFFSET 2), Account WITH DATA CATEGORY Products__c AT Hub__c"
        " WITH SNIPPET(target_length=120) WITH METADATA='LABELS' LIMIT 7 UPDATE VIEWSTAT"
    )
    first, second = search.returning
    assert [str(field) for field in first.fields] == ["Id", "Language"]
    assert (first.limit, first.offset, str(second.object), second.fields) == (5, 2, "Account", ())
    assert (search.group, search.snippet, search.metadata, search.limit) == ("ALL", 120, True, 7)
    assert (search.updates, len(search.categories)) == (("VIEWSTAT",), 1)
