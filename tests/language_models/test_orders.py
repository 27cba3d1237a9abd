"""Which orders are one act: not those that ask for the opposite, or set another value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from refdesk.language_models.rules import RulesModel
from refdesk.language_models.rules.orders import differ, read_order
from refdesk.model import Vector
from refdesk.playbooks import Case, SkillDraft, Turn

DIFFERENT = """
    enable dark mode in the display settings | disable dark mode in the display settings
    enable light mode | enable dark mode
    use port 587 with STARTTLS | use port 465 with implicit TLS
    open port 22 in the firewall | open port 2222 in the firewall
    switch the currency to EUR in the billing profile | switch the currency to USD in the billing profile
    open the file menu and enable the add-in | open the file menu and remove the add-in
    set the idle timeout to 30 seconds | set the idle timeout to 9000 seconds
    set option a in the menu | set option b in the menu
    set the toggle to on | set the toggle to off
    set the region to Europe | set the region to Asia
    select HDMI 1 as input | select HDMI 2 as input
    upgrade to Node 18 | upgrade to Node 16
    turn the light on | turn it off
    plug in the router | unplug the router
    lock the screen | unlock the screen
    close the window | do not close the window
    tighten the screw | loosen the screw
    move the slider to the left | move the slider to the right
    check your bank statement | send the receipt by e-mail
"""
ALIKE = """
    use order number 4477 | use order number 4478
    use the code 1234 to sign in | use the code 9999 to sign in
    choose May 13 | choose May 14
    select the 7 pm slot | select the 8 pm slot
    set it to $50 | set it to $70
    set the card to [card number] | set the card to [account number]
    go to Settings and set the MTU to 1400 | open Preferences, set the MTU to 1,400
    restart your computer | reboot your PC
    turn it off and on again | turn it off, wait and turn it on
    enable the setting | turn on the setting
    delete the app and install it again | reinstall the app
    hold the button for ten seconds | hold the button for 10 seconds
"""


def read_pairs(text: str) -> list[list[str]]:
    return [[side.strip() for side in line.split("|")] for line in text.strip().splitlines()]


@pytest.mark.parametrize(("one", "other"), read_pairs(DIFFERENT))
def test_opposite_orders_and_other_values_are_no_one_act(one: str, other: str) -> None:
    orders = [read_order(f"Please {each}.") for each in (one, other)]
    assert differ(*orders)
    assert differ(*reversed(orders))


def test_opposite_things_that_were_done_are_no_one_act() -> None:
    assert differ(read_order("I have enabled your card."), read_order("I've disabled your card."))
    assert differ(read_order("Your flight has been booked."), read_order("Your flight has been cancelled."))


@pytest.mark.parametrize(("one", "other"), read_pairs(ALIKE))
def test_what_is_of_one_case_and_other_words_make_no_difference(one: str, other: str) -> None:
    orders = [read_order(f"Please {each}.") for each in (one, other)]
    assert not differ(*orders)
    assert not differ(*reversed(orders))


def test_other_values_that_an_agent_set_are_no_one_act() -> None:
    assert differ(read_order("I have set the limit to 500."), read_order("I have set the limit to 900."))
    assert differ(read_order("The limit has been set to 500."), read_order("The limit has been set to 900."))
    assert not differ(read_order("I have set the limit to $500."), read_order("I have set the limit to $900."))


async def set_limits(*limits: int) -> list[tuple[str, int]]:
    """Return the steps, with their support, of conversations that differ by the limit that the agent set."""
    talks = [
        (Turn("customer", "The upload fails."), Turn("agent", f"I have set the limit to {limit} MB."))
        for limit in limits
    ]
    cases = [Case(f"case {number}", turns) for number, turns in enumerate(talks)]
    playbook = (await RulesModel().induce(cases, _embed)).playbook
    return [(step.do, len(step.cases)) for step in (*playbook.steps, *playbook.seldom)]


async def test_what_an_agent_set_to_another_value_is_another_step() -> None:
    assert await set_limits(500, 900) == [("Set the limit to 500 MB.", 1), ("Set the limit to 900 MB.", 1)]
    assert await set_limits(500, 900, 500) == [("Set the limit to 500 MB.", 2), ("Set the limit to 900 MB.", 1)]


@pytest.mark.parametrize("limits", [(500, 900, 200), (*range(500, 510), 500)])
async def test_what_an_agent_set_to_another_value_in_every_case_is_one_step_with_a_slot(limits: tuple[int]) -> None:
    assert await set_limits(*limits) == [("Set the limit to [value] MB.", len(limits))]


async def learn(problem: str, *fixes: str) -> SkillDraft:
    """Return what conversations teach that differ by their fix alone; their vectors say that all is the same."""
    cases = [
        Case(
            f"case {number}",
            (Turn("customer", problem), Turn("agent", f"Please {fix}."), Turn("customer", "It works.")),
        )
        for number, fix in enumerate(fixes)
    ]
    return await RulesModel().induce(cases, _embed)


async def _embed(texts: Sequence[str]) -> dict[str, Vector]:
    return {text: np.array([1.0, 0.0], dtype=np.float32) for text in texts}


@pytest.mark.parametrize(("one", "other"), read_pairs(DIFFERENT)[:8])
async def test_the_opposite_is_a_step_of_its_own_and_cases_that_disagree_are_named(one: str, other: str) -> None:
    playbook = (await learn("The screen is unreadable.", one, other)).playbook
    assert [step.say for step in playbook.steps] == [f"Please {one}.", f"Please {other}."]
    assert [len(step.cases) for step in playbook.steps] == [1, 1]


@pytest.mark.parametrize(("one", "other"), read_pairs(DIFFERENT)[:12])
async def test_orders_about_one_thing_that_contradict_are_named(one: str, other: str) -> None:
    edge_cases = (await learn("The screen is unreadable.", one, other)).playbook.edge_cases
    assert len(edge_cases) == ("add-in" not in one)


async def test_cases_that_disagree_are_an_edge_case() -> None:
    playbook = (
        await learn("The screen is unreadable.", "enable dark mode", "disable dark mode", "enable dark mode")
    ).playbook
    assert playbook.edge_cases == (
        "Cases disagree: have the customer enable dark mode (2 of 3), or have the customer disable dark mode (1 of 3).",
    )


async def test_each_order_of_a_turn_is_a_step() -> None:
    fix = "open the billing page and correct the number. Then click Regenerate"
    assert [step.do for step in (await learn("The number is wrong.", fix)).playbook.steps] == [
        "Have the customer open the billing page and correct the number.",
        "Have the customer click Regenerate.",
    ]


async def test_a_report_stays_with_what_the_customer_is_to_do_about_it() -> None:
    said = "The viewing has been planned. Please bring a passport."
    case = Case("one", (Turn("customer", "I want a viewing."), Turn("agent", said)))
    assert len((await RulesModel().induce([case], None)).playbook.steps) == 1


async def test_orders_about_other_things_do_not_disagree() -> None:
    left, right = "turn left and walk for 5 minutes", "turn right on El Camino Real and walk towards the Target"
    assert (await learn("Where is the station?", left, right)).playbook.edge_cases == ()
