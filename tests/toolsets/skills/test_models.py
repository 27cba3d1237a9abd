"""The written contracts are those of the code, and have what the seed's models have."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from refdesk.core import contracts
from refdesk.factories.toolsets import load_toolsets
from tests.conftest import REPOSITORY

[TOOLSET] = load_toolsets(["skills"])

FOLDER = REPOSITORY / "contracts" / "skills"
SEED: dict[str, dict[str, Any]] = {
    "search_skills": {"query": ..., "top_k": 5, "min_score": 0.0},
    "create_skill": {"conversation": ..., "resolution_confirmed": False, "metadata": {}},
    "update_skill": {"skill_id": ..., "conversation": ..., "feedback": ""},
}
"""Arguments with their defaults; `...` is required."""

ADDED = {"client_token", "detail"}
"""What a caller may leave out, and the seed does not have."""

ANSWERS = {
    "search_skills": {"matches", "query", "search_time_ms"},
    "create_skill": {"skill_id", "title", "skill", "created"},
    "update_skill": {"skill_id", "title", "changes", "version"},
}


@pytest.mark.parametrize("name", SEED)
def test_requests_and_responses_have_the_names_and_defaults_of_the_seed(name: str) -> None:
    [operation] = [operation for operation in TOOLSET.operations if operation.name == name]
    fields = operation.input.model_fields
    defaults = {
        key: ... if field.is_required() else field.get_default(call_default_factory=True)
        for key, field in fields.items()
        if key not in ADDED
    }
    assert all(not fields[key].is_required() for key in ADDED & fields.keys())
    assert defaults == SEED[name]
    assert {key for key, field in operation.output.model_fields.items() if field.is_required()} == ANSWERS[name]


def test_the_examples_of_the_tools_are_valid() -> None:
    for operation in TOOLSET.operations:
        validator = jsonschema.Draft7Validator(contracts.describe_operation(operation))
        for example in operation.examples:
            assert validator.is_valid(json.loads(json.dumps(example)))  # pyright: ignore[reportUnknownMemberType]
