"""Conversations in other languages than English become playbooks in those languages."""

from __future__ import annotations

import pytest

from refdesk.kit import phrases, verdicts
from refdesk.language_models.rules import RulesModel, foreign, imperatives, induction
from refdesk.language_models.rules.orders import differ, read_order
from refdesk.toolsets.skills import cases
from tests.language_models.conversations import CONVERSATIONS, Conversation

NAMES = [f"{number}-{each.language}" for number, each in enumerate(CONVERSATIONS)]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=NAMES)
async def test_a_conversation_becomes_a_playbook(conversation: Conversation) -> None:
    case = cases.make_case(conversation.turns)
    assert case.outcome == conversation.outcome
    draft = await RulesModel().induce([case], None)
    assert conversation.title in draft.title
    steps = [step.do for step in draft.playbook.steps]
    if not conversation.steps:
        assert draft.playbook.steps == (induction.NOTHING_HELPED,)
    else:
        assert len(steps) == len(conversation.steps)
        for step, wanted in zip(steps, conversation.steps, strict=True):
            assert wanted.removeprefix("?") in step
            assert step.startswith("Ask") == wanted.startswith("?")
    for tried in conversation.tried:
        assert any(tried in edge for edge in draft.playbook.edge_cases)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("Es geht leider immer noch nicht", "failed"),
        ("Funktioniert es jetzt wieder?", ""),
        ("Der Drucker geht jetzt gar nicht mehr", ""),
        ("ca marche toujours pas", "failed"),
        ("plus aucun message d'erreur, merci", "worked"),
        ("todavia no funciona", "failed"),
        ("ya no me sale el error", "worked"),
        ("ora va tutto bene, ma prima no", "worked"),
        ("o erro sumiu, obrigado", "worked"),
        ("werkt nog steeds niet", "failed"),
        ("Niestety to nie pomogło", "failed"),
        ("没问题了，谢谢", "worked"),
        ("还是一样", "failed"),
        ("エラーが出なくなりました", "worked"),
        ("まだ表示されません", "failed"),
        ("Niente da fare, è sempre lento", "failed"),
        ("Agora chegou, obrigado!", "worked"),
        ("Helpt niet helaas", "failed"),
        ("Het flikkeren is weg, bedankt", "worked"),
        ("Już się ładuje, dzięki!", "worked"),
        ("有声音了，多谢", "worked"),
        ("音が出るようになりました！", "worked"),
        ("Danke, der Tipp hat geholfen", "worked"),
        ("非常感谢，已经恢复正常", "worked"),
    ],
)
def test_whether_it_helped_is_said_in_any_language(said: str, verdict: str) -> None:
    assert verdicts.judge_answer(said) == verdict


@pytest.mark.parametrize(
    ("said", "done"),
    [
        ("Bitte starten Sie den Router neu.", "Have the customer do this: “Bitte starten Sie den Router neu”"),
        (
            "Ouvrez les paramètres de l'application.",
            "Have the customer do this: “Ouvrez les paramètres de l'application”",
        ),
        ("¿Qué modelo de router tiene usted?", "Ask: “¿Qué modelo de router tiene usted?”"),
        ("Open de instellingen van de app.", "Have the customer do this: “Open de instellingen van de app”"),
        ("Ho inviato la fattura al suo indirizzo.", "Do this and say so: “Ho inviato la fattura al suo indirizzo”"),
        ("请不要关闭电源。", "Tell the customer: “请不要关闭电源”"),
        ("Verifique a ligação do cabo de rede.", "Have the customer do this: “Verifique a ligação do cabo de rede”"),
    ],
)
def test_orders_reports_and_questions_are_told_apart_and_quoted(said: str, done: str) -> None:
    assert imperatives.word(said)[1] == done


@pytest.mark.parametrize(
    "said",
    [
        "Please restart the router and open the settings.",
        "I have sent a label to your address.",
        "Could you give me your order number, please?",
        "Go to Settings, then General, then Reset.",
        "Let's get revenge together.",
        "I need to RSVP to Ben's party",
        "I don't want Dave nor John.",
    ],
)
def test_english_is_not_taken_for_another_language(said: str) -> None:
    assert not foreign.is_foreign(said)


@pytest.mark.parametrize(
    "said",
    [
        "No problem found.",
        "No appointments are available at 10 pm.",
        "Sorry I don't have that",
        "The super user is locked.",
        "It is no fun to wait on hold.",
        "Check the top drawer and the bottom one.",
    ],
)
@pytest.mark.parametrize("kind", ["CIVIL"])
def test_no_english_sentence_is_a_pleasantry_of_another_language(said: str, kind: phrases.Kind) -> None:
    assert not phrases.is_whole(kind, said)


@pytest.mark.parametrize("said", ["Viens", "Grüß Gott!", "Bonjour", "DZIĘKUJĘ", "dziekuje", "muchas gracias", "谢谢您"])
def test_accents_and_case_make_no_difference(said: str) -> None:
    assert phrases.fold(said) == phrases.fold(said.upper())


def test_what_is_forbidden_is_never_one_act_with_what_is_ordered() -> None:
    one, other = (read_order(said) for said in ("Schalten Sie das Gerät aus.", "Schalten Sie das Gerät nicht aus."))
    assert one is not None
    assert other is not None
    assert differ(one, other)
