from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from anyio.abc import TaskGroup
from hypothesis import given
from hypothesis import strategies as st

from refdesk import errors
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search import federation
from refdesk.core.search.federation import Outcome, rank
from refdesk.core.search.providers import (
    ALWAYS,
    HitReference,
    LeftOut,
    Period,
    ProviderAnswer,
    ProviderHit,
    Question,
    SearchProvider,
)
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.model import Principal
from refdesk.stores.memory import MemoryStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG = 120.0
"""Seconds that no test waits for."""


def make_hit(id: str, strength: float = 0.5, freshness: datetime | None = NOON) -> ProviderHit:
    return ProviderHit(
        id=id, title=id, snippet="", strength=strength, freshness=freshness, reference=HitReference("get", {"id": id})
    )


def make_context() -> Context:
    store = MemoryStore()
    return Context(Principal("acme", "tester", frozenset()), KnowledgeBase(store, Semantics(store, HashingEmbedder())))


Find = Callable[[Context, Question], Awaitable[ProviderAnswer | LeftOut]]


def answer(*ids: str) -> Find:
    async def find(_context: Context, _question: Question) -> ProviderAnswer:
        return ProviderAnswer(tuple(make_hit(id) for id in ids), total=len(ids), note="Well.")

    return find


def fail(error: Exception) -> Find:
    async def find(_context: Context, _question: Question) -> ProviderAnswer:
        raise error

    return find


async def hang(_context: Context, _question: Question) -> ProviderAnswer:
    await anyio.sleep_forever()
    raise AssertionError


async def leave_out(_context: Context, _question: Question) -> LeftOut:
    return LeftOut("Ask otherwise.")


@asynccontextmanager
async def open_group() -> AsyncGenerator[TaskGroup]:
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


async def ask(seconds: float = LONG, **finds: Find) -> dict[str, Outcome]:
    context = make_context()
    providers = {name: SearchProvider(f"search_{name}", frozenset(), find) for name, find in finds.items()}
    async with open_group() as group:
        return await federation.ask_all(providers, lambda _: context, Question("x"), seconds, group)


async def test_all_are_asked_at_once_and_told_of_in_the_order_given() -> None:
    asked, both = list[str](), anyio.Event()

    def wait_for_the_other(name: str) -> Find:
        async def find(_context: Context, _question: Question) -> ProviderAnswer:
            asked.append(name)
            if len(asked) == 2:
                both.set()
            await both.wait()
            return ProviderAnswer((make_hit(name),))

        return find

    outcomes = await ask(b=wait_for_the_other("b"), a=wait_for_the_other("a"))
    assert list(outcomes) == ["b", "a"]
    assert [outcome.status for outcome in outcomes.values()] == ["answered", "answered"]


async def test_a_note_and_a_refusal_come_with_the_outcome() -> None:
    outcomes = await ask(good=answer("1"), none=leave_out)
    assert (outcomes["good"].note, outcomes["good"].answer.total) == ("Well.", 1)
    assert (outcomes["none"].status, outcomes["none"].note) == ("left_out", "Ask otherwise.")


async def test_nobody_to_ask_is_answered_at_once() -> None:
    assert await ask() == {}


async def test_a_failure_costs_its_own_hits_only_and_says_why() -> None:
    outcomes = await ask(bad=fail(errors.SourceError("The feed is down.")), good=answer("1"))
    assert (outcomes["bad"].status, outcomes["bad"].note) == ("failed", "The feed is down.")
    assert outcomes["bad"].answer.hits == ()
    assert outcomes["good"].status == "answered"


async def test_a_bug_is_logged_once_under_the_number_that_the_caller_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        outcomes = await ask(bug=fail(ZeroDivisionError("secret")), good=answer("1"))
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    incident = record.__dict__["incident"]
    assert len(incident) == 8
    assert incident in outcomes["bug"].note
    assert "secret" not in outcomes["bug"].note
    assert (outcomes["bug"].status, outcomes["good"].status) == ("failed", "answered")


