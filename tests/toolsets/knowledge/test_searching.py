from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import ValidationError

from refdesk.core.search.cosines import REFERENCE
from refdesk.core.search.matching import NOTHING_BETTER
from refdesk.core.search.providers import ProviderAnswer, Question
from refdesk.core.search.semantics import MISSING_MEANING, Semantics, SemanticStatus
from refdesk.model import Candidate, Collection, CosineScale, Document, TextQuery
from refdesk.toolsets.knowledge.models import SearchInput
from refdesk.toolsets.knowledge.options import Fusion, Options
from refdesk.toolsets.knowledge.provider import find as find_for_all
from refdesk.toolsets.knowledge.ranking import rank
from tests.core.fakes import NOW, ScriptedEmbedder
from tests.toolsets.knowledge.conftest import Desk


async def find(desk: Desk, query: str, **more: object) -> list[str]:
    return [result.title for result in await desk.search(query, **more)]


async def test_an_entry_is_found_by_its_words_at_once_and_by_its_vector_later(desk: Desk) -> None:
    await desk.store("Night maintenance", "The bank's gateway is down on Sundays.")
    [result] = await desk.search("gateway down")
    assert (result.embedding_status, result.snippet) == ("pending", "The bank's gateway is down on Sundays.")
    await desk.embed()
    [result] = await desk.search("gateway down")
    assert (result.embedding_status, result.score) == ("ready", 1.0)


async def test_an_entry_whose_title_contains_the_question_is_found_though_no_whole_word_matches(desk: Desk) -> None:
    await desk.store("Reauthentication loop")
    assert await find(desk, "authentic") == ["Reauthentication loop"]
    assert await find(desk, "AUTHENTIC") == ["Reauthentication loop"]


async def test_a_question_about_something_else_gets_weak_matches_and_a_notice_whatever_their_score(desk: Desk) -> None:
    await desk.store("Tap", "Turn off the tap of the apple juice before you leave.")
    await desk.store("Refund limit is 500 EUR", "Above that a team lead must approve.")
    await desk.embed()
    answer = await desk.ask("How do I prune an apple tree in winter?")
    assert answer.results[0].title == "Tap"
    assert {one.match for one in answer.results} == {"weak"}
    assert answer.results[0].score > 0.9
    assert answer.notice == NOTHING_BETTER
    assert next(iter(answer.model_dump())) == "notice"
    found = await desk.ask("refund limit")
    assert (found.results[0].match, found.notice) == ("strong", None)


async def test_an_answer_says_that_nothing_has_vectors_yet(desk: Desk) -> None:
    assert (await desk.ask("card payments")).notice is None
    await desk.store("Card payments", "The gateway times out.")
    for query, titles in (("card payments", ["Card payments"]), ("no invoice", [])):
        answer = await desk.ask(query)
        assert ([each.title for each in answer.results], answer.notice) == (titles, MISSING_MEANING["missing"])
    assert (await desk.ask("no invoice", tags=["other"])).notice is None
    await desk.embed()
    assert (await desk.ask("card payments")).notice is None


@pytest.mark.parametrize(
    ("embedder", "status"),
    [
        (ScriptedEmbedder(is_ready=False), "loading"),
        (ScriptedEmbedder(is_down=True), "unavailable"),
        (ScriptedEmbedder(foreign=frozenset({"card payments"})), "foreign"),
    ],
)
async def test_an_answer_says_why_vectors_took_no_part(
    desk: Desk, embedder: ScriptedEmbedder, status: SemanticStatus
) -> None:
    await desk.store("Card payments", "The gateway times out.")
    desk.base = replace(desk.base, semantics=Semantics(desk.base.store, embedder))
    answer = await desk.ask("card payments")
    assert ([each.title for each in answer.results], answer.notice) == (["Card payments"], MISSING_MEANING[status])
    found = await find_for_all(desk.context, Question("card payments"))
    assert isinstance(found, ProviderAnswer)
    assert found.note == answer.notice


