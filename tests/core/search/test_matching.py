from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refdesk.core.search import cosines, matching
from refdesk.core.search.analysis import analyse, parse_query
from refdesk.core.search.matching import EXCERPT_CHARACTERS, NOTHING_BETTER, PARTIAL, STRONG, judge
from refdesk.core.search.snippets import find_terms
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.embedders.local import LocalEmbedder
from refdesk.model import CosineScale, TextQuery

REFUNDS = ("Refund limit is 500 EUR", "Above that a team lead must approve the refund.")
TAP = ("Tap", "Turn off the tap in the kitchen.")
texts = st.text(st.sampled_from("aeinrst dgl.é漢字\n"), max_size=80)


def name(question: str, note: tuple[str, str], cosine: float | None = None) -> str:
    return matching.name(judge(parse_query(question), *note, cosine, cosines.REFERENCE))


def test_by_words_alone_what_holds_what_was_asked_is_strong_and_what_holds_nothing_is_weak() -> None:
    assert name("refund limit", REFUNDS) == "strong"
    assert name("who must approve a refund above the limit", REFUNDS) == "strong"
    assert name("How do I prune an apple tree in winter?", TAP) == "weak"
    assert name("How do I get rid of the pigeons in the kitchen garden?", TAP) == "weak"


def test_one_word_of_a_title_is_not_taken_for_an_answer_but_for_a_part_of_one() -> None:
    assert name("refund", REFUNDS) == "partial"


def test_a_word_that_is_a_part_of_one_in_the_title_counts_as_there() -> None:
    assert name("authentic", ("Reauthentication loop", "")) == "partial"
    assert name("cat", ("Reauthentication loop", "")) == "weak"


def test_the_parts_of_an_identifier_count_as_words_in_title_and_text() -> None:
    assert name("read only root filesystem", ("Pods fail", "Since readOnlyRootFilesystem is set.")) == "strong"
    assert name("max connections", ("maxConnectionsPerHost", "Raise it: café.")) == "strong"
    assert name("25 mb", ("Attachments", "At most 25MB each.")) != "weak"


def test_meaning_decides_where_there_is_a_vector_and_words_help_it() -> None:
    assert name("money back for large sums", REFUNDS, 0.62) == "strong"
    assert name("money back for large sums", REFUNDS, 0.12) == "weak"
    assert name("refund limit", REFUNDS, 0.45) == "strong"
    assert name("prune an apple tree", TAP, 0.45) == "partial"


def test_of_the_words_of_a_question_those_count_as_there_that_stand_together_or_in_the_title() -> None:
    question = parse_query("refund limit of the lead")
    assert matching.cover(question, *REFUNDS) == 1.0
    assert matching.cover(question, *TAP) == 0.0
    apart = "A refund is slow. " + "Something else is written here. " * 40 + "The limit is high."
    assert matching.cover(question, "", apart) == pytest.approx(1 / 3)
    german = parse_query("Wie kann ich meine Passwörter zurücksetzen?")
    note = ("Passwort zurücksetzen", "Passwörter werden im Portal zurückgesetzt, danach wird man abgemeldet.")
    assert matching.cover(german, *note) == 1.0


def test_what_is_asked_in_another_language_is_judged_by_its_forms() -> None:
    note = ("Passwort zurücksetzen", "Passwörter werden im Portal zurückgesetzt, danach wird man abgemeldet.")
    assert name("Wie kann ich meine Passwörter zurücksetzen?", note) == "strong"
    assert name("Wann wird in diesem Jahr die Heizung gewartet?", note) == "weak"


def test_the_same_words_say_less_in_a_long_text() -> None:
    short, long = ("", "Restart the router."), ("", "Restart the router." + " Something else is written here." * 300)
    question = parse_query("restart the router")
    assert judge(question, *long) < judge(question, *short)


def test_a_long_body_is_looked_at_around_its_best_passage() -> None:
    body = "nothing " * 2 * EXCERPT_CHARACTERS + "restart the router"
    question, end = parse_query("restart the router"), len(body)
    assert judge(question, "", body) == 0.0
    assert judge(question, "", body, passage=(end - 18, end)) > PARTIAL


