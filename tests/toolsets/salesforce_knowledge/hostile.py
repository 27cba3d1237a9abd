"""Texts that try to be more than text, and a reader of statements that knows nothing of how they were built."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

FRAGMENTS = (
    *(
        "'",
        '"',
        "\\",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "%",
        "_",
        "*",
        "?",
        "&",
        "|",
        "!",
        "^",
        "~",
        ":",
        "+",
        "-",
        "$",
        "`",
    ),
    *(
        "''",
        "\\'",
        "\\\\'",
        "\\u0027",
        "\\x27",
        "%'",
        "'%",
        "\\%",
        "\\_",
        "&quot;",
        "%27",
        "＇",
        "ʼ",
        "’",
        "／",
        "\u2028",
    ),
    *("} RETURNING User(Id)", "} IN NAME FIELDS RETURNING Account(Id) {", "' OR Title LIKE '%", "') OR (Name != '"),
    *("' AND PublishStatus = 'Draft", "' UPDATE VIEWSTAT", "LIMIT 2000", "-- ", "/*", "*/", "//", ";", "FIND {a}"),
    *(
        "WITH DATA CATEGORY X__c AT y__c",
        "UPDATE TRACKING",
        "SELECT Id FROM User",
        "ORDER BY Id",
        ":bind",
        "NULL",
        "true",
    ),
    *(
        "AND",
        "OR",
        "NOT",
        "and not",
        "FIND",
        "IN",
        "RETURNING",
        "or",
        "a AND b",
        "aNDroid",
        "password",
        "VPN 4.2",
        "C++",
    ),
    *(
        "\x00",
        "\x01",
        "\n",
        "\r\n",
        "\t",
        "\x0b",
        "\x7f",
        "\x85",
        "\u200b",
        "\u200d",
        "\u202e",
        "\ufeff",
        "\ufffe",
        "\udc80",
    ),
    *("é", "e\u0301", "ß", "İ", "日本語", "العربية", "हिन्दी", "👩‍👩‍👧", "\U000e0041", "𝒳", "½", "  ", "\xa0", "\u3000"),
)


def hostile_texts(seed: int, count: int) -> Iterator[str]:
    """Yield texts, the same for a seed: pieces of statements, odd characters and plain words, run together."""
    chance = random.Random(seed)
    for _ in range(count):
        pieces = chance.choices(FRAGMENTS, k=chance.choice((1, 2, 3, 5, 8, 40)))
        pieces += [chr(chance.randrange(0x20, 0x2FF)) for _ in range(chance.randrange(4))]
        chance.shuffle(pieces)
        yield chance.choice(("", " ")).join(pieces)[:1000]


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a SOQL statement. Of a string, `text` is what it means and `wild` where its LIKE wildcards stand."""

    is_string: bool
    text: str
    wild: tuple[int, ...] = ()


def read_soql(statement: str) -> list[Token]:
    """Return the tokens; raises `ValueError` at whatever SOQL does not know."""
    tokens: list[Token] = []
    position = 0
    while position < len(statement):
        char = statement[position]
        if char == "'":
            position, token = _read_string(statement, position + 1)
            tokens.append(token)
        elif char.isascii() and (char.isalnum() or char in "_.,()=<>! "):
            end = position + 1
            while (
                end < len(statement)
                and statement[end].isascii()
                and (statement[end].isalnum() or statement[end] == "_")
            ):
                end += 1
            tokens.append(Token(False, statement[position:end]))
            position = end
        else:
            raise ValueError(f"no SOQL at {position}: {char!r}")
    return tokens


def _read_string(statement: str, position: int) -> tuple[int, Token]:
    text, wild = "", list[int]()
    while statement[position : position + 1] != "'":
        char = statement[position : position + 1]
        if not char or ord(char) < 0x20:
            raise ValueError("a string does not end, or holds a control character")
        if char == "\\":
            position += 1
            char = statement[position : position + 1]
            if not char or char not in "'\"\\%_":
                raise ValueError(f"no such escape: {char!r}")
        elif char in "%_":
            wild.append(len(text))
        text += char
        position += 1
    return position + 1, Token(True, text, tuple(wild))


def read_sosl(statement: str) -> tuple[list[str], str]:
    """Return the words between the braces of FIND, without their escapes, and what follows the braces.

    Raises `ValueError` at a reserved character that is not escaped; quotation marks may enclose one word.
    """
    if not statement.startswith("FIND {"):
        raise ValueError("no search term")
    position, text = len("FIND {"), ""
    while statement[position : position + 1] != "}":
        char = statement[position : position + 1]
        if not char or ord(char) < 0x20:
            raise ValueError("the braces do not close, or hold a control character")
        if char == "\\":
            position += 1
            char = statement[position : position + 1]
            if not char or char not in "?&|!{}[]()^~*:\\\"'+-":
                raise ValueError(f"no such escape: {char!r}")
        elif char in "?&|!{[]()^~*:'+-":
            raise ValueError(f"{char!r} is not escaped")
        elif char == '"':
            end = statement.index('"', position + 1)
            word = statement[position + 1 : end]
            if not word.isalpha():
                raise ValueError("more than a word in quotation marks")
            text += word
            position = end + 1
            continue
        text += char
        position += 1
    return text.split(" "), statement[position + 1 :]
