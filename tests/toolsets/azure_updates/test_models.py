from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from refdesk.core import contracts
from refdesk.factories.toolsets import load_toolsets
from refdesk.toolsets.azure_updates.models import FACETS, RINGS, SearchInput, SearchOutput
from refdesk.toolsets.azure_updates.resource_models import Guide

[TOOLSET] = load_toolsets(["azure-updates"])

FOLDER = Path(__file__).parents[3] / "contracts" / "azure-updates"


def test_no_argument_is_needed_and_the_defaults_are_those_of_the_contract() -> None:
    request = SearchInput.model_validate({})
    assert (request.limit, request.offset, request.include_description, request.semantic) == (50, 0, True, True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": -1},
        {"limit": 0},
        {"limit": 101},
        {"limit": 1.5},
        {"limit": True},
        {"limit": "10"},
        {"offset": -1},
        {"query": 5},
        {"query": "x" * 1001},
        {"query": "a\x00b"},
        {"query": "a\ud800b"},
        {"unknown": 1},
        {"sort_by": "title:asc"},
        {"sortBy": "title"},
        {"facets": ["rings"]},
        {"semantic": "yes"},
        {"filters": []},
        {"filters": {"unknown": 1}},
        {"filters": {"date_from": "2026-01-01"}},
        {"filters": {"tags": "Security"}},
        {"filters": {"tags": [1]}},
        {"filters": {"tags": [""]}},
        {"filters": {"tags": ["x"] * 33}},
        {"filters": {"availabilityRing": "Beta"}},
        {"filters": {"dateFrom": "2026-02-30"}},
        {"filters": {"dateFrom": "2026-1-1"}},
        {"filters": {"dateFrom": "2026-01-01T00:00:00Z"}},
        {"filters": {"dateFrom": 1767225600}},
        {"filters": {"dateTo": "soon"}},
        {"filters": {"dateFrom": "2026-02-01", "dateTo": "2026-01-31"}},
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SearchInput.model_validate(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": 1},
        {"limit": 100},
        {"offset": 10**30},
        {"filters": {"dateFrom": "2026-01-01", "dateTo": "2026-01-01"}},
        {"filters": {"dateTo": "0001-01-01"}},
        {"filters": {"dateFrom": "9999-12-31"}},
        {"query": None, "filters": {"tags": None, "dateFrom": None}, "sortBy": None},
        *({"filters": {"availabilityRing": ring}} for ring in RINGS),
    ],
)
def test_right_arguments_are_taken_and_null_is_as_good_as_nothing(arguments: dict[str, object]) -> None:
    SearchInput.model_validate(arguments)


def test_the_five_rings_are_taken_in_any_case() -> None:
    assert RINGS == ("General Availability", "Preview", "Private Preview", "Retirement", "Effective")
    filters = SearchInput.model_validate({"filters": {"availabilityRing": " private PREVIEW"}}).filters
    assert filters.availability_ring == "Private Preview"


def test_reversed_days_are_explained() -> None:
    with pytest.raises(ValidationError, match="dateFrom 2026-02-01 is after dateTo 2026-01-31"):
        SearchInput.model_validate({"filters": {"dateFrom": "2026-02-01", "dateTo": "2026-01-31"}})


def test_an_answer_writes_null_where_the_contract_has_it_and_leaves_out_what_was_not_set() -> None:
    names = ("tags", "productCategories", "products", "statuses", "availabilityRings")
    values = {name: list[str]() for name in names}
    unsynced = {"totalUpdates": 0, "lastSyncTimestamp": None, "dataFreshnessHours": None}
    guide = Guide.model_validate(values | unsynced)
    for written in (guide.model_dump(), guide.model_dump(by_alias=True, exclude_none=True)):
        assert written == values | unsynced
    assert json.loads(guide.model_dump_json()) == values | unsynced


def test_the_tools_contract_has_the_names_limits_and_closed_objects_of_the_seed() -> None:
    schema = contracts.get_input_schema(SearchInput)
    properties = json.loads(json.dumps(schema["properties"]))
    assert list(properties)[:5] == ["query", "id", "filters", "limit", "offset"]
    assert properties["limit"] | {"description": ""} == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": 50,
        "description": "",
    }
    assert (properties["offset"]["minimum"], properties["offset"]["default"]) == (0, 0)
    filters = properties["filters"]
    assert (schema["additionalProperties"], filters["additionalProperties"]) == (False, False)
    assert list(filters["properties"]) == [
        *("tags", "productCategories", "products", "status", "availabilityRing", "dateFrom", "dateTo"),
        *("modifiedFrom", "modifiedTo", "matchAny"),
    ]
    assert filters["properties"]["availabilityRing"]["enum"] == list(RINGS)
    assert filters["properties"]["dateFrom"]["format"] == "date"
    assert "required" not in schema
    assert not any(noise in json.dumps(schema) for noise in ("null", "$ref", "anyOf"))


def test_the_examples_of_the_tool_are_valid() -> None:
    operation, *_ = TOOLSET.operations
    validator = jsonschema.Draft7Validator(contracts.describe_operation(operation))
    for example in operation.examples:
        assert validator.is_valid(json.loads(json.dumps(example)))  # pyright: ignore[reportUnknownMemberType]
        SearchInput.model_validate(example)


def test_the_answers_fields_are_those_of_the_seed() -> None:
    schema = json.loads(json.dumps(contracts.get_output_schema(SearchOutput)))
    assert schema["required"] == ["results", "total", "limit", "offset", "hasMore"]
    update = schema["properties"]["results"]["items"]
    seed = ["id", "title", "description", "status", "tags", "productCategories", "products", "availabilities"]
    assert list(update["properties"]) == [
        *seed,
        "created",
        "modified",
        "relevance",
        "url",
        "titleDate",
        "datesDiffer",
        "match",
        "caution",
    ]
    assert set(FACETS) == {"tags", "productCategories", "products", "status", "availabilityRing"}