async def test_a_query_of_punctuation_alone_is_answered_with_what_it_lacks(desk: Desk) -> None:
    await desk.store("Card payments", "The gateway times out.")
    desk.base = replace(desk.base, semantics=Semantics(desk.base.store, ScriptedEmbedder(foreign=frozenset({"!!!"}))))
    answer = await desk.ask("!!!")
    assert (answer.results, answer.notice) == ([], MISSING_MEANING["wordless"])


async def test_where_no_words_match_the_model_is_waited_for(desk: Desk) -> None:
    embedder = ScriptedEmbedder()
    desk.base = replace(desk.base, semantics=Semantics(desk.base.store, embedder))
    await desk.store("Card payments", "The gateway times out.")
    await desk.embed()
    embedder.is_ready, loads = False, embedder.loads
    assert (await desk.ask("card payments")).notice == MISSING_MEANING["loading"]
    assert embedder.loads == loads
    answer = await desk.ask("no invoice")
    assert [each.title for each in answer.results] == ["Card payments"]
    assert (answer.notice, embedder.loads) == (NOTHING_BETTER, loads + 1)


async def test_a_least_score_leaves_out_what_is_about_something_else(desk: Desk) -> None:
    await desk.store("Tap", "Turn off the tap of the apple juice before you leave.")
    assert await find(desk, "How do I prune an apple tree in winter?", minScore=0.0) == ["Tap"]
    assert await find(desk, "How do I prune an apple tree in winter?", minScore=0.5) == []
    assert await find(desk, "turn off the tap", minScore=0.5) == ["Tap"]


async def test_text_is_never_syntax(desk: Desk) -> None:
    await desk.store("Discounts", "100% of orders_old")
    assert await find(desk, "%") == []
    assert await find(desk, "_") == []
    assert await find(desk, '"orders') == ["Discounts"]
    assert await find(desk, 'the message "orders old or new"') == ["Discounts"]


async def test_an_emoji_is_searched_like_a_word(desk: Desk) -> None:
    await desk.store("Rollout", "We ship today 🚀")
    await desk.store("👩🏽\u200d💻 on call", "Ask her first.")
    await desk.store("Rollback", "We do not ship today.")
    await desk.embed()
    [result, *_] = await desk.search("🚀")
    assert (result.title, result.snippet) == ("Rollout", "We ship today 🚀")
    assert (await find(desk, "👩\u200d💻"))[0] == "👩🏽\u200d💻 on call"


async def test_several_tags_mean_all_of_them_in_any_spelling(desk: Desk) -> None:
    await desk.store("refund one", tags=["a", "b-c"])
    await desk.store("refund two", tags=["a"])
    assert await find(desk, "refund", tags=["A", "B_C"]) == ["refund one"]
    assert len(await find(desk, "refund", tags=["a"])) == 2


async def test_expired_entries_are_left_out_from_that_instant_on_unless_asked_for(desk: Desk) -> None:
    await desk.store("refund", expiresAt=(NOW + timedelta(hours=1)).isoformat())
    desk.clock.advance(timedelta(minutes=59))
    assert await find(desk, "refund") == ["refund"]
    desk.clock.advance(timedelta(minutes=1))
    assert await find(desk, "refund") == []
    assert await find(desk, "refund", includeExpired=True) == ["refund"]


async def test_superseded_entries_are_left_out_unless_asked_for(desk: Desk) -> None:
    old, new = (await desk.store("refund limit 300")).id, (await desk.store("refund limit 500")).id
    await desk.supersede(old, new)
    assert await find(desk, "refund limit") == ["refund limit 500"]
    results = {result.id: result for result in await desk.search("refund limit", includeSuperseded=True)}
    assert (results[old].superseded_by, results[new].superseded_by) == (new, None)


