from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import ValidationError

from refdesk.core import contracts
from refdesk.core.search.federation import Period
from refdesk.factories.toolsets import TOOLSET_NAMES
from refdesk.toolsets.everything import TOOLSET
from refdesk.toolsets.everything.models import SearchInput, ToolsetName

FOLDER = Path(__file__).parents[3] / "contracts" / "everything"


@pytest.mark.parametrize("name", sorted(contracts.render_contracts(TOOLSET)))
def test_the_written_contracts_are_those_of_the_models(name: str) -> None:
    # To write them: python -m refdesk.core.contracts contracts refdesk.toolsets.everything
    assert (FOLDER / name).read_text(encoding="utf-8") == contracts.render_contracts(TOOLSET)[name]


def test_there_is_no_contract_of_what_is_no_more() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.json")) == sorted(contracts.render_contracts(TOOLSET))


def test_every_contract_is_a_draft_7_schema_that_its_examples_fit() -> None:
    for operation in TOOLSET.operations:
        contract = contracts.describe_operation(operation)
        jsonschema.Draft7Validator.check_schema(contract)
        for example in operation.examples:
            jsonschema.Draft7Validator(contract).validate(example)  # pyright: ignore[reportUnknownMemberType]


def test_the_names_that_may_be_asked_for_are_those_of_the_toolsets_there_are() -> None:
    assert sorted(get_args(ToolsetName)) == sorted(TOOLSET_NAMES)


def read_period(**filters: str) -> Period:
    return SearchInput.model_validate({"query": "x", "filters": filters}).filters.period


def test_a_day_is_a_whole_day_in_utc_and_an_instant_without_an_offset_is_in_utc() -> None:
    day = read_period(since="2026-03-01", until="2026-03-31")
    assert day == Period(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 31, 23, 59, 59, 999_999, tzinfo=UTC))
    assert read_period(since="2026-03-01T10:00:00+02:00").since == datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert read_period(until="2026-03-01T10:00").until == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert read_period() == Period()
    assert read_period(since="2026-03-01", until="2026-03-01").is_bounded


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": "  "},
        {"query": "x" * 1001},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 51},
        {"query": "x", "limit": "10"},
        {"query": "x", "deadlineMs": 99},
        {"query": "x", "deadlineMs": 10_001},
        {"query": "x", "deadlineMs": True},
        {"query": "x", "toolsets": ["astrology"]},
        {"query": "x", "filters": {"tags": [" "]}},
        {"query": "x", "filters": {"tags": ["a"] * 17}},
        {"query": "x", "filters": {"since": "soon"}},
        {"query": "x", "filters": {"since": "2026-02-30"}},
        {"query": "x", "filters": {"until": "0001-01-01T00:00:00+23:59"}},
        {"query": "x", "filters": {"since": "2026-03-02", "until": "2026-03-01"}},
        {"query": "x", "filters": {"colour": "red"}},
        {"query": "x", "offset": 1},
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SearchInput.model_validate(arguments)