async def test_who_is_asked_sees_how_much_time_it_has() -> None:
    until = list[float]()

    async def look(_context: Context, _question: Question) -> ProviderAnswer:
        until.append(anyio.current_effective_deadline())
        return ProviderAnswer(())

    since = anyio.current_time()
    await ask(LONG, one=look)
    assert since + LONG <= until[0] <= anyio.current_time() + LONG


async def test_who_is_late_is_cancelled_and_costs_its_own_hits_only() -> None:
    ended = anyio.Event()

    async def hang_and_tell(context: Context, question: Question) -> ProviderAnswer:
        try:
            return await hang(context, question)
        finally:
            ended.set()

    with anyio.fail_after(LONG):
        outcomes = await ask(0.01, slow=hang_and_tell, good=answer("1"))
        await ended.wait()
    assert (outcomes["slow"].status, outcomes["good"].status) == ("late", "answered")
    assert "deadlineMs" in outcomes["slow"].note
    assert "search_slow" in outcomes["slow"].note


async def test_the_answer_does_not_wait_for_a_thread_that_cannot_be_stopped() -> None:
    released, began, has_ended = anyio.Event(), anyio.Event(), False

    def block() -> None:
        anyio.from_thread.run_sync(began.set)
        anyio.from_thread.run(released.wait)

    async def find(_context: Context, _question: Question) -> ProviderAnswer:
        nonlocal has_ended
        await anyio.to_thread.run_sync(block)
        has_ended = True
        return ProviderAnswer()

    context = make_context()
    async with open_group() as group:
        with anyio.fail_after(LONG):
            asked = federation.ask_all(
                {"slow": SearchProvider("s", frozenset(), find)}, lambda _: context, Question("x"), 2.0, group
            )
            outcomes = await asked
            assert began.is_set()
            assert not has_ended
            released.set()
    assert outcomes["slow"].status == "late"


async def test_whoever_goes_away_takes_the_questions_along() -> None:
    began, ended = anyio.Event(), anyio.Event()

    async def find(context: Context, question: Question) -> ProviderAnswer:
        try:
            began.set()
            return await hang(context, question)
        finally:
            ended.set()

    with anyio.fail_after(LONG):
        async with open_group() as outer:
            async with anyio.create_task_group() as group:

                async def call() -> None:
                    providers = {"slow": SearchProvider("s", frozenset(), find)}
                    await federation.ask_all(providers, lambda _: make_context(), Question("x"), LONG, outer)

                group.start_soon(call)
                await began.wait()
                group.cancel_scope.cancel()
            await ended.wait()


def ids(*lists: Sequence[ProviderHit]) -> list[str]:
    return [one.hit.id for one in rank({str(number): found for number, found in enumerate(lists)})]


def test_the_first_of_a_list_that_knows_nothing_comes_after_those_that_are_sure() -> None:
    sure = [make_hit(f"sure {number}", 0.9 - number / 100) for number in range(5)]
    assert ids([make_hit("weak", 0.1)], sure) == [*(f"sure {number}" for number in range(5)), "weak"]


def test_a_toolset_keeps_its_own_order_and_shares_what_is_stronger_behind() -> None:
    own = [make_hit("first", 0.5), make_hit("stronger", 0.7), make_hit("last", 0.3)]
    assert ids(own, [make_hit("other", 0.58)]) == ["first", "stronger", "other", "last"]


def test_scores_are_high_only_where_somebody_knows_the_subject() -> None:
    [sure, *_] = rank({"x": [make_hit("a", 0.9)], "y": [make_hit("b", 0.2)]})
    [unsure, *_] = rank({"x": [make_hit("a", 0.2)], "y": [make_hit("b", 0.1)]})
    assert (sure.score, unsure.score) == (pytest.approx(0.9), pytest.approx(0.2))


