"""The written contracts are those of the code, and have what the seed's models have."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from refdesk.core import contracts
from refdesk.errors import ConfigurationError
from refdesk.toolsets.skills import TOOLSET
from tests.conftest import REPOSITORY
from tests.toolsets.skills.conftest import INVOICE, Desk

FOLDER = REPOSITORY / "contracts" / "skills"
SEED: dict[str, dict[str, Any]] = {
    "search_skills": {"query": ..., "top_k": 5, "min_score": 0.0},
    "create_skill": {"conversation": ..., "resolution_confirmed": False, "metadata": {}},
    "update_skill": {"skill_id": ..., "conversation": ..., "feedback": ""},
}
"""Arguments with their defaults; `...` is required."""

ANSWERS = {
    "search_skills": {"matches", "query", "search_time_ms"},
    "create_skill": {"skill_id", "title", "skill", "created"},
    "update_skill": {"skill_id", "title", "changes", "version"},
}


@pytest.mark.parametrize("name", sorted(contracts.render_contracts(TOOLSET)))
def test_the_written_contracts_are_those_of_the_models(name: str) -> None:
    # To write them: python -m refdesk.core.contracts contracts refdesk.toolsets.skills
    assert (FOLDER / name).read_text(encoding="utf-8") == contracts.render_contracts(TOOLSET)[name]


def test_there_is_no_other_contract() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.json")) == sorted(contracts.render_contracts(TOOLSET))


@pytest.mark.parametrize("name", SEED)
def test_requests_and_responses_have_the_names_and_defaults_of_the_seed(name: str) -> None:
    [operation] = [operation for operation in TOOLSET.operations if operation.name == name]
    fields = operation.input.model_fields
    defaults = {
        key: ... if field.is_required() else field.get_default(call_default_factory=True)
        for key, field in fields.items()
    }
    assert defaults == SEED[name]
    assert {key for key, field in operation.output.model_fields.items() if field.is_required()} == ANSWERS[name]


def test_the_examples_of_the_tools_are_valid() -> None:
    for operation in TOOLSET.operations:
        validator = jsonschema.Draft7Validator(contracts.describe_operation(operation))
        for example in operation.examples:
            assert validator.is_valid(json.loads(json.dumps(example)))  # pyright: ignore[reportUnknownMemberType]


async def test_the_toolset_that_contracts_are_written_from_learns_nothing(desk: Desk) -> None:
    [create] = [operation for operation in TOOLSET.operations if operation.name == "create_skill"]
    with pytest.raises(ConfigurationError, match="No language model"):
        await create.handler(desk.context(), create.input.model_validate({"conversation": INVOICE}))
