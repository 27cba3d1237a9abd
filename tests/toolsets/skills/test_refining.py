"""Refining never loses anything unsaid."""

from __future__ import annotations

import os
from random import Random

import pytest

from refdesk.playbooks import Playbook, Refinement, Removal, SkillDraft, Step, Turn
from refdesk.toolsets.skills.refining import MAX_CONDITIONS, MAX_KEYWORDS, MAX_STEPS, NOTHING_NEW, refine

OLD = SkillDraft(
    "Cold heating",
    "It stays cold.",
    Playbook(
        "Warm.", ("The model",), (Step("Open the valve."), Step("Bleed it.", "No air.", "Wait.")), ("Old house.",)
    ),
    ("Only in winter.", "The pump runs."),
    ("heating", "cold"),
)
TALK = (Turn("customer", "The pump does not run, and bleeding it is dangerous here."), Turn("agent", "I see."))
WORDS = ("valve", "pump", "Winter", "cold!", "bleed it", "Ölstand", "請求書", "a", "--", "open the valve.")


def make_draft(random: Random) -> SkillDraft:
    def some(most: int) -> tuple[str, ...]:
        return tuple(" ".join(random.choices(WORDS, k=random.randint(0, 3))) for _ in range(random.randint(0, most)))

    steps = tuple(Step(do, random.choice(WORDS), random.choice(WORDS)) for do in some(6))
    return SkillDraft(
        random.choice(WORDS), random.choice(WORDS), Playbook("x", some(3), steps, some(3)), some(8), some(8)
    )


def get_items(draft: SkillDraft) -> set[tuple[str, str]]:
    named = {"condition": draft.conditions, "keyword": draft.keywords, "step": [s.do for s in draft.playbook.steps]}
    return {(kind, item) for kind, items in named.items() for item in items}


def check_random_refinements(rounds: int) -> None:
    random, removed, skill = Random(4), 0, OLD
    said = " ".join(WORDS)
    for number in range(rounds):
        if number % 20 == 0:
            skill = OLD
        items = [item for _, item in sorted(get_items(skill))] or ["x"]
        removals = [
            Removal(random.choice([*items, *WORDS]), random.choice([said, "not said at all", ""])) for _ in range(2)
        ]
        refined = refine(
            skill, Refinement(make_draft(random), ("Nothing.",), tuple(removals)), (Turn("agent", said),), ""
        )
        for kind, item in get_items(skill) - get_items(refined.draft):
            removed += 1
            assert any(change.startswith(f"Removed {kind} “{item}”, contradicted by") for change in refined.changes)
        for kind, item in get_items(refined.draft) - get_items(skill):
            assert f"Added {kind} “{item}”." in refined.changes
        assert refined.draft.playbook.steps
        skill = refined.draft
    assert removed


def test_nothing_vanishes_in_random_refinements_unless_the_changes_say_so() -> None:
    check_random_refinements(1000)


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("REFDESK_SOAK"), reason="the long form runs by `make soak`")
def test_nothing_vanishes_in_ten_thousand_random_refinements() -> None:
    check_random_refinements(10_000)


def test_a_model_that_answers_with_less_takes_nothing_away() -> None:
    empty = SkillDraft("", "", Playbook(""))
    refined = refine(OLD, Refinement(empty), TALK, "")
    assert refined.draft == OLD
    assert refined.changes == (NOTHING_NEW,)


def test_the_last_steps_stay_where_only_an_empty_one_would_come() -> None:
    said = "None of it is right"
    removals = tuple(Removal(step.do, said) for step in OLD.playbook.steps)
    blank = SkillDraft("", "", Playbook("", steps=(Step(" ", "", ""),)))
    refined = refine(OLD, Refinement(blank, removals=removals), (Turn("agent", said),), "")
    assert refined.draft.playbook.steps == OLD.playbook.steps


def test_what_is_contradicted_in_the_words_quoted_goes_and_is_said() -> None:
    removal = Removal("the pump runs", "The pump does not run")
    refined = refine(OLD, Refinement(OLD, removals=(removal,)), TALK, "")
    assert refined.draft.conditions == ("Only in winter.",)
    assert refined.changes == ("Removed condition “The pump runs.”, contradicted by “The pump does not run”.",)


def test_what_the_feedback_contradicts_goes_too() -> None:
    removal = Removal("Bleed it.", "never bleed it")
    refined = refine(OLD, Refinement(OLD, removals=(removal,)), TALK, "You must never bleed it!")
    assert [step.do for step in refined.draft.playbook.steps] == ["Open the valve."]


@pytest.mark.parametrize("quote", ["", "The pump exploded in flames", "pump", "umps does not ru"])
def test_a_claim_without_words_that_were_said_takes_nothing_away(quote: str) -> None:
    refined = refine(OLD, Refinement(OLD, removals=(Removal("The pump runs.", quote),)), TALK, "")
    assert refined.draft == OLD


def test_the_last_step_stays_whatever_is_claimed() -> None:
    said = "do not open the valve and do not bleed it"
    removals = (Removal("Open the valve.", said), Removal("Bleed it.", said))
    refined = refine(OLD, Refinement(OLD, removals=removals), (Turn("customer", said),), "")
    assert refined.draft.playbook.steps == OLD.playbook.steps


def test_a_new_step_stands_behind_the_one_it_followed() -> None:
    new = SkillDraft("", "", Playbook("", steps=(Step("Open the valve."), Step("Wait an hour."), Step("Bleed it."))))
    refined = refine(OLD, Refinement(new), TALK, "")
    assert [step.do for step in refined.draft.playbook.steps] == ["Open the valve.", "Wait an hour.", "Bleed it."]


def test_new_wording_of_a_step_is_said() -> None:
    new = SkillDraft("", "", Playbook("", steps=(Step("Bleed it.", "", "Please wait."),)))
    refined = refine(OLD, Refinement(new), TALK, "")
    assert refined.draft.playbook.steps[1] == Step("Bleed it.", "No air.", "Please wait.")
    assert refined.changes == ("Changed words of step “Bleed it.” from “Wait.” to “Please wait.”.",)


def test_a_full_skill_takes_no_more_and_says_so() -> None:
    many = tuple(f"number {number}" for number in range(200))
    new = SkillDraft("", "", Playbook("", steps=tuple(map(Step, many))), many, many)
    refined = refine(OLD, Refinement(new), TALK, "")
    sizes = (len(refined.draft.conditions), len(refined.draft.keywords), len(refined.draft.playbook.steps))
    assert sizes == (MAX_CONDITIONS, MAX_KEYWORDS, MAX_STEPS)
    assert sum(change.startswith("Left out ") for change in refined.changes) == 3
    assert get_items(OLD) <= get_items(refined.draft)
