"""A question that says nothing finds what customers want who begin like that, and is certain of none of it."""

from __future__ import annotations

import pytest

from refdesk.toolsets.skills.openings import LOW_SCORE, leave_pleasantries, says_nothing
from tests.toolsets.skills.conftest import Desk

NOTHING = (
    "Hello",
    "hi there!",
    "Hi, I'm John.",
    "Good morning, can you help me please?",
    "-",
    "My name is [name] and I need help.",
    "Guten Tag",
)
SOMETHING = (
    "I'm lost!",
    "I'm locked out.",
    "refund",
    "Hi, can you help me with a ride?",
    "退款",
    "I can't sign in",
    "hello " * 20 + "my bill",
)
SILENT = "Customer: Hello!\nAgent: What is it about?\nCustomer: My {what} is broken.\nAgent: Please restart the {what}."
TELLING = "Customer: The {what} does not print.\nAgent: Please fill the {what} with paper."


@pytest.mark.parametrize("text", NOTHING)
def test_a_greeting_a_name_and_a_call_for_help_say_nothing(text: str) -> None:
    assert says_nothing(text)


@pytest.mark.parametrize("text", SOMETHING)
def test_a_problem_says_something_however_short_it_is(text: str) -> None:
    assert not says_nothing(text)


async def test_a_greeting_finds_what_is_asked_most_often_after_one_and_no_threshold_lets_it_pass(desk: Desk) -> None:
    call = desk.serve()
    telling = await call("create_skill", conversation=TELLING.format(what="printer"))
    often = await call("create_skill", conversation=SILENT.format(what="radiator valve"))
    for what in ("radiator valve in the bedroom", "old radiator valve"):
        await call("update_skill", skill_id=often["skill_id"], conversation=SILENT.format(what=what))
    once = await call("create_skill", conversation=SILENT.format(what="telephone line"))
    found = (await call("search_skills", query="Hello, are you there?"))["matches"]
    assert [match["skill_id"] for match in found] == [skill["skill_id"] for skill in (often, once, telling)]
    assert found[0]["score"] == LOW_SCORE
    assert (await call("search_skills", query="Hello!", min_score=0.3))["matches"] == []
    [first, *_] = (await call("search_skills", query="Hello, my printer does not print"))["matches"]
    assert first["skill_id"] == telling["skill_id"]
    assert first["score"] > LOW_SCORE


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("Hi, I need a ride. My name is John.", "I need a ride."),
        ("Hello! Thanks. The printer smokes, and I can't stop it.", "The printer smokes, and I can't stop it."),
        ("refund", "refund"),
        ("Hello there", "Hello there"),
        ("請求書が違います", "請求書が違います"),
    ],
)
def test_greetings_and_names_are_no_part_of_what_is_asked(question: str, left: str) -> None:
    assert leave_pleasantries(question) == left


async def test_a_question_finds_the_same_with_a_greeting_and_a_name(desk: Desk) -> None:
    call = desk.serve()
    for what in ("printer", "radiator", "telephone"):
        await call("create_skill", conversation=TELLING.format(what=what))
    bare = (await call("search_skills", query="The printer does not print."))["matches"]
    civil = await call("search_skills", query="Hello, how are you? The printer does not print. My name is Ann Smith.")
    assert civil["query"].endswith("My name is Ann Smith.")
    assert [(match["skill_id"], match["score"]) for match in civil["matches"]] == [
        (match["skill_id"], match["score"]) for match in bare
    ]
