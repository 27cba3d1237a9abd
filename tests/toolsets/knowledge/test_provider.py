"""How knowledge takes part in a search over everything, on every engine."""

from __future__ import annotations

from datetime import timedelta

from refdesk.core.search.providers import LeftOut, Period, ProviderAnswer, Question
from refdesk.toolsets.knowledge.provider import find
from tests.core.fakes import NOW
from tests.toolsets.knowledge.conftest import Desk


async def ask(desk: Desk, text: str, **more: object) -> ProviderAnswer:
    found = await find(desk.context, Question(text, **more))  # pyright: ignore[reportArgumentType]
    assert isinstance(found, ProviderAnswer)
    return found


async def test_entries_come_as_their_own_search_ranks_them_and_the_fitting_one_is_strongest(desk: Desk) -> None:
    for title in ("Refund limit is 500 EUR", "Opening hours of the office", "Refund by cheque"):
        await desk.store(title, f"{title}, as told in May.")
    await desk.embed()
    found = await ask(desk, "refund limit")
    assert [hit.id for hit in found.hits] == [result.id for result in await desk.search("refund limit")]
    relevances = {hit.title: hit.relevance for hit in found.hits}
    assert max(relevances, key=relevances.__getitem__) == "Refund limit is 500 EUR"
    assert all(0.0 <= relevance <= 1.0 for relevance in relevances.values())
    best = found.hits[0]
    assert (best.author, best.freshness, best.reference.uri) == ("ann", NOW, f"knowledge://{best.id}")


async def test_the_period_is_that_of_creation_with_both_ends_and_eats_no_slots(desk: Desk) -> None:
    ids = list[str]()
    for number in range(6):
        ids.append((await desk.store(f"Refund rule {number}", "Refund " * (6 - number))).id)
        desk.clock.advance(timedelta(days=1))
    day = NOW + timedelta(days=4)
    found = await ask(desk, "refund", period=Period(day, day), limit=1)
    assert [hit.id for hit in found.hits] == [ids[4]]
    assert {hit.id for hit in (await ask(desk, "refund", period=Period(day))).hits} == set(ids[4:])
    assert {hit.id for hit in (await ask(desk, "refund", period=Period(until=NOW))).hits} == {ids[0]}


async def test_old_wording_leads_to_what_holds_if_that_is_of_the_period(desk: Desk) -> None:
    old = await desk.store("Parcel lockers open at six")
    desk.clock.advance(timedelta(days=1))
    new = await desk.store("They open at eight now")
    await desk.supersede(old.id, new.id)
    later = NOW + timedelta(days=1)
    assert [hit.id for hit in (await ask(desk, "parcel lockers", period=Period(later))).hits] == [new.id]
    assert (await ask(desk, "parcel lockers", period=Period(until=NOW))).hits == ()


async def test_tags_must_all_hold_and_one_that_none_can_carry_leaves_the_toolset_out(desk: Desk) -> None:
    both = await desk.store("Refund limit", tags=["policy", "sign in"])
    await desk.store("Refund limit again", tags=["policy"])
    assert [hit.id for hit in (await ask(desk, "refund", tags=("Policy", "sign_in"))).hits] == [both.id]
    assert isinstance(await find(desk.context, Question("refund", tags=("R&D",))), LeftOut)


async def test_another_orgs_entries_are_not_found(desk: Desk) -> None:
    await desk.as_agent("eve", "other").store("Refund limit of ours")
    assert (await ask(desk, "refund limit")).hits == ()
