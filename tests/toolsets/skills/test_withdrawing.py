"""A withdrawn report leaves a skill as it would be had it never been made."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refdesk.core.clock import FixedClock
from refdesk.core.keeping import erasing, migrating
from refdesk.core.writing import audit
from refdesk.model import Metadata, MetadataKey
from refdesk.playbooks import Playbook, SkillDraft, Step
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.skills import ledger, outcomes, replaying
from refdesk.toolsets.skills.outcomes import Tally
from refdesk.toolsets.skills.records import Skill, SkillUpdate
from tests.toolsets.skills.conftest import INVOICE, NOW, Call, Desk, ScriptedModel, make_desk

OUTCOMES = sorted(replaying.CHANGES)
STEPS = ("Open the valve.", "Bleed the radiator.", "Call the landlord.")

Action: TypeAlias = tuple[Any, ...]

ACTIONS = st.one_of(
    st.tuples(st.just("report"), st.sampled_from(OUTCOMES), st.integers(1, 9), st.integers(0, 3)),
    st.tuples(st.just("withdraw"), st.lists(st.integers(0, 60), min_size=1, max_size=9)),
    st.tuples(st.just("refine"), st.integers(0, len(STEPS) - 1)),
    st.tuples(st.just("read")),
    st.tuples(st.just("wait")),
    st.tuples(st.just("set"), st.sampled_from([0.0, 0.35, 1.0])),
)

WENT_BACK: list[Action] = [("report", "resolved", 9, 0), ("refine", 1), ("report", "failed", 7, 0)]
"""After which a skill has gone back to the steps of its first version."""


def draft(step: str) -> SkillDraft:
    return SkillDraft("Cold heating", "The heating stays cold.", Playbook("Warm.", steps=(Step(step),)), ("Winter.",))


async def create(call: Call) -> str:
    return str((await call("create_skill", conversation=INVOICE))["skill_id"])


async def report(call: Call, skill_id: str, outcome: str, **more: object) -> str:
    return str((await call("report_outcome", skill_id=skill_id, outcome=outcome, **more))["report_id"])


@dataclass(slots=True)
class Course:
    """What happens to one skill, and which report is of which steps."""

    desk: Desk = field(default_factory=lambda: make_desk(MemoryStore(FixedClock(NOW))))
    model: ScriptedModel = field(default_factory=lambda: ScriptedModel(draft(STEPS[0])))
    skill_id: str = ""
    reports: list[str] = field(default_factory=list[str])
    followed: list[str] = field(default_factory=list[str])
    withdrawn: set[int] = field(default_factory=set[int])

    async def begin(self) -> None:
        self.skill_id = await create(self.call)

    @property
    def call(self) -> Call:
        return self.desk.serve(self.model)

    async def get_versions(self) -> list[Skill]:
        return await self.desk.queries().get_history(self.skill_id)

    async def report(self, outcome: str, back: int) -> None:
        """Report of the present version, or of one so many before."""
        versions = await self.get_versions()
        followed = versions[max(0, len(versions) - 1 - back)]
        self.followed.append(outcomes.identify(followed.playbook))
        self.reports.append(await report(self.call, self.skill_id, outcome, version=followed.version))

    async def report_of(self, outcome: str, steps: str) -> None:
        versions = [each.version for each in await self.get_versions() if outcomes.identify(each.playbook) == steps]
        await report(self.call, self.skill_id, outcome, version=versions[-1])

    async def withdraw(self, place: int) -> None:
        self.withdrawn.add(place)
        await self.call("withdraw_outcome", skill_id=self.skill_id, report_id=self.reports[place])

    async def do_other(self, number: int, action: Action) -> None:
        match action:
            case ("refine", int(place)):
                self.model.draft = draft(STEPS[place])
                talk = f"{INVOICE}Agent: Bye {number}."
                await self.call("update_skill", skill_id=self.skill_id, conversation=talk)
            case ("read",):
                await self.call("get_skill", skill_id=self.skill_id)
            case ("set", confidence):
                await self.desk.queries().update_skill(self.skill_id, SkillUpdate(confidence=confidence))
            case _:
                self.desk.clock.advance(timedelta(days=5))

    async def sum_up(self) -> dict[str, object]:
        versions = await self.get_versions()
        skill, weeks = versions[-1], dict[tuple[str, str], Tally]()
        steps = {each.version: outcomes.identify(each.playbook) for each in versions}
        for name, tally in skill.weeks.items():
            monday, version = name.split("/")
            known = weeks.get((monday, steps[int(version)]), Tally())
            weeks[monday, steps[int(version)]] = Tally(known.good + tally.good, known.bad + tally.bad)
        return {
            "confidence": skill.confidence,
            "counts": (skill.times_used, skill.times_confirmed, skill.unreported),
            "tallies": {name: tally for name, tally in skill.tallies.items() if tally.count},
            "weeks": weeks,
            "steps": outcomes.identify(skill.playbook),
            "rejected": skill.rejected,
        }


def flatten(actions: Sequence[Action]) -> Iterator[Action]:
    """Yield what is done several times at once as often as it is done."""
    for action in actions:
        match action:
            case ("report", outcome, times, back):
                yield from [("report", outcome, back)] * times
            case ("withdraw", places):
                yield from (("withdraw", place) for place in places)
            case _:
                yield action


async def run(actions: Sequence[Action]) -> None:
    course, other, acts = Course(), Course(), list(flatten(actions))
    await course.begin()
    await other.begin()
    for number, act in enumerate(acts):
        if act[0] == "report":
            await course.report(*act[1:])
        elif act[0] != "withdraw":
            await course.do_other(number, act)
        elif course.reports:
            await course.withdraw(act[1] % len(course.reports))
    place = 0
    for number, act in enumerate(acts):
        if act[0] == "report":
            if place not in course.withdrawn:
                await other.report_of(act[1], course.followed[place])
            place += 1
        elif act[0] != "withdraw":
            await other.do_other(number, act)
    assert await course.sum_up() == await other.sum_up()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([[], WENT_BACK]), st.lists(ACTIONS, max_size=20))
def test_a_skill_is_as_if_what_was_withdrawn_had_never_been_reported(first: list[Action], then: list[Action]) -> None:
    anyio.run(run, [*first, *then])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([[], WENT_BACK]), st.lists(ACTIONS, max_size=20))
def test_it_is_so_from_whichever_kept_state_the_reports_are_counted_anew(
    first: list[Action], then: list[Action]
) -> None:
    with small_pages():
        anyio.run(run, [*first, *then])


@contextmanager
def small_pages() -> Generator[None]:
    """Keep a state after every fourth report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "PAGE", 2)
        patch.setattr(ledger, "SPAN", 2)
        yield