async def test_whole_entries_are_read_only_where_they_are_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(await desk.store(f"refund rule {number}")).id for number in range(30)]
    head = (await desk.store("What holds instead")).id
    await desk.supersede(entries[0], head)
    read: list[str] = []
    get_documents = desk.base.store.get_documents

    async def note(_: object, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        read.extend(ids)
        return await get_documents(collection, ids)

    monkeypatch.setattr(type(desk.base.store), "get_documents", note)
    shown = [result.id for result in await desk.search("refund rule", limit=3)]
    # Engines that are asked over a network have sent most of them along.
    assert (len(shown), read) == (3, [id for id in shown if id in read])
    assert head in [result.id for result in await desk.search("refund rule", limit=50)]


async def test_a_head_counts_only_while_it_passes_the_filters_itself(desk: Desk) -> None:
    old = (await desk.store("Zebra printers jam", tags=["a"])).id
    soon = (NOW + timedelta(hours=1)).isoformat()
    head = (await desk.store("Devices halt", expiresAt=soon, tags=["b"])).id
    await desk.supersede(old, head)
    assert [result.id for result in await desk.search("zebra")] == [head]
    assert [result.id for result in await desk.search("zebra", tags=["b"])] == [head]
    assert await desk.search("zebra", tags=["a"]) == []
    desk.clock.advance(timedelta(hours=1))
    assert await desk.search("zebra") == []


async def test_the_old_wording_leads_to_the_head_and_says_how(desk: Desk) -> None:
    old = (await desk.store("Zebra printers jam", "Open the flap.")).id
    middle = (await desk.store("Label devices stop", "Open the lid.")).id
    head = (await desk.store("Devices of stock room halt", "Call the vendor.")).id
    await desk.supersede(old, middle)
    await desk.supersede(middle, head)
    [result] = await desk.search("zebra printers")
    assert (result.id, result.matched_via, result.snippet) == (head, old, "Call the vendor.")


async def test_a_head_that_matches_itself_does_not_claim_an_old_wording(desk: Desk) -> None:
    old, new = (await desk.store("refund", "a long story about a refund")).id, (await desk.store("refund")).id
    await desk.supersede(old, new)
    [result] = await desk.search("refund")
    assert (result.id, result.matched_via) == (new, None)


async def test_a_head_that_the_filters_refuse_is_not_reached_by_old_wording(desk: Desk) -> None:
    old, new = (await desk.store("zebra", tags=["x"])).id, (await desk.store("stripes", tags=["y"])).id
    await desk.supersede(old, new)
    assert await find(desk, "zebra", tags=["x"]) == []
    assert await find(desk, "zebra", tags=["y"]) == ["stripes"]


async def test_filters_never_eat_result_slots(desk: Desk) -> None:
    for number in range(130):
        await desk.store(f"refund refund refund {number}", tags=["common"])
    for number in range(5):
        await desk.store(f"about one refund, told at some length {number}", "x " * 200, tags=["rare"])
    assert len(await find(desk, "refund", tags=["rare"], limit=5)) == 5


async def test_superseded_entries_never_eat_result_slots(desk: Desk) -> None:
    olds = [(await desk.store(f"refund refund refund {number}")).id for number in range(110)]
    head = (await desk.store("entirely different words")).id
    for old in olds:
        await desk.supersede(old, head)
    for number in range(5):
        await desk.store(f"about one refund, told at some length {number}", "x " * 200)
    found = await find(desk, "refund", limit=6)
    assert found[0] == "entirely different words"
    assert len(found) == 6


async def test_the_last_sentence_of_a_long_body_can_be_found_and_is_shown(desk: Desk) -> None:
    await desk.store("Handbook", "Nothing to see here. " * 1500 + "The safe's code is walrus.")
    await desk.embed()
    [result] = await desk.search("walrus")
    assert "walrus" in result.snippet
    assert len(result.snippet) <= 240


async def test_a_score_below_the_least_asked_for_is_left_out(desk: Desk) -> None:
    await desk.store("refund limit of gold members")
    await desk.store("limit")
    await desk.embed()
    scores = [result.score for result in await desk.search("refund limit")]
    assert scores == sorted(scores, reverse=True)
    assert len(await desk.search("refund limit", minScore=scores[0])) == 1
    assert await desk.search("refund limit", minScore=1.0) == [] or scores[0] == 1.0


async def test_ties_come_newest_first(desk: Desk) -> None:
    for title in ("refund", "refund"):
        await desk.store(title)
        desk.clock.advance(timedelta(minutes=1))
    first, second = await desk.search("refund")
    assert first.created_at > second.created_at


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": ""},
        {"query": "  "},
        {"query": "x" * 2001},
        {"limit": 0},
        {"limit": 51},
        {"minScore": 1.1},
        {"minScore": -0.1},
        {"efSearch": 0},
        {"efSearch": 201},
        {"tags": ["!"]},
        {"offset": 1},
    ],
)
def test_what_the_contract_does_not_allow_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SearchInput.model_validate({"query": "x", **wrong})


