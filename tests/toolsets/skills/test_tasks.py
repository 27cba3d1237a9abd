"""What a task keeps of a conversation until it has been learned."""

from __future__ import annotations

import json

import pytest

from refdesk.core.operations import Operation
from refdesk.errors import InvalidInputError
from refdesk.language_models.rules import RulesModel
from refdesk.toolsets.skills.learning import prepare
from tests.toolsets.skills.conftest import describe

TALK = """\
Customer: I cannot sign in. My mail is jane.roe@example.com
and my card is 4111 1111 1111 1111.
Agent: What is your PIN?
Customer: 4711
Agent: Please choose Forgotten password.
Customer: That worked, thanks!
"""
LEARNING = [each for each in describe(RulesModel()).operations if each.keep is not None]


def keep(operation: Operation, **arguments: object) -> dict[str, object]:
    assert operation.keep is not None
    return {**operation.keep(operation.input.model_validate(arguments))}


@pytest.mark.parametrize("operation", LEARNING, ids=lambda each: each.name)
def test_personal_data_is_not_kept_and_learning_it_again_reads_the_same(operation: Operation) -> None:
    more = {"skill_id": "x", "feedback": "Mail jane.roe@example.com."} if operation.name == "update_skill" else {}
    kept = keep(operation, conversation=TALK, **more)
    written = json.dumps(kept)
    assert not [secret for secret in ("jane.roe", "4111", "4711") if secret in written]
    assert prepare(str(kept["conversation"])) == prepare(TALK)
    again = keep(operation, **kept)
    assert again == kept


def test_both_ways_of_learning_may_be_tasks() -> None:
    assert [each.name for each in LEARNING] == ["create_skill", "update_skill"]


def test_what_holds_no_word_is_no_task() -> None:
    with pytest.raises(InvalidInputError):
        keep(LEARNING[0], conversation="Customer:  \n")