@pytest.mark.parametrize("fill", ["Something else is written here. ", "Etwas ganz anderes steht überall hier. "])
def test_in_a_long_text_words_count_that_stand_together(fill: str) -> None:
    asked = parse_query("restart the router after the update of its firmware")
    words = ["Restart", "router", "update", "firmware"]
    gap = fill * 25
    together, apart = f"{gap * 4}{' '.join(words)}. ", gap.join([*words, ""])
    assert judge(asked, "", together) > judge(asked, "", apart)
    assert judge(asked, "Router firmware", together) > judge(asked, "Router firmware", apart)
    assert judge(asked, "", " ".join(words)) > judge(asked, "", together), "and in a short one each does"


def test_words_that_are_written_otherwise_than_their_terms_are_not_lost_in_a_long_text() -> None:
    gap = "Something else is written here. " * 30
    asked = parse_query("dying batteries")
    assert judge(asked, "", f"{gap}The battery dies. {gap}") > judge(asked, "", f"{gap}The battery lasts. {gap}")


CARD = ("Payments API returns ERR_CARD_402", "Prepaid cards are refused with ERR_CARD_402; ask for another card.")
LOGIN = ("v2.3.1 breaks SAML login", "Roll back to v2.3.0 until v2.3.2 is out. Ticket JIRA-4821, set DATABASE_URL.")
FILL = "The service is restarted by the engineer on call. " * 300


@pytest.mark.parametrize(
    "question",
    ["4821", "JIRA-4821", "what is jira 4821?", "DATABASE_URL", "2.3.1", "v2.3", "ticket 4821"],
)
def test_what_is_called_by_its_exact_name_and_is_there_is_no_weak_match_whatever_the_vector_says(question: str) -> None:
    assert name(question, LOGIN, 0.05) in ("partial", "strong")
    assert name(question, (LOGIN[0], FILL + LOGIN[1]), 0.05) in ("partial", "strong")
    assert judge(parse_query(question), *LOGIN, 0.05, cosines.REFERENCE) >= judge(parse_query(question), *LOGIN)


def test_a_single_word_that_is_there_is_no_weak_match_whatever_the_vector_says() -> None:
    for fill in (FILL, "Größere Beträge brauchen länger. " * 300):
        assert name("needlesix", ("Words", fill + "needlesix"), 0.05) == "partial"
        assert name("needlesix", ("Words", fill + "needleseven"), 0.05) == "weak"
    assert name("needlesix growing", ("Words", FILL + "needlesix"), 0.05) == "weak"


def test_what_has_another_code_is_not_strong_and_weak_where_nothing_else_is_asked() -> None:
    auth = ("Gateway error E_AUTH_1017 at login", "E_AUTH_1017 means that the clock is skewed.")
    update = ("Fehler 0x80070005 beim Update", "Zugriff verweigert: Dienst neu starten.")
    for question, note in [("ERR_CARD_403", CARD), ("what is E_AUTH_1018", auth), ("0x80070006", update)]:
        assert name(question, note, 0.9) == "weak"
        assert name(question, note) == "weak"
    assert name("payments API returns ERR_CARD_403 for prepaid cards", CARD, 0.9) == "partial"
    assert name("payments API returns ERR_CARD_402 for prepaid cards", CARD, 0.9) == "strong"


@pytest.mark.parametrize(
    "question",
    ["err card 402", "ERR-CARD-402", "card_402", "ＥＲＲ＿ＣＡＲＤ＿４０２", "ERR_CARD_402 of order 1234567"],
)
def test_a_code_is_there_however_it_is_written_and_whatever_other_codes_are_asked(question: str) -> None:
    assert name(question, CARD, 0.9) == "strong"


def test_a_code_is_found_in_a_text_of_wide_letters() -> None:
    assert name("ERR_CARD_402", ("", "拒否 ＥＲＲ＿ＣＡＲＤ＿４０２ です"), 0.05) != "weak"
    assert name("80070005", ("", "Fehler 0x80070005"), 0.05) != "weak"


