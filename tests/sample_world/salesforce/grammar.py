"""Statements made by walking the grammar at random, and what becomes of them when they are damaged."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

Walk = Callable[[random.Random], str]

FIELDS = ("Id", "Title", "Summary", "PublishStatus", "Language", "RecordType.Name", "KnowledgeArticleId", "Body__c")
STRINGS = (
    "'x'",
    "''",
    "'it\\'s'",
    "'a\\\\b'",
    "'Größe'",
    "'水漏れ'",
    "'say \"hi\"'",
    "'\\n\\t\\u00e9'",
    "'{a} [b] (c)'",
    "'%_'",
)
PATTERNS = (*STRINGS, "'%x%'", "'100\\%'", "'a\\_b'", "'\\\\\\%'")
PERIODS = ("TODAY", "YESTERDAY", "LAST_WEEK", "THIS_MONTH", "NEXT_QUARTER", "LAST_90_DAYS", "LAST_N_DAYS:7")
PERIODS_BEHIND = ("N_MONTHS_AGO:3", "NEXT_N_WEEKS:2", "LAST_FISCAL_YEAR", "N_FISCAL_QUARTERS_AGO:1")
INSTANTS = ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+0000", "2026-01-02T03:04:05+01:00", "2026-01-02")
FIND_TEXTS = (
    "reset",
    "reset password",
    "reset AND password",
    "reset AND NOT hub",
    "(hub OR thermo) AND reset",
    '"white ring"',
    '"and" OR "or"',
    "pass*",
    "w?ite",
    "e\\-mail",
    "what\\?",
    "\\{room\\}",
    "水漏れ",
    "Größe",
    "a\\\\b",
    'say \\"hi\\"',
)


def pick(random: random.Random, *choices: str) -> str:
    return random.choice(choices)


def maybe(random: random.Random, chance: float, walk: Walk) -> str:
    return walk(random) if random.random() < chance else ""


def join(random: random.Random, walk: Walk, most: int) -> str:
    return ", ".join(walk(random) for _ in range(random.randint(1, most)))


def make_field(random: random.Random) -> str:
    return pick(random, *FIELDS)


def make_value(random: random.Random) -> str:
    numbers = ("5", "-5", "+5", "1.5")
    return pick(random, *STRINGS, *PERIODS, *PERIODS_BEHIND, *INSTANTS, *numbers, "true", "FALSE", "null")


def make_comparison(random: random.Random) -> str:
    field = make_field(random)
    match random.randrange(4):
        case 0:
            return f"{field} LIKE {pick(random, *PATTERNS)}"
        case 1:
            word = pick(random, "IN", "NOT IN", "INCLUDES", "EXCLUDES")
            return f"{field} {word} ({join(random, make_value, 3)})"
        case _:
            sign = pick(random, "=", "!=", "<>", "<", "<=", ">", ">=")
            blank = pick(random, " ", "")
            return f"{field}{blank}{sign}{blank}{make_value(random)}"


def make_condition(random: random.Random, depth: int = 2) -> str:
    if random.random() < 0.15:
        return f"NOT {make_part(random, depth)}"
    word = pick(random, " AND ", " OR ", " and ")
    return word.join(make_part(random, depth) for _ in range(random.choice((1, 1, 2, 3))))


def make_part(random: random.Random, depth: int) -> str:
    if depth and random.random() < 0.35:
        return f"({make_condition(random, depth - 1)})"
    return make_comparison(random)


def make_order(random: random.Random) -> str:
    def key(random: random.Random) -> str:
        return make_field(random) + pick(random, "", " ASC", " desc") + pick(random, "", " NULLS FIRST", " NULLS LAST")

    return " ORDER BY " + join(random, key, 2)


def make_category(random: random.Random) -> str:
    selector = pick(random, "AT", "ABOVE", "BELOW", "ABOVE_OR_BELOW")
    return f"{pick(random, 'Products__c', 'Regions__c')} {selector} {pick(random, 'Hub__c', '(Hub__c, Thermo__c)')}"


def make_categories(random: random.Random) -> str:
    filters = [make_category(random) for _ in range(random.choice((1, 1, 2)))]
    return " WITH DATA CATEGORY " + " AND ".join(filters)


def make_where(random: random.Random) -> str:
    return f" WHERE {make_condition(random)}"


def make_limit(random: random.Random) -> str:
    return f" LIMIT {random.randint(1, 2000)}"


def make_update(random: random.Random) -> str:
    return " UPDATE " + pick(random, "TRACKING", "VIEWSTAT", "TRACKING, VIEWSTAT")


def make_selection(random: random.Random) -> str:
    if random.random() < 0.05:
        return "COUNT()"
    return join(random, lambda random: pick(random, *FIELDS, "toLabel(Language)", "toLabel(Language) shown"), 4)


def make_soql(random: random.Random) -> str:
    selection = make_selection(random)
    return (
        f"{pick(random, 'SELECT', 'select')} {selection} FROM {pick(random, 'Knowledge__kav', 'Knowledge__kav k')}"
        + maybe(random, 0.8, make_where)
        + maybe(random, 0.2, make_categories)
        + ("" if selection == "COUNT()" else maybe(random, 0.4, make_order))
        + maybe(random, 0.5, make_limit)
        + maybe(random, 0.2, lambda random: f" OFFSET {random.randint(0, 2000)}")
        + maybe(random, 0.1, lambda random: pick(random, " FOR VIEW", " FOR REFERENCE"))
        + maybe(random, 0.1, make_update)
    )


def make_returned(random: random.Random) -> str:
    name = pick(random, "Knowledge__kav", "KnowledgeArticleVersion", "Account")
    if random.random() < 0.2:
        return name
    clauses = (
        maybe(random, 0.7, make_where)
        + maybe(random, 0.2, make_order)
        + maybe(random, 0.4, make_limit)
        + maybe(random, 0.2, lambda random: f" OFFSET {random.randint(0, 100)}")
    )
    return f"{name}({join(random, make_field, 3)}{clauses})"


def make_sosl(random: random.Random) -> str:
    groups = (" IN ALL FIELDS", " IN NAME FIELDS", " in sidebar fields")
    return (
        f"{pick(random, 'FIND', 'find')} {{{pick(random, *FIND_TEXTS)}}}"
        + maybe(random, 0.3, lambda random: pick(random, *groups))
        + maybe(random, 0.9, lambda random: " RETURNING " + join(random, make_returned, 2))
        + maybe(random, 0.1, lambda _random: " WITH DIVISION = 'Global'")
        + maybe(random, 0.2, make_categories)
        + maybe(random, 0.2, lambda random: pick(random, " WITH SNIPPET", " WITH SNIPPET(target_length=120)"))
        + maybe(random, 0.1, lambda random: pick(random, " WITH NETWORK = 'a'", " WITH NETWORK IN ('a', 'b')"))
        + maybe(random, 0.1, lambda _random: " WITH PricebookId = 'a'")
        + maybe(random, 0.1, lambda _random: " WITH METADATA = 'LABELS'")
        + maybe(random, 0.3, make_limit)
        + maybe(random, 0.1, make_update)
    )


_PIECE = re.compile(r"'(?:[^'\\]|\\.)*'|\w+|\s+|.", re.DOTALL)
_STRAY = ("'", "\\", "(", ")", "{", "}", "[", "]", ",", "=", ":", "!", "%", "AND", "OR", "NOT", "LIMIT", "5", "x", " ")


def damage(random: random.Random, statement: str, pieces: Sequence[str] = _STRAY) -> str:
    """Return the statement with one or two pieces lost, doubled, swapped, or put in."""
    parts = _PIECE.findall(statement)
    for _ in range(random.choice((1, 1, 2))):
        at = random.randrange(len(parts))
        match random.randrange(5):
            case 0:
                del parts[at]
            case 1:
                parts.insert(at, parts[at])
            case 2:
                other = random.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
            case 3:
                parts.insert(at, random.choice(pieces))
            case _:
                parts[at] = random.choice(pieces)
        if not parts:
            return ""
    return "".join(parts)
