"""What corrects the course of a conversation: fixes that customers find themselves, and advice that is taken back."""

from __future__ import annotations

import pytest

from refdesk.language_models.rules import RulesModel
from refdesk.playbooks import Case, Playbook, Turn
from refdesk.toolsets.skills import cases


def read(text: str) -> tuple[Turn, ...]:
    """Return the turns of a conversation whose lines begin with C or A."""
    lines = [line.strip().partition(": ") for line in text.strip().splitlines()]
    return tuple(Turn("customer" if who == "C" else "agent", said) for who, _, said in lines)


async def learn(text: str) -> tuple[Case, Playbook]:
    """Return the case of a conversation and the playbook that it makes."""
    case = cases.make_case(read(text))
    return case, (await RulesModel().induce([case], None)).playbook


async def test_a_fix_that_the_customer_found_is_a_step_and_what_was_tried_in_vain_is_none() -> None:
    case, playbook = await learn(
        """
        C: My internet is down.
        A: Please restart the modem.
        C: That did not help.
        A: Please update the firmware of the router.
        C: Never mind, I unplugged the router and plugged it back in and now it works.
        A: Great to hear!
        """
    )
    assert case.outcome == "likely_resolved"
    (step,) = playbook.steps
    assert (step.do, step.say) == ("Have the customer unplug the router and plug it back in.", "")
    assert step.check == "The customer says so, as in “it works”."
    assert playbook.edge_cases == (
        "Tried, and did not help (1 of 1): have the customer restart the modem.",
        "Advised, but a customer found what helped (1 of 1): have the customer update the firmware of the router.",
    )


@pytest.mark.parametrize(
    ("said", "done"),
    [
        ("I just had to clear my cache, works now, thanks!", "clear the customer's cache"),
        ("Turning the breaker off and on again fixed it actually", "turn the breaker off and on again"),
        ("Figured it out myself: I took the battery out and it's fine now", "take the battery out"),
        ("Forget it. I reset the password and that solved it.", "reset the password"),
    ],
)
async def test_however_customers_say_what_helped(said: str, done: str) -> None:
    _, playbook = await learn(f"C: The heating control is dead.\nA: Which model is it?\nC: {said}")
    assert [step.do for step in playbook.steps[1:]] == [f"Have the customer {done}."]


@pytest.mark.parametrize(
    "said",
    [
        "I cleared the cache and it works now.",
        "Never mind, I cleared the cache of the app as you said and it works now.",
        "I found out that my account was locked. It still does not work.",
        "Never mind, I will do it myself.",
        "I waited and it works now?",
    ],
)
async def test_who_follows_the_advice_or_found_nothing_adds_no_step(said: str) -> None:
    _, playbook = await learn(f"C: The app does not open.\nA: Please clear the cache of the app.\nC: {said}")
    steps = [step.do for step in (*playbook.steps, *playbook.seldom)]
    assert not [step for step in steps if "cache" not in step and "Find out" not in step]


async def test_a_fix_that_customers_find_and_agents_advise_is_one_step() -> None:
    found = read("C: The lamp flickers.\nA: Which lamp?\nC: Never mind, I tightened the bulb and now it works.")
    told = read("C: The lamp flickers.\nA: Which lamp?\nC: The big one.\nA: Please tighten the bulb.\nC: It works now!")
    learned = await RulesModel().induce([Case("found", found), Case("told", told)], None)
    assert [(step.do, step.say, len(step.cases)) for step in learned.playbook.steps] == [
        ("Ask: “Which lamp?”.", "Which lamp?", 2),
        ("Have the customer tighten the bulb.", "Please tighten the bulb.", 2),
    ]


@pytest.mark.parametrize(
    "taken_back",
    [
        "Sorry, that was wrong, don't reset it; instead remove the phone from the list and pair it again.",
        "Oh wait, my mistake. Ignore what I said about resetting. Remove the phone from the list and pair it again.",
        "Scratch that. Please don't reset the phone. Remove the phone from the list and pair it again.",
        "I gave you the wrong advice - remove the phone from the list and pair it again.",
    ],
)
async def test_advice_that_is_taken_back_is_no_step(taken_back: str) -> None:
    for between in ("", "C: ok, one second\n"):
        _, playbook = await learn(
            "C: My phone cannot connect to the car.\n"
            f"A: Please reset the phone.\n{between}A: {taken_back}\nC: It works now!"
        )
        assert [step.do for step in playbook.steps] == [
            "Have the customer remove the phone from the list and pair it again."
        ]
        assert playbook.edge_cases == ("Advised, and taken back (1 of 1): have the customer reset the phone.",)


async def test_only_what_is_named_is_taken_back() -> None:
    _, playbook = await learn(
        """
        C: The projector hums.
        A: Please reset the fan. Please clean the filter.
        C: The filter is clean now.
        A: Sorry, my mistake, don't reset the fan.
        A: Please tighten the screws of the lid.
        C: That fixed it
        """
    )
    assert [step.do for step in playbook.steps] == [
        "Have the customer clean the filter.",
        "Have the customer tighten the screws of the lid.",
    ]


async def test_what_worked_is_not_taken_back() -> None:
    _, playbook = await learn(
        """
        C: The projector hums.
        A: Please clean the filter.
        C: It works now!
        A: My mistake, I should have said that first.
        """
    )
    assert [step.do for step in playbook.steps][:1] == ["Have the customer clean the filter."]


async def test_that_it_worked_counts_though_courtesies_follow() -> None:
    case, _ = await learn("C: It hums.\nA: Clean it.\nC: Works now!\nA: Anything else?\nC: No, that's all. Thanks!")
    assert case.outcome == "likely_resolved"
