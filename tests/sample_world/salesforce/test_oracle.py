"""The emulator's grammars against two parsers by other hands: it must not accept what Salesforce refuses.

Where the others accept more, the difference is documented here, with what it rests on.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import pytest

from sample_world.salesforce.errors import StatementError
from sample_world.salesforce.lexing import RESERVED
from sample_world.salesforce.soql import parse_soql
from sample_world.salesforce.sosl import parse_sosl
from tests.sample_world.salesforce.grammar import damage, make_soql, make_sosl
from tests.sample_world.salesforce.oracle_process import Oracle, Verdict, install_oracle

# The first test to come installs the other parsers, which may take longer than a test may.
pytestmark = pytest.mark.timeout(600)

Language = Literal["soql", "sosl"]
MORE = 20 if os.environ.get("REFDESK_SOAK") else 1
WHOLE, DAMAGED = 150 * MORE, 300 * MORE
MAKERS: dict[Language, Callable[[random.Random], str]] = {"soql": make_soql, "sosl": make_sosl}
PARSERS: dict[Language, Callable[[str], object]] = {"soql": parse_soql, "sosl": parse_sosl}


@dataclass(frozen=True, slots=True)
class Refusal:
    statement: str
    message: str
    position: int

    @property
    def token(self) -> str:
        match = re.search(r"unexpected token: '(.+)'", self.message)
        return match[1] if match else ""

    @property
    def before(self) -> str:
        return self.statement[: self.position]

    @property
    def behind_reserved_word(self) -> bool:
        words = re.findall(r"\w+", self.before)
        return bool(words) and words[-1].upper() in RESERVED

    @property
    def in_find(self) -> bool:
        return self.statement.lstrip()[:4].upper() == "FIND" and "}" not in re.sub(r"\\.", "", self.before)

    @property
    def in_selection(self) -> bool:
        return not re.search(r"\bFROM\b", self.before, re.IGNORECASE)


# Why the emulator refuses what the parser of Apex accepts.
DOCUMENTED: dict[str, Callable[[Refusal], bool]] = {
    "bind variables belong to Apex": lambda refusal: "Bind variables" in refusal.message,
    "reserved words are no names": lambda refusal: refusal.token.upper() in RESERVED or refusal.behind_reserved_word,
    "a clause without its end is taken for an alias there": lambda refusal: refusal.message.endswith("<EOF>"),
    "only aggregates have aliases": lambda refusal: refusal.in_selection and refusal.token.isidentifier(),
    "operators, signs and paths have no blanks in them": lambda refusal: refusal.token in ("=", ".", "+", "-"),
    "one query has one object": lambda refusal: refusal.token == "," and not refusal.in_selection,
    "two escapes are for LIKE alone": lambda refusal: bool(re.search(r"sequence '\\[%_]'", refusal.message)),
    "amounts of money belong to orgs with several currencies": lambda refusal: bool(
        re.fullmatch(r"[A-Za-z]{3}\d+", refusal.token)
    ),
    "a counted date literal has no blank in it": lambda refusal: refusal.before.rstrip().endswith(":"),
    "values are not nested in lists": lambda refusal: refusal.token == "(",
    "a number ends before a letter": lambda refusal: bool(re.search(r"at character '[\d.]'", refusal.message)),
    "numbers have documented bounds": lambda refusal: bool(
        re.search(r"Maximum SOQL offset|SOSL limit must|target_length must|invalid number of a date", refusal.message)
    ),
    "the clauses of SOSL have an order": lambda refusal: refusal.token.upper() == "WITH",
    "reserved characters in FIND are escaped, and its operators stand between terms": lambda refusal: refusal.in_find,
}


@pytest.fixture(scope="session")
def oracle(request: pytest.FixtureRequest) -> Oracle:
    cache = request.config.cache
    assert cache is not None
    return install_oracle(cache.mkdir("sample-world"))


def translate(language: Language, statement: str) -> str:
    r"""The parser of Apex lacks three escapes that are documented: \% and \_ of LIKE, and the brackets of FIND."""
    if language == "soql" or "}" in statement:
        statement = re.sub(r"'(?:[^'\\]|\\.)*'", lambda match: re.sub(r"\\[%_\\]", r"\\\\", match[0]), statement)
    return re.sub(r"\\[\[\]]", r"\\(", statement) if language == "sosl" else statement


def judge(oracle: Oracle, language: Language, statements: Sequence[str]) -> list[Verdict]:
    return oracle.judge(language, [translate(language, statement) for statement in statements])


def find_refusal(language: Language, statement: str) -> Refusal | None:
    try:
        PARSERS[language](statement)
    except StatementError as error:
        return Refusal(statement, error.message, error.position)
    return None


def make(language: Language, count: int, *, damaged: bool) -> list[str]:
    chance = random.Random(f"{language} {damaged}")
    whole = [MAKERS[language](chance) for _ in range(count)]
    return [damage(chance, statement) for statement in whole] if damaged else whole


def is_known_gap_of_jetstream(statement: str) -> bool:
    lone_offset = re.search(r"\bOFFSET\b", statement) and not re.search(r"\bLIMIT\b", statement)
    two_updates = re.search(r"TRACKING,\s*VIEWSTAT|VIEWSTAT,\s*TRACKING", statement)
    wide_clause = re.search(r"ORDER\s{2,}BY|DATA\s{2,}CATEGORY", statement)
    return bool(lone_offset or two_updates or wide_clause)


@pytest.mark.parametrize("language", ["soql", "sosl"])
def test_statements_of_the_grammar_are_accepted_by_all(oracle: Oracle, language: Language) -> None:
    statements = make(language, WHOLE, damaged=False)
    refused = [refusal for statement in statements if (refusal := find_refusal(language, statement))]
    assert refused == []
    for statement, verdict in zip(statements, judge(oracle, language, statements), strict=True):
        assert verdict.apex, statement
        assert verdict.jetstream in (True, None) or is_known_gap_of_jetstream(statement), statement


@pytest.mark.parametrize("language", ["soql", "sosl"])
def test_no_damaged_statement_is_accepted_that_another_parser_refuses(oracle: Oracle, language: Language) -> None:
    statements = [text for text in make(language, DAMAGED, damaged=True) if find_refusal(language, text) is None]
    assert DAMAGED / 20 < len(statements) < DAMAGED / 2
    for statement, verdict in zip(statements, judge(oracle, language, statements), strict=True):
        assert verdict.apex, statement
        assert verdict.jetstream in (True, None) or is_known_gap_of_jetstream(statement), statement


@pytest.mark.parametrize("language", ["soql", "sosl"])
def test_what_is_refused_though_others_accept_it_is_documented(oracle: Oracle, language: Language) -> None:
    statements = make(language, DAMAGED, damaged=True)
    refusals = [refusal for statement in statements if (refusal := find_refusal(language, statement))]
    verdicts = judge(oracle, language, [refusal.statement for refusal in refusals])
    stricter = [refusal for refusal, verdict in zip(refusals, verdicts, strict=True) if verdict.apex]
    assert stricter
    undocumented = [refusal for refusal in stricter if not any(fits(refusal) for fits in DOCUMENTED.values())]
    assert undocumented == []


HOSTILE = (*"'\"\\{}[]()%_?&|!^~*:+-\n ", "\\'", "\\u0027", "\\x", "--", "/*", "OR", "AND", "}", "漏", "é", "ab", "12")


def make_hostile(count: int) -> list[str]:
    chance = random.Random("hostile")
    return ["".join(chance.choices(HOSTILE, k=chance.randint(1, 6))) for _ in range(count)]


def test_a_text_that_is_not_escaped_is_accepted_only_where_the_other_parser_accepts_it(oracle: Oracle) -> None:
    texts = make_hostile(WHOLE)
    statements: dict[Language, list[str]] = {
        "soql": [f"SELECT Id FROM Account WHERE Name = '{text}'" for text in texts],  # noqa: S608
        "sosl": [f"FIND {{{text}}} RETURNING Account(Id)" for text in texts],
    }
    for language, listed in statements.items():
        accepted = [statement for statement in listed if find_refusal(language, statement) is None]
        assert 0 < len(accepted) < len(listed)
        assert [verdict.apex for verdict in judge(oracle, language, accepted)] == [True] * len(accepted)


def test_a_text_under_the_right_escapes_is_accepted_by_all_and_stays_one_literal(oracle: Oracle) -> None:
    texts = make_hostile(WHOLE)
    literals = [re.sub(r"[\\']", r"\\\g<0>", text).replace("\n", "\\n") for text in texts]
    queries = [f"SELECT Id FROM Account WHERE Name = '{literal}' LIMIT 1" for literal in literals]  # noqa: S608
    assert [refusal for query in queries if (refusal := find_refusal("soql", query))] == []
    verdicts = judge(oracle, "soql", queries)
    assert all(verdict.apex and verdict.jetstream for verdict in verdicts)
    assert len({verdict.tokens for verdict in verdicts}) == 1
    phrases = [re.sub(r"[?&|!{}\[\]()^~*:\\\"'+-]", r"\\\g<0>", text) for text in texts]
    searches = [f'FIND {{"xx {phrase}"}} RETURNING Account(Id)' for phrase in phrases]
    assert [refusal for search in searches if (refusal := find_refusal("sosl", search))] == []
    verdicts = judge(oracle, "sosl", searches)
    assert all(verdict.apex for verdict in verdicts)
    assert len({verdict.tokens for verdict in verdicts}) == 1
