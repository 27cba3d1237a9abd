"""Personal data is masked wherever it stands, and what is no personal data stays."""

from __future__ import annotations

import json
from time import process_time

import pytest

from refdesk.kit import masking
from refdesk.kit.masking import mask, mask_turns, mask_value
from refdesk.playbooks import Turn
from refdesk.toolsets.skills import transcripts
from tests.toolsets.skills.conftest import Desk, ScriptedModel

CARDS = ("4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111", "378282246310005", "4111.1111.1111.1111")


@pytest.mark.parametrize("card", CARDS)
def test_a_card_number_is_masked(card: str) -> None:
    assert mask(f"My card {card} was refused.") == "My card [card number] was refused."


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to ann.o'neil+x@mail.example.co.uk now", "write to ann.o'[e-mail] now"),
        ("call +1 (977) 625-2661 or 555.123.4567", "call [phone number] or [phone number]"),
        ("電話は090-1234-5678です", "電話は[phone number]です"),
        ("my social is 123-45-6789", "my social is [social security number]"),
        ("SSN: 123-45-6789", "SSN: [social security number]"),
        ("account number is 351531510", "account number is [account number]"),
        ("order 3348917502", "order [order number]"),
        ("account no. AB-12345", "account no. [account number]"),
        ("DE89 3704 0044 0532 0130 00", "[account number]"),
        ("my PIN is 7402", "my PIN is [secret]"),
        ("password: hunter2", "password: [secret]"),
        ("１２３４５６７８９０", "[account number]"),
    ],
)
def test_personal_data_is_masked_by_its_kind(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "on 2024-01-15 10:22:33 or 04/04/1990",
        "at 192.168.100.200 with version 10.0.19045.3803",
        "$1,234,567.89 for 300 rooms",
        "error 0x80070005, code 1603, room 450",
        "my account was 3 days late",
        "2 4 6 8 10 12",
    ],
)
def test_what_is_no_personal_data_stays(text: str) -> None:
    assert mask(text) == text


def test_digits_that_answer_a_question_are_masked_whole() -> None:
    turns = (Turn("agent", "Your PIN, please?"), Turn("customer", "7402"), Turn("customer", "ok, 94 31"))
    assert [turn.text for turn in mask_turns(turns)] == ["Your PIN, please?", "[secret]", "[secret]"]


def test_metadata_keeps_its_references_and_loses_what_is_certainly_personal() -> None:
    given = {
        "ticket": "4471982113",
        "notes": ["card 4111111111111111", {"mail": "a@b.example"}],
        "size": 4111111111111111,
    }
    assert mask_value(given) == {
        "ticket": "4471982113",
        "notes": ["card [card number]", {"mail": "[e-mail]"}],
        "size": 4111111111111111,
    }


def test_whoever_is_named_once_is_masked_in_the_whole_conversation_and_people_are_not_confused() -> None:
    turns = (
        Turn("customer", "Hello there"),
        Turn("agent", "Could I get your full name?"),
        Turn("customer", "tyler jones"),
        Turn("agent", "Thanks Tyler. Is this for you, Mr. Jones?"),
        Turn("customer", "No, it is for my wife, her name is Ann."),
        Turn("agent", "Then Ann gets a letter, and Tyler's stays."),
    )
    assert [turn.text for turn in mask_turns(turns)] == [
        "Hello there",
        "Could I get your full name?",
        "[name]",
        "Thanks [name]. Is this for you, Mr. [name]?",
        "No, it is for my wife, her name is [name 2].",
        "Then [name 2] gets a letter, and [name]'s stays.",
    ]


def test_a_password_that_answers_a_question_is_masked() -> None:
    turns = (Turn("agent", "What is the password?"), Turn("customer", "Sup3rman!"))
    assert mask_turns(turns)[1].text == "[secret]"


