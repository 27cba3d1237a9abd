"""What a skill is called: by what its customers began with, never by how it ended."""

from __future__ import annotations

from typing import Any

import pytest

from refdesk.stores.memory import MemoryStore
from tests.toolsets.skills.conftest import make_desk


async def learn(*conversations: str) -> dict[str, Any]:
    """Return the skill that the toolset learns from conversations, lines of which begin with C: or A:."""
    call = make_desk(MemoryStore()).serve()
    first, *others = [talk.replace("C:", "Customer:").replace("A:", "Agent:") for talk in conversations]
    id = (await call("create_skill", conversation=first))["skill_id"]
    for talk in others:
        await call("update_skill", skill_id=id, conversation=talk)
    return await call("get_skill", skill_id=id)


@pytest.mark.parametrize(
    ("conversation", "title"),
    [
        ("C: Hi\nA: Hello!\nC: Printer dead.\nA: Please hold the power key.\nC: Solved", "Printer dead"),
        (
            "C: Wifi slow\nA: Please restart the router.\nC: That did not help.\nA: Please use channel 11.\n"
            "C: Works now, thanks",
            "Wifi slow",
        ),
        ("C: Refund?\nA: Which order?\nC: 4471\nA: I refunded it.\nC: It shows as refunded", "Refund"),
        (
            "C: Hello\nA: Hi!\nC: Invoice\nA: Please add the VAT number under Billing.\n"
            "C: The error is gone and the VAT number is there, problem solved!",
            "Invoice",
        ),
        (
            "C: Hi, it's broken\nA: What is?\nC: The dishwasher leaves the glasses cloudy.\n"
            "A: Please refill the salt.\nC: That fixed it.",
            "The dishwasher leaves the glasses cloudy",
        ),
        (
            "C: I have a problem\nA: Sure, I am here for you.\nC: login to the portal, says session expired\n"
            "A: Please clear the cookies.\nC: ok works now",
            "Login to the portal, says session expired",
        ),
        (
            "C: It is urgent!\nA: I am listening to you.\nC: it still doesn't work\n"
            "C: Somebody took money from my account\nA: I have blocked the card.\nC: It is blocked, problem solved",
            "Somebody took money from my account",
        ),
        (
            "C: YOU CHARGED ME TWICE, I'M SO TIRED!!!\nA: I refunded it.",
            "You charged me twice, I'm so tired",
        ),
        ("C: VAT ID WRONG\nA: I corrected it.", "VAT ID WRONG"),
        ("C: It does not work\nA: Please restart it.\nC: Solved", "It does not work"),
        (
            "C: I'm Ann Smith and I would like to check my balance\nA: It is 12.\nC: Thanks",
            "Check my balance",
        ),
    ],
)
async def test_a_title_is_what_the_customer_began_with(conversation: str, title: str) -> None:
    assert (await learn(conversation))["title"] == title


@pytest.mark.parametrize(
    ("conversation", "title"),
    [
        (
            "C: Hallo\nA: Guten Tag, wie kann ich helfen?\nC: Rechnung falsch.\nA: Bitte öffnen Sie die Abrechnung.\n"
            "C: Das hat funktioniert, vielen Dank für die schnelle Hilfe!",
            "Rechnung falsch",
        ),
        (
            "C: Bonjour, je ne peux plus me connecter à mon compte.\nA: Veuillez le réinitialiser.\nC: Ça marche !",
            "Je ne peux plus me connecter à mon compte",
        ),
        (
            "C: Buenos días\nA: Hola\nC: Mi factura tiene un importe incorrecto.\nA: He corregido la factura.\n"
            "C: Perfecto, ya está solucionado.",
            "Mi factura tiene un importe incorrecto",
        ),
        (
            "お客様：こんにちは\nオペレーター：どうされましたか？\nお客様：プリンターが動きません。\n"
            "オペレーター：電源を入れ直してください。\nお客様：直りました。ありがとうございます。",
            "プリンターが動きません",
        ),
    ],
)
async def test_a_title_is_what_the_customer_began_with_in_any_language(conversation: str, title: str) -> None:
    assert (await learn(conversation))["title"] == title


async def test_how_it_ended_is_no_part_of_the_problem_of_several_conversations() -> None:
    fix = "A: Please press Windows+P and choose Duplicate."
    skill = await learn(
        f"C: Screen black.\n{fix}\nC: Solved",
        f"C: Black screen\n{fix}\nC: Works now, thanks",
        f"C: Hello\nA: Hello!\nC: Black.\nA: What is black?\nC: My monitor.\n{fix}\nC: It works again.",
    )
    assert skill["title"] == "Black screen"
    assert not {"solved", "works", "again"} & set(skill["problem"].casefold().replace(",", "").split())
    assert "solved" not in skill["keywords"]


@pytest.mark.parametrize("said", ["No internet.", "no sound on my laptop", "Right speaker silent", "Welcome mail lost"])
async def test_a_title_keeps_the_word_that_it_begins_with(said: str) -> None:
    skill = await learn(f"C: {said}\nA: Please restart the router.\nC: It works.")
    assert skill["title"] == said[:1].upper() + said[1:].rstrip(".")


async def test_what_an_agent_says_is_not_possible_stays_so() -> None:
    skill = await learn("C: I want my money back.\nA: No refund is possible after 30 days.\nC: Oh.")
    assert "no refund is possible" in skill["resolution"].casefold()
