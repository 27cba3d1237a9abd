from __future__ import annotations

import sys
import threading
import unicodedata
from random import Random

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from refdesk.core.search.analysis import (
    MAX_PHRASES,
    MAX_TERMS,
    Pieces,
    analyse,
    analyse_document,
    get_stop_terms,
    locate,
    parse_query,
)
from refdesk.core.search.folding import fold
from refdesk.model import TextQuery

ANY_TEXT = st.text(st.characters(categories=None))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Connecting", "connects"),
        ("CAFÉ", "cafe\u0301"),
        ("Straße", "STRASSE"),
        ("ＡＫＳ", "aks"),
        ("İstanbul", "istanbul"),
        ("Łódź smørrebrød", "lodz smorrebrod"),
        ("soft\u00adhyphen", "softhyphen"),
        ("John’s", "John's"),
        ("John's", "john"),
        ("don’t", "dont"),
        ("ﬁre", "fire"),
        ("٤٢", "42"),
        ("½", "1⁄2"),
        ("VMs", "vm"),
        ("ｶﾞｷﾞ", "ガギ"),
        ("👍🏿", "👍"),
        ("❤️", "❤"),
        ("1️⃣", "1"),
    ],
)
def test_spellings_of_the_same_words_give_the_same_terms(one: str, other: str) -> None:
    assert analyse(one) == analyse(other) != []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("AKS-1.28", ["ak", "1", "28"]),
        ("node.js", ["node", "js"]),
        ("joe.doe@example.com", ["joe", "doe", "exampl", "com"]),
        ("snake_case", ["snake", "case"]),
        ("ASP.NET", ["asp", "net"]),
        ("v2.10.3", ["v2", "10", "3"]),
        ("ship it🚀🚀now", ["ship", "it", "🚀", "🚀", "now"]),
        ("👨🏽\u200d👩\u200d👧", ["👨", "👩", "👧"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("Azure™ © 2026 ▪ ready‼", ["azur", "2026", "readi"]),
    ],
)
def test_parts_of_technical_names_are_terms(text: str, parts: list[str]) -> None:
    assert analyse(text) == parts


def test_languages_named_with_signs_are_not_single_letters() -> None:
    assert analyse("C# and C++, not C or a#b") == ["c#", "and", "c++", "not", "c", "or", "a", "b"]


def test_scripts_without_blanks_give_overlapping_pairs() -> None:
    assert analyse("数据库 a 人 서울시") == ["数据", "据库", "a", "人", "서울", "울시"]


def test_stop_words_and_repetitions_stay_in_documents() -> None:
    assert analyse("the cat and the cat") == ["the", "cat", "and", "the", "cat"]


@given(ANY_TEXT)
def test_any_string_is_analysed_and_each_term_located(text: str) -> None:
    located = list(locate(text))
    assert [term for _, _, term in located] == analyse(text)
    assert all(term and 0 <= start < end <= len(text) for start, end, term in located)


_ASCII_PIECES = st.sampled_from([*map(chr, range(128)), "C#", "c++", "'s", "n't", "'LL", "it's", "A_b", "x9"])


