"""What holds for every toolset that there is, read off its descriptor: one suite for all of them."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from refdesk.core import contracts
from refdesk.core.descriptors import ToolsetDescriptor
from refdesk.core.operations import Toolset
from refdesk.discovery import find_descriptors
from refdesk.factories.toolsets import describe_toolsets
from tests.conftest import REPOSITORY
from tests.toolsets.conformance import CHECKS

CONTRACTS = REPOSITORY / "contracts"
TOOLSETS = describe_toolsets()

each_toolset = pytest.mark.parametrize("toolset", TOOLSETS, ids=lambda toolset: toolset.name)


@each_toolset
def test_there_is_no_contract_of_what_is_no_more(toolset: Toolset) -> None:
    """Set REFDESK_UPDATE_SNAPSHOTS=1 to write the contracts anew."""
    folder = CONTRACTS / toolset.name
    if os.environ.get("REFDESK_UPDATE_SNAPSHOTS") == "1":
        contracts.write_contracts(toolset, folder)
    assert sorted(path.name for path in folder.glob("*.json")) == sorted(contracts.render_contracts(toolset))


@pytest.mark.parametrize(
    ("toolset", "name"),
    [(toolset, name) for toolset in TOOLSETS for name in sorted(contracts.render_contracts(toolset))],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_the_written_contracts_are_those_of_the_models(toolset: Toolset, name: str) -> None:
    assert (CONTRACTS / toolset.name / name).read_text(encoding="utf-8") == contracts.render_contracts(toolset)[name]


@each_toolset
def test_every_contract_is_a_draft_7_schema_that_its_examples_fit(toolset: Toolset) -> None:
    for operation in toolset.operations:
        contract = contracts.describe_operation(operation)
        jsonschema.Draft7Validator.check_schema(contract)
        for example in operation.examples:
            validator = jsonschema.Draft7Validator(contract)
            validator.validate(json.loads(json.dumps(example)))  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize("part", CHECKS)
@pytest.mark.parametrize("descriptor", find_descriptors(), ids=lambda each: each.name)
def test_no_part_is_missing(descriptor: ToolsetDescriptor, part: str) -> None:
    [toolset] = [each for each in TOOLSETS if each.name == descriptor.name]
    assert list(CHECKS[part](descriptor, toolset, REPOSITORY)) == []
