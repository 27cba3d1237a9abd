from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refdesk.core.search.analysis import split
from refdesk.core.search.languages.stretches import Languages, find_languages, find_stretches

ENGLISH = "The printer stops when the tray is open, and the display then says why it does so. " * 4
GERMAN = "Der Drucker hält an, wenn das Fach offen ist, und die Anzeige meldet auch den Grund dafür. " * 4
SPANISH = "La impresora se detiene cuando la bandeja está abierta y la pantalla dice por qué lo hace. " * 4
TABLE = "BX-200\t12 MB\tRJ45\nBX-300\t24 MB\tRJ45\nBX-400\t48 MB\tUSB\n" * 8


def find(title: str, body: str) -> Languages:
    return find_languages(title, body, split(body))


def read(title: str, body: str) -> list[tuple[str, str]]:
    """Return the languages of a body's stretches, with the text of each."""
    return [(language, body[start:end].strip()) for start, end, language in find(title, body).of_body]


@pytest.mark.parametrize(
    "parts",
    [
        [("de", GERMAN), ("en", ENGLISH)],
        [("en", ENGLISH), ("de", GERMAN)],
        [("en", ENGLISH), ("es", SPANISH), ("en", ENGLISH), ("de", GERMAN)],
        [("de", GERMAN), ("es", SPANISH)],
    ],
)
def test_each_stretch_is_in_its_own_language(parts: list[tuple[str, str]]) -> None:
    body = "\n".join(text.strip() for _, text in parts)
    assert read("", body) == [(language, text.strip()) for language, text in parts if language != "en"]


def test_what_tells_no_language_is_in_that_of_what_stands_before_it() -> None:
    assert read("", GERMAN + TABLE) == [("de", (GERMAN + TABLE).strip())]
    assert read("", ENGLISH + TABLE) == []


@pytest.mark.parametrize(
    "quoted", ["¡Hola!", "“Bitte Papierfach schließen, danke”", "je ne sais quoi", "la de la Cruz"]
)
def test_words_of_another_language_in_a_text_do_not_change_its_own(quoted: str) -> None:
    for language, text in (("de", GERMAN), ("es", SPANISH), ("en", ENGLISH)):
        found = read("", f"{text}{quoted} {text}")
        assert [each for each, _ in found] == [language] * (language != "en")


@pytest.mark.parametrize("text", ["", "Drucker", "Der Drucker druckt nicht. The paper tray is open.", "TLS 1.2", "\n"])
def test_less_than_a_stretch_is_in_one_language_as_a_whole(text: str) -> None:
    assert find_stretches(text) in ((), [(0, len(text), "de")])
    assert find("", text).of_body in ((), [(0, len(text), "de")])


@pytest.mark.parametrize(
    ("body", "language"), [(GERMAN, "de"), (ENGLISH, None), (ENGLISH + GERMAN * 3, "de"), (ENGLISH * 3 + GERMAN, None)]
)
def test_a_title_is_in_the_language_that_the_text_begins_in_or_that_most_of_it_is_in(
    body: str, language: str | None
) -> None:
    assert find("BX-200", body).of_title == language


@given(st.lists(st.sampled_from([ENGLISH, GERMAN, SPANISH, TABLE, "数据库连接失败", "x" * 700, "\0", "\n", " "])))
def test_stretches_follow_each_other_without_overlap_whatever_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    for found in (find("Titel", text).of_body, find_stretches(text)):
        assert all(0 <= start < end <= len(text) for start, end, _ in found)
        assert all(one[1] <= other[0] and one[1:] != other[::2] for one, other in pairwise(found))