@pytest.mark.parametrize(
    "question",
    ["refund within 30min", "refund limit of 2027", "refund over 500EUR", "refund to IPv6", "refund of a 3rd"],
)
def test_quantities_years_and_known_names_are_no_codes(question: str) -> None:
    assert name(question, REFUNDS, 0.9) == "strong"


def test_of_a_long_text_codes_are_no_condition_and_neither_are_they_of_a_summary() -> None:
    told = (
        "Hi, order 44771234 was charged twice on my card yesterday, billing shows two payments, refund one please today"
    )
    asked = parse_query(f"{told}, the support team lead said that refunds are limited")
    assert matching.name(judge(asked, *REFUNDS, 0.9, cosines.REFERENCE)) == "strong"
    of_summary = judge(parse_query("ERR_CARD_403"), *CARD, 0.9, cosines.REFERENCE, is_summary=True)
    assert matching.name(of_summary) == "strong"


def test_what_a_summary_lacks_weighs_less_but_makes_nothing_strong() -> None:
    strengths = [(judge(asked, *note, is_summary=True), judge(asked, *note)) for asked, note in _list_pairs()]
    assert all(of_summary >= of_text for of_summary, of_text in strengths)
    assert [each >= STRONG for each, _ in strengths] == [each >= STRONG for _, each in strengths]
    assert any(of_summary > of_text + 0.05 for of_summary, of_text in strengths)
    assert matching.name(judge(parse_query("apple tree"), *TAP, is_summary=True)) == "weak"


def _list_pairs() -> list[tuple[TextQuery, tuple[str, str]]]:
    questions = [
        "refund",
        "limit of a card",
        "refund limit",
        "who must approve a refund",
        "turn off the tap",
        "apple tree in the kitchen",
    ]
    return [(parse_query(question), note) for question in questions for note in (REFUNDS, TAP)]


def test_only_an_answer_that_has_hits_and_nothing_better_than_weak_ones_is_noticed() -> None:
    assert matching.get_notice(["weak", "weak"]) == NOTHING_BETTER
    assert matching.get_notice(["weak", "partial"]) is None
    assert matching.get_notice([]) is None


@given(texts, texts, texts, st.none() | st.floats(-1, 1))
def test_a_strength_is_a_share_and_more_cosine_never_weakens_it(
    question: str, title: str, body: str, cosine: float | None
) -> None:
    asked = parse_query(question)
    strength = judge(asked, title, body, cosine, cosines.REFERENCE)
    assert 0.0 <= strength <= 1.0
    if cosine is not None:
        assert judge(asked, title, body, cosine + 0.1, cosines.REFERENCE) >= strength


@given(texts, st.lists(texts, max_size=4))
def test_terms_are_found_as_if_the_text_were_analysed(text: str, words: list[str]) -> None:
    terms = {term for word in words for term in analyse(word)}
    assert find_terms(text, terms) == terms & set(analyse(text))


async def test_the_known_scales_are_what_is_measured() -> None:
    async with LocalEmbedder() as local:
        measured = await cosines.measure(local)
    assert measured is not None
    assert measured.unrelated == pytest.approx(cosines.REFERENCE.unrelated, abs=0.02)
    assert measured.related == pytest.approx(cosines.REFERENCE.related, abs=0.02)
    assert cosines.KNOWN[local.model.name] == cosines.REFERENCE
    hashing = HashingEmbedder()
    assert await cosines.measure(hashing) is None
    assert cosines.KNOWN[hashing.model.name] is None


def test_another_models_cosines_are_read_on_its_own_scale() -> None:
    crowded = CosineScale(unrelated=0.72, related=0.86)
    asked = parse_query("money back for large sums")
    assert judge(asked, *REFUNDS, 0.74, crowded) < PARTIAL
    assert judge(asked, *REFUNDS, 0.9, crowded) > STRONG
    assert judge(asked, *REFUNDS, 0.74, cosines.REFERENCE) > STRONG
    assert judge(asked, *REFUNDS, 0.74, None) == judge(asked, *REFUNDS)
