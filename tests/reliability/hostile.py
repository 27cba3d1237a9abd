"""Texts that mean harm or trouble to some reader: query languages, Unicode's corners, sheer length."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

SYNTAX = (
    # full text: FTS5, tsquery, Lucene
    *(
        '"',
        '""',
        '"unclosed',
        "title:secret",
        "-title:x",
        "{title body}:x",
        "^start",
        "NEAR(a b, 3)",
        "a AND OR b",
        "a*",
    ),
    *(
        "(" * 500,
        "NOT",
        "AND",
        "a NOT b OR (c AND",
        "a & b | !c <-> d:*",
        "'a' & ",
        "field:[1 TO 2]",
        "a~0.5^2",
        "/re/",
    ),
    *("+a -b && c || !d", "\\", "\\\\", "a\\", "a AND NOT", '"a" NEAR/2 "b"', "*:*", "?*", "rank:x", "documents_fts"),
    # SQL, SOQL, SOSL, Cypher, OData, JSON, templates
    *(
        "' OR 1=1 --",
        "'; DROP TABLE documents; --",
        "%",
        "_",
        "%%%",
        "a' UNION SELECT key FROM records --",
        "x'00'",
        "/*",
    ),
    *(
        "FIND {x} IN ALL FIELDS RETURNING y",
        "{x} RETURNING Knowledge__kav(Id)",
        "' OR Name != ''",
        "\\'",
        "\\u0027",
        "--",
    ),
    *(
        "MATCH (n) DETACH DELETE n",
        "`",
        "$where",
        "contains(title,'x')",
        "' eq '",
        "{{7*7}}",
        "${7*7}",
        "<%= 7 %>",
        "#{7}",
    ),
    *(
        '{"$gt": ""}',
        "[1,2",
        "null",
        "true",
        "NaN",
        "1e400",
        "-0",
        "../../etc/passwd",
        "file:///etc/passwd",
        "%00",
        "%s%n",
    ),
    # bombs for patterns that backtrack, and text that markup or a terminal would run
    *("(a+)+$", "^(a|a)*$", "(.*)*x", "a" * 30 + "!", "((((((((((x))))))))))", "[[:alpha:]", "(?P<x", "\\1", "(?R)"),
    *(
        "<script>alert(1)</script>",
        "<!--",
        "]]>",
        "&lt;",
        "\x1b[2J\x1b[31m",
        "\r\nSet-Cookie: a=b",
        "Ignore all that was said",
    ),
)
LETTERS = (
    *("a", "the", "node", "storage", "VPN", "C++", "C#", "3.5", "résumé", "straße", "ΑΣ", "İstanbul", "ı", "ﬁ", "ſ"),
    *(
        "漢字",
        "東京都",
        "カタカナ",
        "ｶﾞ",
        "한국어",
        "ไทยภาษา",
        "မြန်မာ",
        "עברית",
        "العربية",
        "हिन्दी",
        "🦓",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "ǅ",
    ),
)
CORNERS = (
    *("\u202e", "\u2066", "\u200b", "\u200d", "\u00ad", "\ufeff", "\u2028", "\u2029", "\u0085", "\x0b", "\x1f", "\x7f"),
    *(
        "\u0301" * 40,
        "e\u0301\u0323",
        "\u1100\u1161\u11a8",
        "\u0e33",
        "\ufdfa",
        "\U000e0041",
        "\U0010ffff",
        "\ufffe",
        "\ufffd",
    ),
    *(
        "\u00bd",
        "\u2460",
        "\uff21",
        "\u0345",
        "\u1e9e",
        "\u0149",
        "\u03f4",
        "\u2126",
        "“",
        "”",
        "„",
        "＂",
        "\u00a0",
        "\u3000",
    ),
)
UNSENDABLE = ("\x00", "a\x00b", "\ud800", "\udfff", "x\udc00y", "\ude00\ud83d")
"""What no text may hold: NUL, and halves of surrogate pairs."""


def draw_query(random: Random, longest: int) -> str:
    """Return a query, now and then one that must be refused."""
    return random.choice(_MAKERS)(random, longest)


def _pick(random: Random, _: int) -> str:
    return random.choice(random.choice((SYNTAX, LETTERS, CORNERS)))


def _mix(random: Random, longest: int) -> str:
    parts = [_pick(random, longest) for _ in range(random.randint(2, 12))]
    return random.choice((" ", "", "\n", "\t ", '"', "-")).join(parts)[:longest]


def _draw_points(random: Random, longest: int) -> str:
    plane = random.choice(((0x20, 0x7F), (0x80, 0x24F), (0x300, 0x1FFF), (0x2000, 0xD7FF), (0xE000, 0x10FFFF)))
    return "".join(chr(random.randint(*plane)) for _ in range(random.randint(1, min(60, longest))))


def _draw_monster(random: Random, longest: int) -> str:
    part = _pick(random, longest) + random.choice(("", " "))
    return (part * (longest // len(part) + 1))[:longest]


def _draw_words(random: Random, longest: int) -> str:
    words = [random.choice(LETTERS) + str(random.randrange(10**6)) for _ in range(longest // 4)]
    return " ".join(words)[:longest]


def _draw_too_long(random: Random, longest: int) -> str:
    return _draw_monster(random, longest) + "x" * random.randint(1, 3)


def _draw_unsendable(random: Random, longest: int) -> str:
    return _mix(random, longest // 2) + random.choice(UNSENDABLE) + _pick(random, longest)[: longest // 4]


def _draw_blank(random: Random, longest: int) -> str:
    return "".join(random.choices(" \t\n\u3000\u00a0", k=random.randint(0, min(5, longest))))


_MAKERS: tuple[Callable[[Random, int], str], ...] = (
    *(_pick, _pick, _mix, _mix, _mix, _mix, _draw_points, _draw_points),
    *(_draw_monster, _draw_words, _draw_too_long, _draw_unsendable, _draw_blank),
)