@settings(max_examples=500)
@given(pieces=st.lists(_ASCII_PIECES, max_size=20))
def test_plain_ascii_gives_the_terms_that_any_text_would(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert analyse(text) == [term for _, _, term in locate(text)] == analyse(f"{text} \u2014")


@given(pieces=st.lists(ANY_TEXT, max_size=8), blank=st.sampled_from(" \n\t\r\f\v"))
def test_what_stands_between_blanks_gives_the_same_terms_by_itself(pieces: list[str], blank: str) -> None:
    text = blank.join(pieces)
    assert [term for piece in text.split(blank) for term in analyse(piece)] == analyse(text)


def test_of_a_common_piece_is_made_once_what_many_others_come_between() -> None:
    made = list[str]()
    pieces = Pieces(lambda piece: made.append(piece) or len(made), 8)
    for number in range(100):
        assert pieces["common"] == 1
        assert pieces[str(number)] == number + 2
    assert made == ["common", *map(str, range(100))]
    assert len(pieces) <= 4


@given(ANY_TEXT)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_normal_forms_do_not_matter(text: str) -> None:
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    assert analyse(forms[0]) == analyse(forms[1])


def test_located_terms_carry_their_offsets() -> None:
    text = "Die Städte: 数据库"
    assert [(text[start:end], term) for start, end, term in locate(text)] == [
        ("Die", "die"),
        ("Städte", "stadt"),
        ("数据", "数据"),
        ("据库", "据库"),
    ]


@pytest.mark.parametrize(
    "unit", ["a", "e\u0301", "a'", '"', "ﷺ", "中", "C#", "\ud800", "a\u0301 ", "\x00", "½", '"a" ']
)
def test_hostile_text_gives_no_more_terms_than_it_has_characters(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    assert len(analyse(text)) <= len(text)
    assert len(parse_query(text).terms) <= MAX_TERMS


def test_a_word_of_any_length_gives_short_terms() -> None:
    assert max(map(len, analyse("x" * 100_000 + " " + "ﷺ" * 100_000))) <= 64


def test_threads_get_the_terms_one_thread_gets() -> None:
    words = [f"{stem}{number}ational" for number in range(3000) for stem in ("relat", "organiz")]
    terms: list[list[str]] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait(30)
        terms.append(analyse(" ".join(words)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    finally:
        sys.setswitchinterval(interval)
    stemmer = Stemmer.Stemmer("english")
    assert terms == [[stemmer.stemWord(word) for word in words]] * 4


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("How do I connect my phones?", TextQuery(("connect", "phone"))),
        ("connect Connecting CONNECTS", TextQuery(("connect",))),
        ("what is the", TextQuery(("what", "is", "the"))),
        ('"private endpoint" for storage', TextQuery(("storag",), (("privat", "endpoint"),))),
        ('"out of the box"', TextQuery((), (("out", "of", "the", "box"),))),
        ('"kubernetes" upgrade', TextQuery(("upgrad",), (("kubernet",),))),
        ("“curly quotes” „low“ ＂wide＂", TextQuery((), (("cur", "quot"), ("low",), ("wide",)))),
        ('"one" "one"', TextQuery((), (("one",),))),
        ('"unbalanced phrase', TextQuery(("unbalanc", "phrase"))),
        ('12" monitor or 15" screen', TextQuery(("12", "monitor", "15", "screen"))),
        ('什么是"数据库"', TextQuery(("什么", "么是"), (("数据", "据库"),))),
        ('"" the', TextQuery(("the",))),
        ('"the phrase" the', TextQuery((), (("the", "phrase"),))),
        ("foo AND bar* OR title:x NEAR(a,b) -c ^2", TextQuery(("foo", "bar", "titl", "x", "near", "b", "c", "2"))),
        ("?!", TextQuery(())),
        ("", TextQuery(())),
    ],
)
def test_a_question_becomes_terms_and_phrases(text: str, query: TextQuery) -> None:
    assert parse_query(text, quotes_bind=True) == query


def test_quotes_that_do_not_bind_are_just_text() -> None:
    assert parse_query('"private endpoint" for storage') == parse_query("private endpoint for storage")


def test_a_document_in_another_language_has_terms_of_that_language_behind_those_of_every_text() -> None:
    title, body = "Abgelaufene Zertifikate", "Das Zertifikat des Servers ist abgelaufen und wird hier erneuert."
    in_title, in_body = analyse_document(title, body)
    assert in_title[:2] == analyse(title)
    assert in_body[: len(analyse(body))] == analyse(body)
    assert "de.zertifikat" in in_title
    assert "de.zertifikat" in in_body
    assert analyse_document("Expired", "The certificate is expired.") == (
        ["expir"],
        analyse("The certificate is expired."),
    )


def test_a_question_in_another_language_asks_for_both_without_the_stop_words_of_both() -> None:
    terms = parse_query("Wie erneuere ich die Zertifikate in the cloud?").terms
    assert terms == ("erneuer", "zertifik", "cloud", "de.erneu", "de.zertifikat", "de.the", "de.cloud")
    assert (
        len(parse_query("Wie ist das " + " ".join(f"Wort{chr(97 + n % 26) * (n // 26 + 1)}" for n in range(90))).terms)
        == MAX_TERMS
    )


def test_of_a_long_question_each_part_is_asked_for_in_its_own_language() -> None:
    english = "Since the update of last night the gateway refuses every connection, and this is what its log says. " * 3
    german = "Der Vorgang wurde abgebrochen, weil die Zertifikate des Servers nicht mehr gültig sind. "
    terms = parse_query(english + "\n" + german).terms
    assert {"gateway", "zertifik", "de.zertifikat"} < {*terms}
    assert not {"de.gateway", "the", "der", "de.die"} & {*terms}
    assert parse_query(english).terms == tuple(term for term in terms if term in analyse(english))
    assert parse_query(german + "\n" + english).terms[-1] == "de.gultig"


def test_a_question_is_cut_to_its_first_terms() -> None:
    terms = parse_query(" ".join(f"w{number}" for number in range(MAX_TERMS + 1))).terms
    assert terms == tuple(f"w{number}" for number in range(MAX_TERMS))


def test_quoted_words_beyond_the_last_phrase_are_plain_words() -> None:
    query = parse_query(" ".join(f'"p{number}"' for number in range(MAX_PHRASES + 1)), quotes_bind=True)
    assert len(query.phrases) == MAX_PHRASES
    assert query.terms == (f"p{MAX_PHRASES}",)


def test_a_phrase_is_cut_to_its_first_terms() -> None:
    [phrase] = parse_query('"' + "word " * 1000 + '"', quotes_bind=True).phrases
    assert phrase == ("word",) * MAX_TERMS


def test_names_are_not_stop_words() -> None:
    names = ["may", "us", "go", "c", "net", "office", "teams", "out", "up", "down", "back", "off"]
    assert not get_stop_terms() & {term for name in names for term in analyse(name)}


@settings(max_examples=50)
@given(ANY_TEXT)
def test_a_question_with_a_word_asks_for_something(text: str) -> None:
    for quotes_bind in (False, True):
        query = parse_query(text, quotes_bind=quotes_bind)
        assert bool(query.terms or query.phrases) == bool(analyse(text))


def test_a_text_of_ascii_has_the_terms_of_the_same_text_with_a_sign_of_another_script_behind_it() -> None:
    random = Random(5)
    for _ in range(2000):
        text = "".join(random.choice("aB1 '_#+s.-\n\x00") for _ in range(random.randrange(40)))
        text += random.choice(["", "x" * random.randrange(60, 70)])
        assert analyse(f"{text} \u00df") == [*analyse(f"{text} "), "ss"]