ASKED = TextQuery(("refund",))


def test_first_in_every_list_scores_one_and_a_pending_vector_costs_nothing() -> None:
    found = [
        Candidate("both", NOW, lexical=2.0, cosine=0.9),
        Candidate("words", NOW, lexical=1.0, cosine=0.1),
        Candidate("pending", NOW, lexical=3.0),
    ]
    scores = {candidate.id: score for candidate, score in rank(found, ASKED)}
    assert scores["pending"] == 1.0
    assert 1.0 > scores["both"] > scores["words"] > 0.0
    only = Candidate("only", NOW, lexical=1.0, cosine=0.5, title_contains=True)
    assert [score for _, score in rank([only], ASKED)] == [1.0]


def test_entries_that_hold_the_question_as_it_is_written_come_first_in_the_list_by_words() -> None:
    found = [
        Candidate("stems", NOW, lexical=3.0),
        Candidate("written", NOW, lexical=1.0, as_written=True),
        Candidate("signs", NOW, as_written=True),
    ]
    assert [candidate.id for candidate, _ in rank(found, ASKED)] == ["written", "signs", "stems"]


def test_meaning_counts_by_how_near_it_is_and_not_by_its_place() -> None:
    # By places alone the fifty that are nearly as far from the question as the one are all better than it.
    vague = [Candidate(f"vague{n:02}", NOW, lexical=0.0, cosine=0.21) for n in range(50)]
    found = [*vague, Candidate("words", NOW, lexical=4.0, cosine=0.2)]
    assert rank(found, ASKED)[0][0].id == "words"
    assert rank([*vague, Candidate("near", NOW, cosine=0.9), found[-1]], ASKED)[0][0].id == "words"


@pytest.mark.parametrize("how", ["rrf", "convex"])
def test_meaning_counts_as_much_by_a_model_that_puts_all_texts_near_each_other(how: Fusion) -> None:
    found = [Candidate("near", NOW, lexical=0.9, cosine=0.42), Candidate("words", NOW, lexical=2.0, cosine=0.2)]
    narrow = CosineScale(unrelated=0.2, related=0.42)
    assert [candidate.id for candidate, _ in rank(found, ASKED, how)] == ["words", "near"]
    in_order = [candidate for candidate, _ in rank(found, ASKED, how, scale=narrow)]
    assert in_order == found
    assert rank(found, ASKED, how, scale=REFERENCE) == rank(found, ASKED, how)


async def test_the_convex_fusion_can_be_chosen_and_its_scores_are_absolute(desk: Desk) -> None:
    for number in range(3):
        await desk.store(f"Refund rule {number}", "The limit is 300.")
    await desk.store("Reauthentication")
    await desk.embed()
    convex = replace(desk, base=replace(desk.base, options={"knowledge": Options(fusion="convex")}))
    [best, *_] = await convex.search("refund limit of a voucher that nobody has heard of")
    assert best.title == "Refund rule 2"
    assert best.score < 0.9 < (await desk.search("refund limit of a voucher that nobody has heard of"))[0].score
    assert "Reauthentication" in await find(convex, "authentic")
