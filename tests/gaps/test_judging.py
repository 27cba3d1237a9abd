"""What counts as an answer: the words of the question count beside how well something matches."""

from __future__ import annotations

from refdesk.core.search.providers import HitReference, ProviderHit
from refdesk.gaps.judging import ANSWERED, judge_answer, judge_hits, weigh
from refdesk.gaps.likeness import Wording
from refdesk.model import Collection
from refdesk.stores.memory import MemoryStore
from tests.stores.samples import make_document

ASKED = Wording("who approves a refund above the limit")
SUBJECT, ANSWER = "Refunds are paid to the card.", "A team lead approves a refund above the limit."


def make_hit(id: str, strength: float) -> ProviderHit:
    return ProviderHit(id=id, title="", snippet=SUBJECT, strength=strength, reference=HitReference("", {}))


def test_of_two_matches_as_strong_only_the_one_that_has_the_words_is_an_answer() -> None:
    assert weigh(0.45, 0.2) < ANSWERED <= weigh(0.45, 1.0)
    assert (weigh(0.0, 0.0), weigh(1.0, 1.0)) == (0.0, 1.0)


def test_a_document_without_vectors_is_judged_by_its_words() -> None:
    answer, subject = make_document("a", ANSWER, title=""), make_document("b", SUBJECT, title="")
    assert judge_answer(ASKED, subject, []) < ANSWERED <= judge_answer(ASKED, answer, [])


async def test_hits_are_judged_by_what_is_kept_and_others_by_what_they_show() -> None:
    store, notes = MemoryStore(), Collection("acme", "knowledge")
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("kept", ANSWER, title="", collection=notes)])
    kept, live = await judge_hits(store, "acme", "knowledge", ASKED, [make_hit("kept", 0.45), make_hit("live", 0.45)])
    assert (kept.item, live.item) == ("knowledge/kept", "knowledge/live")
    assert live.strength < ANSWERED <= kept.strength
