"""The keeper of gaps below its public doors: what is alike, what is forgotten, what comes between, who is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.errors import StoreError
from refdesk.gaps import records
from refdesk.gaps.judging import Best
from refdesk.gaps.keeping import Keeper
from refdesk.gaps.likeness import ALIKE, Wording, compare
from refdesk.gaps.missed import Bounds, Missed, Waiting
from refdesk.model import Principal
from refdesk.stores.memory import MemoryStore

ANN = Principal("acme", "ann", frozenset({"knowledge:read"}))


@dataclass
class StoppedClock:
    instant: datetime = datetime(2026, 11, 23, tzinfo=UTC)

    def now(self) -> datetime:
        return self.instant


@dataclass
class World:
    clock: StoppedClock = field(default_factory=StoppedClock)
    best: Best = field(default_factory=lambda: Best(0.1))
    told: int = 0
    failing: bool = False
    waiting: Waiting = field(default_factory=Waiting)
    store: MemoryStore = field(default_factory=MemoryStore)

    def make_keeper(self, bounds: Bounds | None = None) -> Keeper:
        async def ask(missed: Missed) -> Best:
            del missed
            if self.failing:
                raise StoreError("The store is away.")
            return self.best

        base = KnowledgeBase(self.store, clock=self.clock)
        reach: Sequence[str] = ("knowledge",)
        keeper = Keeper(base, self.waiting, ask, lambda _: reach, bounds or Bounds())
        keeper.on_change = self.note
        return keeper

    def note(self) -> None:
        self.told += 1

    def miss(self, text: str, who: Principal = ANN) -> None:
        self.waiting.note(Missed(who, text, ("knowledge",), self.clock.now()))


@pytest.fixture
def world() -> World:
    return World()


async def list_questions(world: World, org: str = "acme") -> list[list[str]]:
    return [[one.text for one in gap.asked] for gap in await records.list_gaps(world.store, org)]


async def test_wordings_of_one_question_are_one_gap_and_numbers_keep_them_apart(world: World) -> None:
    for text in ("reset of the label printer", "the label printer's reset", "label printer error 17", "bus to Porto"):
        world.miss(text)
    world.miss("label printer error 42")
    await world.make_keeper().run_until_done()
    assert sorted(map(len, await list_questions(world))) == [1, 1, 1, 2]
    assert compare(Wording("label printer error 17"), Wording("label printer error 42")) == 0.0
    assert compare(Wording("reset of the label printer"), Wording("the label printer's reset")) >= ALIKE


async def test_what_is_asked_again_while_it_waits_counts_and_takes_one_place(world: World) -> None:
    for _ in range(5000):
        world.miss("bus to Porto")
    assert (len(world.waiting), world.waiting.dropped.total()) == (1, 0)
    await world.make_keeper().run_until_done()
    [gap] = await records.list_gaps(world.store, "acme")
    assert gap.asked[0].count == 5000


async def test_what_the_store_refuses_is_counted_as_dropped_and_that_is_kept_later(world: World) -> None:
    keeper, world.failing = world.make_keeper(), True
    world.miss("bus to Porto")
    with pytest.raises(StoreError):
        await keeper.run_until_done()
    world.failing = False
    await keeper.run_once()
    record = await world.store.get_metadata(records.make_dropped_key("acme"))
    assert records.read_dropped(record) == 1
    await keeper.run_once()
    assert await world.store.get_metadata(records.make_dropped_key("acme")) == record


async def test_what_nobody_asks_for_too_long_is_forgotten_with_what_became_of_it(world: World) -> None:
    keeper = world.make_keeper(Bounds(timedelta(days=10)))
    world.miss("bus to Porto")
    await keeper.run_until_done()
    [gap] = await records.list_gaps(world.store, "acme")
    async with world.store.transaction() as transaction:
        await transaction.put_metadata([records.write_became("acme", gap.id, records.Became("dismissed", by="ann"))])
    world.clock.instant += timedelta(days=9)
    assert await keeper.forget_old() == 0
    world.miss("tram to Porto harbour at night")
    await keeper.run_until_done()
    world.clock.instant += timedelta(days=1)
    assert await keeper.forget_old() == 1
    assert await list_questions(world) == [["tram to Porto harbour at night"]]
    assert await world.store.list_metadata(records.STATE) == []


async def test_no_more_gaps_are_kept_than_wanted_the_newest_first(world: World) -> None:
    keeper = world.make_keeper(Bounds(most=2))
    for text in ("bus to Porto", "lunch in Quito", "keys of the cellar"):
        world.miss(text)
        await keeper.run_until_done()
        world.clock.instant += timedelta(minutes=1)
    assert sorted(await list_questions(world)) == [["keys of the cellar"], ["lunch in Quito"]]


async def test_a_gap_that_was_answered_while_it_was_grouped_is_closed(world: World) -> None:
    keeper, asked = world.make_keeper(), 0

    async def ask(missed: Missed) -> Best:
        nonlocal asked
        del missed
        asked += 1
        return Best(0.1) if asked == 1 else Best(0.9, "knowledge/n1")

    marks = iter("ab")

    async def get_change_mark() -> str:
        return next(marks)

    keeper.ask = ask
    world.store.get_change_mark = get_change_mark  # type: ignore[method-assign]
    world.miss("bus to Porto")
    await keeper.run_until_done()
    [gap] = await records.list_gaps(world.store, "acme")
    assert (gap.became.state, gap.became.answer) == ("answered", "knowledge/n1")
    assert world.told


async def test_orgs_never_share_a_gap(world: World) -> None:
    world.miss("bus to Porto")
    world.miss("bus to Porto", Principal("other", "eve", ANN.scopes))
    await world.make_keeper().run_until_done()
    assert [await list_questions(world, org) for org in ("acme", "other")] == [[["bus to Porto"]], [["bus to Porto"]]]
    assert len({gap.id for gap in await records.list_all_gaps(world.store)}) == 2
