from __future__ import annotations

import gzip

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from refdesk.core.search.analysis import analyse, locate, parse_query
from refdesk.core.search.snippets import WIDTH, get_beginnings, snippet
from refdesk.embedders.local.wordpiece import VOCABULARY
from refdesk.model import TextQuery

FAMILY = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
SENTENCES = st.lists(st.sampled_from(["word", "café", "数据库", FAMILY, "e\u0301", "x" * 90, "\n \t", "a b", "İ"]))


def cut(body: str, question: str, passage: tuple[int, int] | None = None, width: int = WIDTH) -> str:
    return snippet(body, parse_query(question, quotes_bind=True), passage, width)


def test_another_form_of_a_word_in_another_language_is_centred() -> None:
    body = (
        "Hier steht noch nichts davon. " * 20 + "Die Häuser am Fluss sind alt. " + "Und danach kommt nichts mehr. " * 20
    )
    assert "Häuser am Fluss" in cut(body, "Welches Haus ist es?")


def test_a_short_body_is_shown_whole_with_blanks_folded() -> None:
    assert cut("  one\n\n two\tthree ", "two") == "one two three"


def test_nothing_is_shown_of_nothing() -> None:
    assert cut("", "two") == cut(" \n ", "two") == ""


def test_the_first_match_stands_in_the_middle() -> None:
    text = cut("before " * 200 + "the studies of foxes " + "after " * 200 + "study", "study")
    assert (text[0], text[-1]) == ("…", "…")
    assert abs(text.index("studies") - (len(text) - text.index("studies") - len("studies"))) <= 40
    assert WIDTH - 40 <= len(text) <= WIDTH


@pytest.mark.parametrize(
    ("word", "question"),
    [
        ("Ärger", "arger"),
        ("CAFÉ", "cafe"),
        ("ＡＫＳ", "aks"),
        ("dying", "die"),
        ("skies", "sky"),
        ("reliability", "reliable"),
        ("hoping", "hope"),
        ("数据库", "据库"),
        ("İzmir", "izmir"),
        ("C#", "C#"),
    ],
)
def test_a_word_in_another_form_is_found(word: str, question: str) -> None:
    assert word in cut("before " * 100 + word + " after" * 100, question)


def test_a_phrase_is_shown_rather_than_its_words() -> None:
    body = "point of view " + "filler " * 100 + "view point here " + "filler " * 100
    assert "view point here" in cut(body, '"view point" filler')
    assert "View\u00a0Point" in cut("view " * 100 + "View\u00a0Point" + " filler" * 100, '"view point"').replace(
        "View Point", "View\u00a0Point"
    )


@pytest.mark.parametrize("question", ["loop", "back off", "crash", "backoff loop"])
def test_a_part_of_an_identifier_is_centred(question: str) -> None:
    assert "CrashLoopBackOff" in cut("Then. " * 100 + "It ends in CrashLoopBackOff again." + " Or not." * 100, question)


def test_a_part_of_a_word_is_no_match() -> None:
    body = "cartoon John's discard " + "filler " * 100 + "a car and s here"
    assert "a car and" in cut(body, "car")
    assert "and s here" in cut(body, "s")


def test_without_a_match_the_best_passage_is_shown() -> None:
    body = "one " * 100 + "passage begins here " + "two " * 100
    assert cut(body, "zebra", (400, 500)).startswith("…passage begins here two")
    assert cut(body, "zebra").startswith("one one")


def test_the_last_passage_is_shown_with_what_comes_before_it() -> None:
    text = cut("one " * 100 + "end", "zebra", (400, 403))
    assert text.endswith("one one end")
    assert len(text) > WIDTH - 20


def test_a_grapheme_longer_than_the_snippet_is_left_out() -> None:
    assert cut("e" + "\u0301" * 1000, "zebra") == "…"


def test_an_ellipsis_stands_only_where_the_body_goes_on() -> None:
    body = "start " + "middle " * 100 + "end"
    assert cut(body, "start").startswith("start")
    assert cut(body, "start").endswith("…")
    assert cut(body, "end").startswith("…")
    assert cut(body, "end").endswith("end")
    assert cut(" " * 5000 + "only" + " " * 5000, "only") == "only"


@settings(max_examples=300)
@given(SENTENCES, st.sampled_from(["word", "cafe", "据库", "b", "zebra", '"a b"']), st.integers(20, 80))
def test_a_snippet_is_a_piece_of_the_body_in_whole_graphemes(parts: list[str], question: str, width: int) -> None:
    body = " ".join(parts)
    text = cut(body, question, width=width)
    folded = " ".join(body.split())
    piece = text.removeprefix("…").removesuffix("…").strip()
    assert len(text) <= width
    assert piece in folded
    graphemes = regex.findall(r"\X", folded)
    assert not piece or any(regex.findall(r"\X", piece) == graphemes[i : i + len(regex.findall(r"\X", piece))]
                            for i in range(len(graphemes)))  # fmt: skip


@settings(max_examples=300)
@given(SENTENCES, st.sampled_from(["word", "cafe", "据库", "b", "e"]))
def test_a_match_is_found_exactly_where_analysis_finds_one(parts: list[str], question: str) -> None:
    body = "-".join(["filler " * 100, *parts, " filler" * 100])
    [term] = parse_query(question).terms
    places = [start for start, _, found in locate(body) if found == term]
    shown = analyse(snippet(body, TextQuery((term,))).strip("…"))
    assert (term in shown) == bool(places)


def test_every_word_begins_as_its_term_says() -> None:
    words = [word for word in gzip.decompress(VOCABULARY.read_bytes()).decode().split() if word.isalpha()]
    wrong = [
        word for word in words for term in analyse(word) if word.isascii() and not word.startswith(get_beginnings(term))
    ]
    assert len(words) > 20_000
    assert wrong == []


def test_a_phrase_is_found_behind_any_number_of_near_matches() -> None:
    text = snippet("a " * 50_000 + "b", TextQuery((), (("a",) * 63 + ("b",),)))
    assert text.endswith("a a b")
