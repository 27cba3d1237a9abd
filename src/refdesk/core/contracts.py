"""The contracts: the input and output of each tool and resource as JSON Schema, generated from the models.

The schemas are flat (no references), minimal, and valid under draft-07 and 2020-12 alike. The transports show clients
the same schemas, and `contracts/` holds them for readers: `make docs` writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from refdesk.core.operations import TRUNCATED
from refdesk.errors import (
    CallerError,
    ConflictError,
    InvalidInputError,
    LimitExceededError,
    NotFoundError,
    PermissionDeniedError,
    QuotaExceededError,
    TooLargeError,
    UnauthenticatedError,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from refdesk.core.operations import Operation, Resource, ResourceTemplate, Shortening, Toolset

Schema: TypeAlias = dict[str, object]

EXACT = "x-exact"
"""Key in a field's declaration for what narrows its schema where that is written out exactly
(`server/request_schemas.py`). It is left out for agents, whose context the schemas fill."""

DRAFT = "http://json-schema.org/draft-07/schema#"

STATUSES: Mapping[type[CallerError], int] = {
    InvalidInputError: 400,
    UnauthenticatedError: 401,
    PermissionDeniedError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    TooLargeError: 413,
    LimitExceededError: 429,
    QuotaExceededError: 429,
}
"""The HTTP status of each error that the caller can fix. Every other error is 500: 503 is for `/health` alone."""

HTTP_STATUS = {
    **{kind.code: status for kind, status in STATUSES.items()},
    "RATE_LIMIT_EXCEEDED": STATUSES[LimitExceededError],
    "RATE_LIMIT_WARNING": 200,
}
"""The HTTP status by error code, including the codes that toolsets' contracts define; every other code is 500."""


def get_input_schema(model: type[BaseModel], *, is_exact: bool = False) -> Schema:
    """Return the schema of arguments: optional ones have a default, and null is not among the types.

    Args:
        model: The input's.
        is_exact: Whether what is declared under `EXACT` counts.
    """
    schema = cast("Schema", _settle_exact(model.model_json_schema(mode="validation"), is_exact))
    return _clean(schema, cast("Mapping[str, Schema]", schema.get("$defs", {})), keep_defaults=True)


def get_output_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of an answer: what is not required may be absent."""
    schema = model.model_json_schema(mode="validation")
    return _clean(schema, schema.get("$defs", {}), keep_defaults=False)


def describe_operation(operation: Operation) -> Schema:
    """Return the contract of a tool: the schema of its arguments, with examples, errors and what it returns."""
    schema = get_input_schema(operation.input)
    return {
        "$schema": DRAFT,
        "name": operation.name,
        "title": operation.title,
        **schema,
        "description": operation.description,
        "examples": [dict(example) for example in operation.examples],
        "errors": _describe_errors(operation.errors),
        "returns": _allow_truncation(get_output_schema(operation.output), operation.shortening),
    }


def _allow_truncation(schema: Schema, how: Shortening) -> Schema:
    """Return the schema of an answer with the field that MCP adds when it was too long for a model's context."""
    message = "What was cut, and how to read the rest."
    fields: Schema = {"message": {"type": "string", "description": message}}
    if how.pages:
        fields["next"] = {
            "type": "object",
            "description": "What to add to the same arguments to read on from where it was cut.",
        }
    truncated = {
        "type": "object",
        "description": "Only over MCP, and only where the answer was too long and is not whole.",
        "properties": fields,
        "required": ["message"],
        "additionalProperties": False,
    }
    return {**schema, "properties": {**cast("Schema", schema.get("properties", {})), TRUNCATED: truncated}}


def describe_resource(resource: Resource) -> Schema:
    """Return the contract of a resource: where it is, and the schema of what is read there."""
    schema = get_output_schema(resource.output)
    return {
        "$schema": DRAFT,
        "uri": resource.uri,
        "name": resource.name,
        "mimeType": "application/json",
        **schema,
        "description": resource.description,
        "errors": _describe_errors(resource.errors),
    }


def describe_template(template: ResourceTemplate) -> Schema:
    """Return the contract of a resource template: the form of its addresses, and the schema of what is read there."""
    return {
        "$schema": DRAFT,
        "uriTemplate": template.uri,
        "name": template.name,
        "mimeType": "application/json",
        **get_output_schema(template.operation.output),
        "description": template.description,
        "errors": _describe_errors(template.operation.errors),
    }


def render_contracts(toolset: Toolset) -> dict[str, str]:
    """Return the text of each contract by file name: `search-things-tool.json`, `things-guide-resource.json`,
    `things-id-template.json`."""
    tools = {f"{_to_name(each.name)}-tool.json": describe_operation(each) for each in toolset.operations}
    resources = {f"{_to_name(each.uri)}-resource.json": describe_resource(each) for each in toolset.resources}
    templates = {f"{_to_name(each.uri)}-template.json": describe_template(each) for each in toolset.templates}
    return {name: _to_text(contract) for name, contract in {**tools, **resources, **templates}.items()}


def write_contracts(toolset: Toolset, folder: Path) -> None:
    """Write the toolset's contracts into the folder, and delete every other JSON file there."""
    folder.mkdir(parents=True, exist_ok=True)
    contracts = render_contracts(toolset)
    for path in folder.glob("*.json"):
        if path.name not in contracts:
            path.unlink()
    for name, text in contracts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _clean(schema: Mapping[str, object], definitions: Mapping[str, Schema], *, keep_defaults: bool) -> Schema:
    """Return the schema with references replaced by what they name, and titles and empty defaults left out."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        schema = {**definitions[name], **{key: value for key, value in schema.items() if key != "$ref"}}
    cleaned: Schema = {}
    for key, value in schema.items():
        if key in ("title", "$defs") or (key == "default" and not (keep_defaults and value not in (None, "", [], {}))):
            continue
        cleaned[key] = _clean_value(key, value, definitions, keep_defaults=keep_defaults)
    if "properties" in cleaned:
        cleaned.setdefault("additionalProperties", False)
    return cleaned


def _clean_value(key: str, value: object, definitions: Mapping[str, Schema], *, keep_defaults: bool) -> object:
    if key in ("properties", "patternProperties"):
        schemas = cast("Mapping[str, Schema]", value)
        return {name: _clean(each, definitions, keep_defaults=keep_defaults) for name, each in schemas.items()}
    if key in ("anyOf", "allOf", "oneOf"):
        return [_clean(each, definitions, keep_defaults=keep_defaults) for each in cast("list[Schema]", value)]
    if key in ("items", "additionalProperties") and isinstance(value, Mapping):
        return _clean(cast("Schema", value), definitions, keep_defaults=keep_defaults)
    return value


def _settle_exact(schema: object, is_exact: bool) -> object:
    if isinstance(schema, list):
        return [_settle_exact(each, is_exact) for each in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    found = cast("Schema", schema)
    rest: Schema = {key: _settle_exact(value, is_exact) for key, value in found.items() if key != EXACT}
    return {**rest, **cast("Schema", found.get(EXACT, {}))} if is_exact else rest


def _describe_errors(errors: Mapping[str, str]) -> list[Schema]:
    return [{"code": code, "status": HTTP_STATUS.get(code, 500), "when": when} for code, when in errors.items()]


def _to_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _to_text(contract: Schema) -> str:
    return json.dumps(contract, ensure_ascii=False, indent=2) + "\n"
