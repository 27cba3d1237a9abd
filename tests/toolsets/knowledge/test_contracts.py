from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from refdesk.core import contracts
from refdesk.toolsets.knowledge import TOOLSET

FOLDER = Path(__file__).parents[3] / "contracts" / "knowledge"


@pytest.mark.parametrize("name", sorted(contracts.render_contracts(TOOLSET)))
def test_the_written_contracts_are_those_of_the_models(name: str) -> None:
    # To write them: python -m refdesk.core.contracts contracts refdesk.toolsets.knowledge
    assert (FOLDER / name).read_text(encoding="utf-8") == contracts.render_contracts(TOOLSET)[name]


def test_there_is_no_contract_of_what_is_no_more() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.json")) == sorted(contracts.render_contracts(TOOLSET))


def test_every_contract_is_a_draft_7_schema_that_its_examples_fit() -> None:
    for operation in TOOLSET.operations:
        contract = contracts.describe_operation(operation)
        jsonschema.Draft7Validator.check_schema(contract)
        for example in operation.examples:
            jsonschema.Draft7Validator(contract).validate(example)  # pyright: ignore[reportUnknownMemberType]