def test_ties_come_newest_first_then_in_the_order_of_the_lists() -> None:
    later = NOON + timedelta(days=1)
    assert ids([make_hit("a"), make_hit("b")], [make_hit("c", freshness=later), make_hit("d")]) == ["c", "a", "b", "d"]
    assert ids([make_hit("a", freshness=None)], [make_hit("b")], [make_hit("c")]) == ["b", "c", "a"]
    assert ids([], []) == []


relevances = st.floats(0, 1)
lists = st.lists(st.lists(relevances, max_size=8), min_size=1, max_size=4)


@given(lists)
def test_every_hit_is_ranked_once_and_scores_fall_from_at_most_one(drawn: list[list[float]]) -> None:
    named = {
        str(number): [make_hit(f"{number}-{place}", relevance) for place, relevance in enumerate(found)]
        for number, found in enumerate(drawn)
    }
    ranked = rank(named)
    assert sorted(one.hit.id for one in ranked) == sorted(hit.id for found in named.values() for hit in found)
    assert all(0.0 <= one.score <= 1.0 for one in ranked)
    assert all(one.score >= other.score for one, other in pairwise(ranked))


@given(lists)
def test_what_is_before_another_in_its_list_stays_before_it(drawn: list[list[float]]) -> None:
    named = {
        str(number): [make_hit(f"{number}-{place}", relevance) for place, relevance in enumerate(found)]
        for number, found in enumerate(drawn)
    }
    places = {one.hit.id: place for place, one in enumerate(rank(named))}
    for found in named.values():
        for before, after in pairwise(found):
            assert places[before.id] < places[after.id]


def test_both_ends_of_a_period_are_in_it() -> None:
    day = Period(NOON, NOON + timedelta(hours=1))
    assert [day.covers(NOON + timedelta(minutes=minutes)) for minutes in (-1, 0, 60, 61)] == [False, True, True, False]
    assert not day.covers(None)
    assert ALWAYS.covers(None)
    assert not ALWAYS.is_bounded
    assert Period(until=NOON).is_bounded


def test_a_tag_is_looked_for_however_its_words_are_joined() -> None:
    assert federation.spell("Private_Preview") == ("Private_Preview", "Private-Preview", "Private Preview")
    assert federation.spell("refunds") == ("refunds",)


def test_hearsay_stands_behind_the_records_that_match_as_well_and_before_those_that_match_less() -> None:
    def say(id: str, strength: float, **more: object) -> ProviderHit:
        return replace(make_hit(id, strength), **more)  # pyright: ignore[reportArgumentType]

    notes = [say("rumour", 0.9, confidence=10), say("known", 0.8, confidence=80), say("guess", 0.4, confidence=10)]
    records = [say("announced", 0.7, source="Microsoft"), say("near", 0.4, source="Microsoft")]
    ranked = [one.hit.id for one in rank({"knowledge": notes, "azure-updates": records})]
    assert ranked == ["known", "announced", "rumour", "near", "guess"]
    without = rank({"knowledge": notes})
    assert [one.hit.id for one in without] == ["rumour", "known", "guess"]


def test_hearsay_about_what_nobody_knows_is_left_where_it_stands() -> None:
    rumour, record = (
        replace(make_hit("rumour", 0.3), confidence=10),
        replace(make_hit("record", 0.2), source="Microsoft"),
    )
    assert [one.hit.id for one in rank({"a": [rumour], "b": [record]})] == ["rumour", "record"]


async def test_what_a_source_found_is_judged_by_words_and_meaning() -> None:
    question = Question("reset a forgotten password")
    texts = [("Reset a forgotten password", "How to reset it."), ("Descale the kettle", "Use vinegar.")]
    right, wrong = await federation.judge(make_context(), question, texts)
    assert 0.0 <= wrong < right <= 1.0
    without = Context(Principal("acme", "tester", frozenset()), KnowledgeBase(MemoryStore()))
    assert await federation.judge(without, question, texts) == [pytest.approx(0.615, abs=0.01), 0.0]
