"""Outcomes decide: what works comes first, what got worse is taken back, and what is little known is tried."""

from __future__ import annotations

from random import Random

import pytest

from refdesk.playbooks import Playbook, Step
from refdesk.toolsets.skills import outcomes
from refdesk.toolsets.skills.outcomes import Tally
from tests.toolsets.skills.conftest import INVOICE, Desk

RUNS = 400


def report(random: Random, rate: float, count: int) -> Tally:
    good = sum(random.random() < rate for _ in range(count))
    return Tally(good, count - good)


def is_rolled_back(random: Random, old: float, new: float, reports: int = 30) -> bool:
    """Return whether a second version goes back to the first within so many reports; the first had as many."""
    theirs, mine = report(random, old, reports), Tally()
    for _ in range(reports):
        mine = mine.add("resolved" if random.random() < new else "failed")
        if outcomes.is_worse(mine, theirs):
            return True
    return False


def test_without_reports_relevance_decides_alone() -> None:
    assert outcomes.weigh(0.6, outcomes.UNKNOWN) == 0.6


def test_of_two_that_fit_the_one_that_works_leads_after_twenty_reports_each() -> None:
    random, led = Random(5), 0
    for _ in range(RUNS):
        works, fails = report(random, 0.8, 20), report(random, 0.2, 20)
        # Two skills for one problem: which of them a question is nearer to is chance.
        of_working, of_failing = random.uniform(0.62, 0.8), random.uniform(0.62, 0.8)
        led += outcomes.weigh(of_working, works) > outcomes.weigh(of_failing, fails)
    assert led >= 0.95 * RUNS


@pytest.mark.parametrize(("old", "new"), [(0.9, 0.4), (0.8, 0.35), (0.7, 0.2)])
def test_a_worse_version_goes_back_within_thirty_reports(old: float, new: float) -> None:
    random = Random(1)
    assert sum(is_rolled_back(random, old, new) for _ in range(RUNS)) >= 0.95 * RUNS


@pytest.mark.parametrize(("old", "new"), [(0.4, 0.9), (0.5, 0.8), (0.6, 0.8)])
def test_a_better_version_stays(old: float, new: float) -> None:
    random = Random(2)
    assert sum(is_rolled_back(random, old, new) for _ in range(RUNS)) < 0.05 * RUNS


def test_what_is_little_known_is_tried_where_ranking_draws() -> None:
    random, known, new = Random(3), Tally(12, 8), Tally()
    tried = sum(outcomes.weigh(0.7, new, random) > outcomes.weigh(0.7, known, random) for _ in range(RUNS))
    assert 0.2 * RUNS < tried < 0.6 * RUNS
    sure = sum(outcomes.weigh(0.7, new, random) > outcomes.weigh(0.7, Tally(95, 5), random) for _ in range(RUNS))
    assert sure < tried


async def test_a_version_that_works_worse_goes_back_by_itself_and_says_why(desk: Desk) -> None:
    call, queries = desk.serve(), desk.queries()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    for _ in range(12):
        await call("report_outcome", skill_id=id, outcome="resolved", version=1)
    first = await queries.get_skill(id)
    assert first is not None
    other = "Customer: Wrong company on my invoice.\nAgent: Please wait for two weeks.\nCustomer: Hm."
    await call("update_skill", skill_id=id, conversation=other)
    second = await queries.get_skill(id)
    assert second is not None
    assert outcomes.identify(second.playbook) != outcomes.identify(first.playbook)
    assert second.tally == outcomes.UNKNOWN
    reported = 0
    while (stands := await call("report_outcome", skill_id=id, outcome="failed", version=2))["version"] == 2:
        reported += 1
        assert reported < 30
    assert stands["version"] == 3
    third = await queries.get_skill(id)
    assert third is not None
    assert [step.do for step in third.playbook.steps] == [step.do for step in first.playbook.steps]
    assert "Went back to the steps of version 1" in third.changes[0]
    assert third.tally.good == 12


async def test_steps_that_worked_worse_do_not_come_back_with_the_next_conversation(desk: Desk) -> None:
    call, queries = desk.serve(), desk.queries()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    for _ in range(12):
        await call("report_outcome", skill_id=id, outcome="resolved")
    other = "Customer: Wrong company on my invoice.\nAgent: Please wait for two weeks.\nCustomer: Hm."
    await call("update_skill", skill_id=id, conversation=other)
    reports = [await call("report_outcome", skill_id=id, outcome="failed", version=2) for _ in range(12)]
    assert reports[-1]["version"] == 3
    again = await call("update_skill", skill_id=id, conversation=other)
    skill = await queries.get_skill(id)
    assert skill is not None
    assert "worked worse" in again["changes"][0]
    assert not any("two weeks" in step.do for step in skill.playbook.steps)


async def test_a_version_with_the_same_steps_goes_on_with_the_reports_of_the_one_before(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    await call("report_outcome", skill_id=id, outcome="resolved")
    await call("update_skill", skill_id=id, conversation=INVOICE.replace("4471", "4482"))
    skill = await desk.queries().get_skill(id)
    assert skill is not None
    assert (skill.version, skill.tally) == (2, Tally(1, 0))


async def test_steps_that_went_because_of_a_report_come_back_when_it_is_taken_back(desk: Desk) -> None:
    call, queries = desk.serve(), desk.queries()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    for _ in range(12):
        await call("report_outcome", skill_id=id, outcome="resolved")
    other = "Customer: Wrong company on my invoice.\nAgent: Please wait for two weeks.\nCustomer: Hm."
    await call("update_skill", skill_id=id, conversation=other)
    second = await queries.get_skill(id)
    while (last := await call("report_outcome", skill_id=id, outcome="failed", version=2))["version"] == 2:
        pass
    assert (await call("withdraw_outcome", skill_id=id, report_id=last["report_id"]))["version"] == 4
    fourth = await queries.get_skill(id)
    assert second is not None
    assert fourth is not None
    assert outcomes.identify(fourth.playbook) == outcomes.identify(second.playbook)
    assert "taken back" in fourth.changes[0]
    assert (fourth.rejected, fourth.tally.bad) == ((), fourth.tally.count)


def test_reports_count_for_the_steps_however_a_model_words_them() -> None:
    induced = outcomes.identify(Playbook("Warm.", steps=(Step("Open the valve."),)))
    assert outcomes.identify(Playbook("Warm.", steps=(Step("Turn it on.", induced="Open the valve."),))) == induced
    assert outcomes.identify(Playbook("Warm.", steps=(Step("Turn it on."),))) != induced