@pytest.mark.parametrize("said", ["XK4P2L", "it's xk4p2l.", "AB-99871", "#A4471"])
def test_a_reference_that_answers_a_question_is_masked(said: str) -> None:
    for asked in ("May I have your booking reference?", "What is your order number?"):
        assert [turn.text for turn in mask_turns((Turn("agent", asked), Turn("customer", said)))][1] == "[order number]"


@pytest.mark.parametrize("said", ["XK4P2L", "5.2", "Firefox", "yesterday", "E42"])
def test_what_answers_another_question_stays(said: str) -> None:
    assert mask_turns((Turn("agent", "What does the screen show?"), Turn("customer", said)))[1].text == said


def test_two_short_numbers_that_answer_stay_different_conversations() -> None:
    asked = Turn("agent", "Could you tell me your order number, please?")
    assert mask_turns((asked, Turn("customer", "It is 4471.")))[1].text == "It is 4471."


def test_a_span_of_years_is_no_phone_number() -> None:
    said = "Install the Visual C++ Redistributable 2015-2022."
    assert mask(said) == said


def test_what_a_tool_was_given_is_masked_by_the_names_of_its_arguments() -> None:
    given = {
        "CustomerName": "Ann Arden",
        "PIN": "7402",
        "HotelName": "Sea View",
        "email": "x",
        "note": "call 555-123-4567",
    }
    [masked] = mask_turns([Turn("system", json.dumps(given), "book")])
    assert json.loads(masked.text) == {
        "CustomerName": "[name]",
        "PIN": "[secret]",
        "HotelName": "Sea View",
        "email": "[e-mail]",
        "note": "call [phone number]",
    }


@pytest.mark.parametrize(
    "text",
    [
        "The account number field must be turned off.",
        "customer: 3 items were missing",
        "I'm Greek and this is Great.",
        "Dear customer, your password is incorrect.",
        "HTTP status code is 503, error code is 1603",
        "Firmware 4.3.2.1 at 192.168.0.1",
    ],
)
def test_the_products_own_text_stays(text: str) -> None:
    assert mask(text) == text


async def test_neither_the_model_nor_the_store_sees_personal_data(desk: Desk) -> None:
    personal = {"4111 1111 1111 1111", "ann@mail.example", "+1 (977) 625-2661", "351531510", "123-45-6789"}
    talk = "Customer: I cannot pay.\n" + "\n".join(
        f"Customer: it is {one}\nAgent: So {one}." for one in sorted(personal)
    )
    model = ScriptedModel()
    created = await desk.serve(model)("create_skill", conversation=talk)
    by_rules = await desk.serve()("create_skill", conversation=f"{talk}\nAgent: Please pay by transfer.")
    for id in (created["skill_id"], by_rules["skill_id"]):
        await desk.serve()("update_skill", skill_id=id, conversation=talk, feedback=f"Wrong: {personal}")
        await desk.serve(model)("update_skill", skill_id=id, conversation=talk, feedback=f"Wrong: {personal}")
    kept = [repr(skill) for skill in await desk.queries().list_skills()]
    history = [repr(await desk.queries().get_history(created["skill_id"]))]
    seen = json.dumps([[turn.text for turn in case.turns] + [case.note] for cases in model.shown for case in cases])
    for one in personal:
        assert one not in seen
        assert not [text for text in kept + history if one in text]
    assert "[card number]" in seen


@pytest.mark.parametrize(
    "piece",
    ["a", "1", "1 ", "a@", "1.2.", "account number ", "Customer: x\nAgent: y\n", "x: ", "[[", '{"', "+1-", "A12 "],
)
def test_a_megabyte_of_anything_is_read_and_masked_in_linear_time(piece: str) -> None:
    def measure(length: int) -> float:
        text = (piece * length)[:length]
        started = process_time()
        masking.mask_turns(transcripts.read(text))
        return process_time() - started

    short = max(measure(125_000), 0.01)
    assert measure(1_000_000) < short * 8 * 6
