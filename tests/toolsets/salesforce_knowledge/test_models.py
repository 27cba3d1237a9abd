from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from pydantic import ValidationError

from refdesk import errors
from refdesk.core import contracts
from refdesk.core.clock import FixedClock
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.operations import Operation
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
from refdesk.toolsets.salesforce_knowledge.models import (
    Article,
    ArticleSummary,
    GetInput,
    GetOutput,
    SearchInput,
    SearchOutput,
)
from refdesk.toolsets.salesforce_knowledge.operations import make_toolset
from tests.toolsets.salesforce_knowledge.samples import version_id

[TOOLSET] = load_toolsets(["salesforce-knowledge"])

FOLDER = Path(__file__).parents[3] / "contracts" / "salesforce-knowledge"
CODES = {
    *("NOT_FOUND", "PERMISSION_DENIED", "RATE_LIMIT_WARNING", "RATE_LIMIT_EXCEEDED", "INVALID_INPUT", "SF_API_ERROR"),
    *("AUTH_ERROR", "KNOWLEDGE_DISABLED"),
}
OPTIONAL_TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}
OPTIONAL_INSTANT = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}


def get_operation(name: str) -> Operation:
    return next(operation for operation in TOOLSET.operations if operation.name == name)


def shape(schema: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A schema without descriptions and examples."""
    if isinstance(schema, list):
        return [shape(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    entries = cast("dict[str, Any]", schema).items()
    return {key: shape(value) for key, value in entries if key not in ("description", "examples")}


CATEGORY = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "group": {"type": "string", "maxLength": 80},
        "categories": {"type": "array", "minItems": 1, "maxItems": 10, "items": {"type": "string", "maxLength": 80}},
        "scope": {"type": "string", "enum": ["at", "above", "below", "above_or_below"], "default": "below"},
    },
    "required": ["group", "categories"],
}


def test_what_is_asked_has_the_names_defaults_and_limits_of_the_seed() -> None:
    assert shape(contracts.get_input_schema(SearchInput)) == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "query": {"type": "string", "maxLength": 1000},
            "language": {"type": "string", "default": "en_US", "maxLength": 12},
            "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 25},
            "categories": {"type": "array", "maxItems": 3, "items": CATEGORY},  # not in the seed
        },
        "required": ["query"],
    }
    assert shape(contracts.get_input_schema(GetInput)) == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "article_id": {"type": "string", "maxLength": 100},
            "offset": {"type": "integer", "default": 0, "minimum": 0},  # reads on in a long article; not in the seed
        },
        "required": ["article_id"],
    }


def test_what_is_answered_has_the_names_and_types_of_the_seed() -> None:
    common = {
        "summary": OPTIONAL_TEXT,
        "url_name": OPTIONAL_TEXT,
        "last_published": OPTIONAL_INSTANT,
        "article_type": OPTIONAL_TEXT,
    }
    summary = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "id": {"type": "string"},
            "title": {"type": "string"},
            **common,
            "org": {"type": "string"},
            "match": {"type": "string", "enum": ["strong", "partial", "weak"]},
            "caution": {"type": "string"},
        },
        "required": ["id", "title"],
    }
    assert shape(contracts.get_output_schema(SearchOutput)) == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "notice": {"type": "string"},
            "language": {"type": "string"},
            "articles": {"type": "array", "items": summary},
            "total_count": {"type": "integer"},
            "search_method": {"type": "string", "enum": ["sosl", "soql"]},
        },
    }
    properties = {"id": {"type": "string"}, "title": {"type": "string"}, "body": {"type": "string"}, **common}
    properties |= {"org": {"type": "string"}, "caution": {"type": "string"}}
    article = {**summary, "properties": properties, "required": ["id", "title", "body"]}
    assert shape(contracts.get_output_schema(GetOutput)) == {
        "type": "object",
        "additionalProperties": False,
        "properties": {"article": article, "notice": {"type": "string"}},
        "required": ["article"],
    }


def test_the_tools_name_the_eight_codes_and_are_known_to_read_outside() -> None:
    named = {code for operation in TOOLSET.operations for code in operation.errors}
    assert named == CODES
    assert (TOOLSET.name, TOOLSET.error_format.is_flat) == ("salesforce-knowledge", False)
    for operation in TOOLSET.operations:
        assert operation.scopes == {"articles:read"}
        assert (operation.effects.read_only, operation.effects.open_world) == (True, True)
    routes = [(operation.route.method, operation.route.path) for operation in TOOLSET.operations]
    assert routes == [("POST", "/articles/search"), ("GET", "/articles/{article_id}")]


def test_the_examples_are_valid() -> None:
    for operation in TOOLSET.operations:
        validator = jsonschema.Draft7Validator(contracts.describe_operation(operation))
        for example in operation.examples:
            assert validator.is_valid(json.loads(json.dumps(example)))  # pyright: ignore[reportUnknownMemberType]
            operation.input.model_validate(example)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": ""},
        {"query": " \t"},
        {"query": "a"},
        {"query": "** ?? --"},
        {"query": "x" * 1001},
        {"query": 5},
        {"query": "vpn", "limit": 0},
        {"query": "vpn", "limit": 26},
        {"query": "vpn", "limit": "5"},
        {"query": "vpn", "limit": True},
        {"query": "vpn", "limit": 2.5},
        {"query": "vpn", "language": "English"},
        {"query": "vpn", "language": "en_US' OR"},
        {"query": "vpn", "language": None},
        {"query": "vpn", "offset": 5},
    ],
)
def test_what_cannot_be_searched_for_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SearchInput.model_validate(arguments)


def test_a_question_is_cleaned_and_a_language_written_as_salesforce_writes_it() -> None:
    asked = SearchInput.model_validate({"query": "  VPN\n drops\u200b ", "language": "pt-br"})
    assert (asked.query, asked.language, asked.limit) == ("VPN drops", "pt_BR", 10)


def test_null_fields_are_written_whatever_the_writer_leaves_out() -> None:
    summary = {
        "id": "1",
        "title": "One",
        "summary": None,
        "url_name": None,
        "last_published": None,
        "article_type": None,
    }
    found = SearchOutput(articles=[ArticleSummary(id="1", title="One")], total_count=1, search_method="soql")
    whole = {"articles": [summary], "total_count": 1, "search_method": "soql"}
    assert found.model_dump(mode="json", by_alias=True, exclude_none=True) == whole
    read = GetOutput(article=Article(id="1", title="One", body=""))
    assert read.model_dump(mode="json", by_alias=True, exclude_none=True) == {"article": {**summary, "body": ""}}


def test_instants_are_written_in_utc() -> None:
    at = datetime(2024, 12, 1, 10, tzinfo=UTC)
    written = ArticleSummary(id="1", title="One", last_published=at).model_dump(mode="json")
    assert written["last_published"] == "2024-12-01T10:00:00Z"


@pytest.fixture
def context() -> Context:
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    principal = Principal("local", "tester", frozenset({"articles:read"}))
    return Context(principal, KnowledgeBase(MemoryStore(clock), None, clock))


async def test_without_a_connection_the_tools_say_what_to_set(context: Context) -> None:
    asked = {"search_articles": SearchInput(query="vpn"), "get_article_by_id": GetInput(article_id=version_id(1))}
    for name, request in asked.items():
        with pytest.raises(errors.RefdeskError, match="REFDESK_SALESFORCE_INSTANCE_URL") as caught:
            await get_operation(name).handler(context, request)
        assert caught.value.code == "AUTH_ERROR"


async def test_with_a_connection_the_tools_answer(context: Context, source: SalesforceSource) -> None:
    search, get = make_toolset(source).operations
    found = await search.handler(context, SearchInput(query="forgotten password", limit=1))
    assert isinstance(found, SearchOutput)
    read = await get.handler(context, GetInput(article_id=found.articles[0].id))
    assert isinstance(read, GetOutput)
    assert read.article.title == "Reset a forgotten password"


def test_both_forms_of_the_toolset_describe_the_same(source: SalesforceSource) -> None:
    assert contracts.render_contracts(make_toolset(source)) == contracts.render_contracts(TOOLSET)
