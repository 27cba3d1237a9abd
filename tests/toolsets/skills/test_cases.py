"""The conversations of a skill are kept as its evidence, in every engine, and go where it goes."""

from __future__ import annotations

from dataclasses import replace

from refdesk.core.keeping import erasing
from refdesk.core.writing.audit import Actor
from refdesk.playbooks import Turn
from refdesk.toolsets.skills import cases
from tests.toolsets.skills.conftest import INVOICE, Desk

OTHER = INVOICE.replace("4471", "4482").replace("wrong company name", "wrong company address")
ACTOR = Actor("acme", "ann", "test")


async def test_each_conversation_is_kept_once_masked_and_in_order(desk: Desk) -> None:
    call = desk.serve()
    talk = INVOICE.replace("It is 4471.", "It is 4471, write to ann@example.com.")
    id = (await call("create_skill", conversation=talk, resolution_confirmed=True))["skill_id"]
    for conversation in (OTHER, OTHER, talk):
        await call("update_skill", skill_id=id, conversation=conversation)
    first, second = await desk.queries().read_cases(id)
    assert "ann@example.com" not in repr((first, second))
    assert {first.id, second.id} == {cases.digest(kept.turns) for kept in (first, second)}
    skill = await desk.queries().get_skill(id)
    assert skill is not None
    assert set(skill.playbook.cases) == {first.id, second.id}


async def test_a_second_conversation_makes_the_steps_surer_and_says_so(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    changes = (await call("update_skill", skill_id=id, conversation=OTHER))["changes"]
    assert "2 conversations support it now." in changes
    found = await call("get_skill", skill_id=id)
    assert "Ask for the customer's order number. (2 of 2)" in found["resolution"]


async def test_a_known_problem_keeps_the_conversation_as_evidence_for_the_next_version(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    again = await call("create_skill", conversation=f"{INVOICE}Agent: Have a lovely day.\n")
    assert (again["created"], again["skill_id"]) == (False, id)
    assert len(await desk.queries().read_cases(id)) == 2


async def test_what_a_skill_said_before_cases_were_kept_is_evidence_too(desk: Desk) -> None:
    call, queries = desk.serve(), desk.queries()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    old = await queries.get_skill(id)
    assert old is not None
    legacy = replace(old, skill_id="01930000-0000-7000-8000-0000000000ff", name="legacy-0000000000ff")
    await queries.create_skill(legacy)
    await call("update_skill", skill_id=legacy.skill_id, conversation="Customer: Wrong company\nAgent: Please call us.")
    updated = await queries.get_skill(legacy.skill_id)
    assert updated is not None
    assert updated.playbook.cases[0] == cases.EARLIER
    assert {step.say for step in old.playbook.steps} <= {step.say for step in updated.playbook.steps}


async def test_a_very_long_case_is_cut_at_both_ends(desk: Desk) -> None:
    case = cases.make_case([Turn("agent", f"{number} " + "long " * 1000) for number in range(1000)])
    assert len(case.turns) == cases.MAX_TURNS
    assert case.turns[-1].text.startswith("999 ")
    assert max(len(turn.text) for turn in case.turns) <= cases.MAX_TEXT


async def test_erasing_a_skill_erases_its_cases(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    assert await desk.queries().read_cases(id)
    await erasing.erase(desk.base.store, desk.clock, ACTOR, erasing.Erasable("acme", entry=id))
    assert await desk.queries().read_cases(id) == []


async def test_erasing_an_agent_erases_the_cases_it_sent_to_a_skill_of_another(desk: Desk) -> None:
    id = (await desk.serve()("create_skill", conversation=INVOICE))["skill_id"]
    await desk.serve(agent="bob")("update_skill", skill_id=id, conversation=OTHER)
    await erasing.erase(desk.base.store, desk.clock, ACTOR, erasing.Erasable("acme", agent="bob"))
    assert len(await desk.queries().read_cases(id)) == 1


def test_how_a_conversation_ended_is_read_from_the_last_words() -> None:
    assert cases.judge([Turn("customer", "It still doesn't work.")]) == "likely_failed"
    assert cases.judge([Turn("customer", "It works now, thanks!"), Turn("agent", "Bye")]) == "likely_resolved"
    assert cases.judge([Turn("customer", "Thank you, goodbye.")]) == ""
