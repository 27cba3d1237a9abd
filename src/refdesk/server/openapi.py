"""The OpenAPI 3.1 description of the REST API, generated from the operation table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk import __version__
from refdesk.core import contracts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.core.operations import ErrorFormat, Operation, Resource, Toolset

JSON = "application/json"

NESTED_ERROR: contracts.Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "details": {"type": "object"}},
            "required": ["code", "message"],
            "additionalProperties": False,
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}
FLAT_ERROR: contracts.Schema = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "detail": {"type": "string"}},
    "required": ["error", "detail"],
    "additionalProperties": False,
}

_ALWAYS = {
    "INVALID_INPUT": "see the message.",
    "TOO_LARGE": "see the message.",
    "UNAUTHENTICATED": "no valid key or access token came with the request.",
    "PERMISSION_DENIED": "the key lacks a scope.",
}


_KEYS = "An API key from `refdesk keys create`. A server that was started with --no-auth wants none."


def describe(toolsets: tuple[Toolset, ...], issuer: str | None = None) -> dict[str, Any]:
    """Return the whole description, paths in the table's order; `issuer` makes access tokens, if there are any."""
    paths: dict[str, Any] = {}
    for toolset in toolsets:
        for operation in toolset.operations:
            route = operation.route
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(toolset, operation)
        for resource in toolset.resources:
            route = resource.route
            paths.setdefault(route.path, {})[route.method.lower()] = _resource(toolset, resource)
    paths["/health"] = {"get": _health()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "refdesk",
            "version": __version__,
            "description": "The reference desk for AI agents: ranked, sourced, current knowledge.",
        },
        "tags": [{"name": toolset.name, "description": toolset.description} for toolset in toolsets],
        "paths": paths,
        "components": {"securitySchemes": _schemes(issuer)},
        "security": [{name: []} for name in _schemes(issuer)],
    }


def _schemes(issuer: str | None) -> dict[str, Any]:
    key = {"type": "http", "scheme": "bearer", "description": _KEYS}
    if issuer is None:
        return {"key": key}
    token = f"An OAuth 2.1 access token that {issuer} made for this server; see /.well-known/oauth-protected-resource."
    return {"key": key, "oauth": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": token}}


def _operation(toolset: Toolset, operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [toolset.name],
        "summary": operation.title,
        "description": operation.description,
    }
    schema = contracts.get_input_schema(operation.input)
    if operation.route.method == "POST":
        examples = {f"example {n}": {"value": dict(value)} for n, value in enumerate(operation.examples, 1)}
        content: dict[str, Any] = {"schema": schema} | ({"examples": examples} if examples else {})
        described["requestBody"] = {"required": True, "content": {JSON: content}}
    else:
        described["parameters"] = _parameters(schema, operation.route.path)
    return described | {
        "responses": _responses(contracts.get_output_schema(operation.output), operation.errors, toolset)
    }


def _parameters(schema: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    return [
        {
            "name": name,
            "in": "path" if f"{{{name}}}" in path else "query",
            "required": name in required,
            "schema": inner,
        }
        for name, inner in schema["properties"].items()
    ]


def _resource(toolset: Toolset, resource: Resource) -> dict[str, Any]:
    return {
        "operationId": resource.uri,
        "tags": [toolset.name],
        "summary": resource.name,
        "description": resource.description,
        "responses": _responses(contracts.get_output_schema(resource.output), resource.errors, toolset),
    }


def _responses(schema: contracts.Schema, codes: Mapping[str, str], toolset: Toolset) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": "The answer.", "content": {JSON: {"schema": schema}}}}
    sentences: dict[str, list[str]] = {"500": ["INTERNAL_ERROR: refdesk, or something it needs, failed."]}
    for code, sentence in {**_ALWAYS, **codes}.items():
        status = str(contracts.HTTP_STATUS.get(code, 500))
        sentences.setdefault(status, []).append(f"{code}: {sentence}")
    for status, found in sorted(sentences.items()):
        content = {JSON: {"schema": _error_schema(toolset.error_format)}}
        responses[status] = {"description": " ".join(found), "content": content}
    return responses


def _error_schema(form: ErrorFormat) -> contracts.Schema:
    return FLAT_ERROR if form.is_flat else NESTED_ERROR


def _health() -> dict[str, Any]:
    content = {JSON: {"schema": {"type": "object"}}}
    return {
        "operationId": "health",
        "security": [],
        "summary": "Whether the server works",
        "description": "What is served, how current it is, and what is wrong, if anything is.",
        "responses": {
            "200": {"description": "It works; `problems` says what could be better.", "content": content},
            "503": {"description": "It does not; `problems` says why.", "content": content},
        },
    }