async def stand(desk: Desk, skill_id: str) -> Skill:
    skill = await desk.queries().get_skill(skill_id)
    assert skill is not None
    return skill


async def withdraw(call: Call, skill_id: str, *reports: str) -> dict[str, Any]:
    """Withdraw reports, each twice, and return the last answer."""
    answer = dict[str, Any]()
    for each in reports:
        answer = await call("withdraw_outcome", skill_id=skill_id, report_id=each)
        assert answer == await call("withdraw_outcome", skill_id=skill_id, report_id=each)
    return answer


async def test_at_its_bound_a_confidence_stays_where_enough_reports_hold_it(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await create(call)
    made = [await report(call, skill_id, "failed") for _ in range(12)]
    assert (await withdraw(call, skill_id, *made[:5]))["confidence"] == 0.0
    assert (await withdraw(call, skill_id, *made[9:]))["confidence"] == 0.1
    assert (await withdraw(call, skill_id, *made[5:9]))["confidence"] == 0.5


async def test_of_many_reports_the_first_can_be_withdrawn_and_a_page_is_written_when_it_changes(desk: Desk) -> None:
    call, count = desk.serve(), 2 * ledger.PAGE + 5
    skill_id = await create(call)
    made = [await report(call, skill_id, "failed" if place < 6 else "resolved") for place in range(count)]
    assert (await withdraw(call, skill_id, made[0], *made[9:]))["confidence"] == pytest.approx(0.3)
    skill = await stand(desk, skill_id)
    assert (skill.tally, skill.times_used, skill.times_confirmed) == (Tally(3, 5), 8, 3)
    made.append(await report(call, skill_id, "resolved"))
    assert (await withdraw(call, skill_id, made[-1]))["times_used"] == 8


async def read_tail(desk: Desk, skill_id: str, report_id: str) -> ledger.Tail:
    head = await ledger.read_head(desk.base.store, "acme", skill_id)
    assert head is not None
    return await ledger.read_tail(desk.base.store, "acme", skill_id, head, report_id)


async def test_of_many_reports_only_those_after_the_withdrawn_one_are_read(desk: Desk) -> None:
    with small_pages():
        call = desk.serve()
        skill_id = await create(call)
        made = [await report(call, skill_id, "resolved") for _ in range(23)]
        places = {0: 0, 3: 0, 4: 2, 15: 6, 16: 8, 19: 8, 20: 10, 22: 10}
        assert {each: (await read_tail(desk, skill_id, made[each])).first for each in places} == places
        assert (await read_tail(desk, skill_id, made[21])).entries[0].id == made[20]
        assert (await read_tail(desk, skill_id, "another")).first == 0


async def test_states_of_which_an_earlier_release_did_not_know_are_not_used(desk: Desk) -> None:
    with small_pages():
        call, store = desk.serve(), desk.base.store
        skill_id = await create(call)
        made = [await report(call, skill_id, "failed") for _ in range(13)]
        head = await store.get_metadata(MetadataKey("acme", f"skill_reports/{skill_id}", ledger.HEAD))
        assert head is not None
        page = await store.get_metadata(MetadataKey("acme", f"skill_reports/{skill_id}", "000000"))
        assert page is not None
        rows: Any = page.value["entries"]
        # As an earlier release withdraws the first report: it rewrites its page, and no state.
        withdrawn = {**page.value, "entries": [[*rows[0][:-1], False], *rows[1:]]}
        told = {name: value for name, value in head.value.items() if name != "states"}
        async with store.transaction() as transaction:
            await transaction.put_metadata([Metadata(page.key, withdrawn), Metadata(head.key, told)])
        await withdraw(call, skill_id, made[-1])
        assert (await stand(desk, skill_id)).tally == Tally(0, 11)
        assert (await read_tail(desk, skill_id, made[-1])).first == 6
        await withdraw(call, skill_id, made[-2])
        assert (await stand(desk, skill_id)).tally == Tally(0, 10)


async def test_a_report_that_is_withdrawn_leaves_the_read_that_it_was_of_to_the_next(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await create(call)
    await call("get_skill", skill_id=skill_id)
    wrong = await report(call, skill_id, "failed")
    await withdraw(call, skill_id, wrong)
    await report(call, skill_id, "resolved")
    assert (await stand(desk, skill_id)).times_used == 1


async def go_back(desk: Desk, model: ScriptedModel) -> tuple[str, list[str], list[str]]:
    """Return a skill that went back to its first version, the reports of that, and those of the second."""
    call = desk.serve(model)
    skill_id = await create(call)
    good = [await report(call, skill_id, "resolved") for _ in range(12)]
    model.draft = draft(STEPS[1])
    await call("update_skill", skill_id=skill_id, conversation=f"{INVOICE}Agent: Bye.")
    bad = list[str]()
    while (await stand(desk, skill_id)).version == 2:
        bad.append(await report(call, skill_id, "failed"))
    return skill_id, good, bad


async def test_steps_come_back_whichever_of_the_reports_against_them_is_withdrawn(desk: Desk) -> None:
    model = ScriptedModel(draft(STEPS[0]))
    skill_id, _, bad = await go_back(desk, model)
    assert (await stand(desk, skill_id)).rejected
    assert (await withdraw(desk.serve(model), skill_id, bad[0]))["version"] == 4
    skill = await stand(desk, skill_id)
    assert ([step.do for step in skill.playbook.steps], skill.rejected) == ([STEPS[1]], ())
    assert skill.changes == ("The steps of version 2 are back: a report that spoke against them was taken back.",)


async def test_steps_that_a_refinement_was_refused_come_back_too(desk: Desk) -> None:
    model = ScriptedModel(draft(STEPS[0]))
    skill_id, _, bad = await go_back(desk, model)
    refined = await desk.serve(model)("update_skill", skill_id=skill_id, conversation=f"{INVOICE}Agent: Bye, bye.")
    assert "worked worse" in refined["changes"][0]
    await withdraw(desk.serve(model), skill_id, bad[0])
    assert [step.do for step in (await stand(desk, skill_id)).playbook.steps] == [STEPS[1]]


async def test_without_a_report_that_spoke_for_them_steps_go(desk: Desk) -> None:
    model = ScriptedModel(draft(STEPS[0]))
    call = desk.serve(model)
    skill_id = await create(call)
    for _ in range(12):
        await report(call, skill_id, "resolved")
    model.draft = draft(STEPS[1])
    await call("update_skill", skill_id=skill_id, conversation=f"{INVOICE}Agent: Bye.")
    mistaken = [await report(call, skill_id, "resolved") for _ in range(30)]
    for _ in range(5):
        await report(call, skill_id, "failed")
    assert (await stand(desk, skill_id)).version == 2
    assert (await withdraw(call, skill_id, *mistaken))["version"] == 3
    assert (await stand(desk, skill_id)).changes[0].startswith("Went back to the steps of version 1")


async def test_reports_and_withdrawals_at_once_are_all_counted(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await create(call)
    wrong = [await report(call, skill_id, "failed") for _ in range(6)]

    async def take_back(report_id: str) -> None:
        await call("withdraw_outcome", skill_id=skill_id, report_id=report_id)

    async with anyio.create_task_group() as group:
        for each in wrong:
            group.start_soon(take_back, each)
            group.start_soon(report, call, skill_id, "likely_resolved")
    skill = await stand(desk, skill_id)
    assert (skill.confidence, skill.tally, skill.times_used) == (pytest.approx(0.68), Tally(3, 0), 6)


async def forget_order(desk: Desk, skill_id: str, moved: Sequence[float]) -> None:
    """Leave of a skill what was kept before the order of its reports was."""
    store = desk.base.store
    records = await store.list_metadata("skill_outcome", org="acme")
    pages = await store.list_metadata(f"skill_reports/{skill_id}", org="acme")
    steps = outcomes.identify((await stand(desk, skill_id)).playbook)
    records.sort(key=lambda each: str(each.value["at"]))
    told = [
        Metadata(each.key, {**each.value, "moved": move, "used": True, "steps": steps})
        for each, move in zip(records, moved, strict=True)
    ]
    async with store.transaction() as transaction:
        await transaction.put_metadata(told)
        await transaction.remove_metadata([each.key for each in pages])


async def make_earlier(desk: Desk) -> tuple[str, list[str]]:
    """Return a skill with twelve failures of which no order is kept."""
    call = desk.serve()
    skill_id, made = await create(call), list[str]()
    for _ in range(12):
        desk.clock.advance(timedelta(minutes=1))
        made.append(await report(call, skill_id, "failed"))
    await forget_order(desk, skill_id, [-0.1] * 5 + [0.0] * 7)
    return skill_id, made


async def test_reports_from_before_their_order_was_kept_get_one(desk: Desk) -> None:
    skill_id, made = await make_earlier(desk)
    call = desk.serve()
    await call("get_skill", skill_id=skill_id)
    later = [await report(call, skill_id, "resolved") for _ in range(2)]
    assert (await stand(desk, skill_id)).confidence == 0.2
    assert (await withdraw(call, skill_id, *made[:5]))["confidence"] == 0.2
    assert (await withdraw(call, skill_id, *later))["confidence"] == 0.0
    assert (await withdraw(call, skill_id, *made[5:]))["confidence"] == 0.5
    skill = await stand(desk, skill_id)
    assert (skill.tally, skill.weeks, skill.times_used, skill.unreported) == (Tally(), {}, 1, 1)


async def test_where_an_earlier_report_is_erased_only_what_is_known_is_taken_off(desk: Desk) -> None:
    skill_id, made = await make_earlier(desk)
    async with desk.base.store.transaction() as transaction:
        await transaction.remove_metadata([MetadataKey("acme", "skill_outcome", f"{skill_id}/{made[0]}")])
    answer = await withdraw(desk.serve(), skill_id, made[1])
    assert (answer["confidence"], answer["times_used"]) == (0.1, 10 + 1)
    assert (await stand(desk, skill_id)).tally == Tally(0, 11)


async def test_a_skill_that_is_erased_leaves_no_order_of_its_reports(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await create(call)
    for _ in range(ledger.PAGE + 1):
        await report(call, skill_id, "resolved")
    assert len(await desk.base.store.list_metadata(f"skill_reports/{skill_id}", org="acme")) == 2
    actor = audit.Actor("acme", "ann", "cli")
    await erasing.erase(desk.base.store, desk.clock, actor, erasing.Erasable("acme", entry=skill_id))
    assert not await desk.base.store.list_metadata(f"skill_reports/{skill_id}", org="acme")


async def test_the_reports_of_an_agent_that_is_erased_stay_counted(desk: Desk) -> None:
    call, bob = desk.serve(), desk.serve(agent="bob")
    skill_id = await create(call)
    await report(bob, skill_id, "failed")
    mine = await report(call, skill_id, "failed")
    actor = audit.Actor("acme", "ann", "cli")
    await erasing.erase(desk.base.store, desk.clock, actor, erasing.Erasable("acme", agent="bob"))
    assert (await withdraw(call, skill_id, mine))["confidence"] == 0.4


async def test_a_store_that_is_copied_has_the_order_too(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await create(call)
    made = [await report(call, skill_id, "failed") for _ in range(ledger.PAGE + 8)]
    copy = MemoryStore(desk.clock)
    await migrating.migrate(desk.base.store, copy, "source")
    other = make_desk(copy)
    assert (await withdraw(other.serve(), skill_id, *made[:-3]))["confidence"] == 0.2


async def test_reports_are_listed_in_their_order_before_and_after_they_have_one(desk: Desk) -> None:
    skill_id, made = await make_earlier(desk)
    call = desk.serve()

    async def list_reports() -> list[str]:
        told = await call("list_outcomes", skill_id=skill_id)
        assert told["total"] == len(told["outcomes"])
        return [each["report_id"] for each in told["outcomes"]]

    made.append(await report(call, skill_id, "resolved"))
    assert await list_reports() == made
    await withdraw(call, skill_id, made[3])
    made.append(await report(call, skill_id, "resolved"))
    assert await list_reports() == made


async def test_the_reports_of_one_skill_are_listed_however_many_others_have(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await create(call)
    made = await report(call, skill_id, "resolved")
    others = [
        Metadata(MetadataKey("acme", "skill_outcome", f"{0:08}/{number}"), {"outcome": "failed"})
        for number in range(10_001)
    ]
    async with desk.base.store.transaction() as transaction:
        await transaction.put_metadata(others)
    told = await call("list_outcomes", skill_id=skill_id)
    assert [each["report_id"] for each in told["outcomes"]] == [made]
