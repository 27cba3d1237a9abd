"""Refining never loses anything unsaid: what a version has no more is in its changes, and every case is kept."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from refdesk.playbooks import Playbook, SkillDraft, Step
from refdesk.stores.memory import MemoryStore
from tests.toolsets.skills.conftest import INVOICE, Desk, ScriptedModel, make_desk

if TYPE_CHECKING:
    from refdesk.toolsets.skills.records import Skill

ASKED = (
    "My heating stays cold.",
    "The heating is cold again, only upstairs.",
    "It got cold after the pump was changed.",
    "Since the storm the heating does not start.",
)
SAID = (
    "Could you tell me the model of your boiler?",
    "Please open the valve of the radiator.",
    "Please bleed the radiator and wait.",
    "Have you checked the pressure?",
    "I have booked a technician for tomorrow.",
    "I have reset the boiler from here.",
    "Is the pump running?",
    "Please switch the boiler off and on again.",
)
ANSWERED = ("OK.", "It is a K12.", "Still cold, sorry.", "That did not help.", "It is getting warm!")


def draw_talk(random: Random, number: int) -> str:
    """Return a conversation that is no other's."""
    lines = [f"Customer: {random.choice(ASKED)} Flat {number}."]
    for said in random.sample(SAID, random.randint(1, 5)):
        lines += [f"Agent: {said}", f"Customer: {random.choice(ANSWERED)}"]
    return "\n".join(lines)


def list_items(skill: Skill) -> set[str]:
    """Return everything that a refinement may take away."""
    playbook = skill.playbook
    steps = {step.id or step.do for step in playbook.steps}
    return {*steps, *skill.conditions, *skill.keywords, *playbook.prerequisites, *playbook.edge_cases}


def name_in(skill: Skill, item: str) -> str:
    """Return how people are told of an item."""
    return next((step.do for step in skill.playbook.steps if step.id == item), item)


async def check_random_refinements(rounds: int) -> None:
    random, desk, went = Random(4), make_desk(MemoryStore()), 0
    call = desk.serve()
    id = (await call("create_skill", conversation=draw_talk(random, 0)))["skill_id"]
    for number in range(1, rounds):
        before = await desk.queries().get_skill(id)
        told = (await call("update_skill", skill_id=id, conversation=draw_talk(random, number)))["changes"]
        after = await desk.queries().get_skill(id)
        assert before is not None
        assert after is not None
        assert after.playbook.steps
        for item in list_items(before) - list_items(after):
            went += 1
            assert any(f"“{name_in(before, item)}”" in change for change in told), item
        for item in list_items(after) - list_items(before):
            assert any(f"“{name_in(after, item)}”" in change for change in told), item
    assert went
    assert len(await desk.queries().read_cases(id)) == rounds


async def test_nothing_vanishes_in_random_refinements_unless_the_changes_say_so() -> None:
    await check_random_refinements(12)


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("REFDESK_SOAK"), reason="the long form runs by `make soak`")
async def test_nothing_vanishes_in_a_hundred_random_refinements() -> None:
    await check_random_refinements(100)


async def test_a_step_that_no_case_is_known_to_support_is_said_to_go(desk: Desk) -> None:
    model = ScriptedModel()
    created = await desk.serve(model)("create_skill", conversation=INVOICE)
    model.draft = SkillDraft("Cold heating", "It stays cold.", Playbook("Warm.", steps=(Step("Bleed it."),)))
    updated = await desk.serve(model)("update_skill", skill_id=created["skill_id"], conversation=INVOICE)
    assert "No step any more: “Open the valve.”, which no case is known to support." in updated["changes"]
