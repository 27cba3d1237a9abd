"""The OpenAPI 3.1 description of the REST API, generated from the operation table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from refdesk import __version__
from refdesk.core import contracts
from refdesk.server.request_schemas import get_body_schema, get_parameter_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    "INTERNAL_ERROR": "refdesk, or something it needs, failed.",
    "INVALID_INPUT": "see the message.",
    "TOO_LARGE": "see the message.",
    "UNAUTHENTICATED": "no valid key or access token came with the request.",
    "PERMISSION_DENIED": "the key lacks a scope.",
    "LIMIT_EXCEEDED": "too many requests; wait as long as `Retry-After` says.",
}
"""What any operation may answer, by refdesk's own code."""

_RETRY_AFTER = {
    "Retry-After": {
        "description": "In how many seconds to try again, where waiting helps.",
        "schema": {"type": "integer"},
    }
}

_KEYS = "An API key from `refdesk keys create`. A server that was started with --no-auth wants none."


def describe(toolsets: tuple[Toolset, ...], issuer: str | None = None, public: str | None = None) -> dict[str, Any]:
    """Return the whole description, with paths in the table's order.

    Args:
        toolsets: What is served.
        issuer: Issues the access tokens; `None` if there are none.
        public: The URL by which clients reach the server; `None` if it is only known from each request.
    """
    paths: dict[str, Any] = {}
    for toolset in toolsets:
        for operation in toolset.operations:
            route = operation.route
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(toolset, operation)
        for resource in toolset.resources:
            route = resource.route
            paths.setdefault(route.path, {})[route.method.lower()] = _resource(toolset, resource)
    paths |= {"/health": {"get": _health()}, "/ready": {"get": _readiness()}, "/metrics": {"get": _metrics()}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "refdesk",
            "version": __version__,
            "description": "The reference desk for AI agents: ranked, sourced, current knowledge.",
        },
        **({} if public is None else {"servers": [{"url": public.rstrip("/")}]}),
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
    schema = cast("dict[str, Any]", get_parameter_schema(operation.input))
    path = operation.route.path
    in_path = [name for name in schema["properties"] if f"{{{name}}}" in path]
    if operation.route.method == "POST":
        body = get_body_schema(operation.input)
        described["requestBody"] = _body(_leave_out(body, in_path), operation.examples, in_path)
        described["parameters"] = [_parameter(schema, name, "path") for name in in_path]
    else:
        places = {name: "path" if name in in_path else "query" for name in schema["properties"]}
        described["parameters"] = [_parameter(schema, name, place) for name, place in places.items()]
    return described | {
        "responses": _responses(contracts.get_output_schema(operation.output), operation.errors, toolset)
    }


def _body(
    schema: Mapping[str, Any], examples: Sequence[Mapping[str, object]], left_out: Sequence[str]
) -> dict[str, Any]:
    shown = [{name: value for name, value in example.items() if name not in left_out} for example in examples]
    named = {f"example {number}": {"value": value} for number, value in enumerate(shown, 1)}
    content: dict[str, Any] = {"schema": schema} | ({"examples": named} if named else {})
    return {"required": True, "content": {JSON: content}}


def _leave_out(schema: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the schema without the fields that are in the path."""
    properties = {name: inner for name, inner in schema["properties"].items() if name not in names}
    required = [name for name in schema.get("required", []) if name not in names]
    rest = {key: value for key, value in schema.items() if key != "required"}
    return {**rest, "properties": properties} | ({"required": required} if required else {})


def _parameter(schema: Mapping[str, Any], name: str, place: str) -> dict[str, Any]:
    is_required = place == "path" or name in schema.get("required", [])
    return {"name": name, "in": place, "required": is_required, "schema": schema["properties"][name]}


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
    form = toolset.error_format
    always = {(_status_of(code), form.name(code)): sentence for code, sentence in _ALWAYS.items()}
    own = {(_status_of(code), code): sentence for code, sentence in codes.items()}
    sentences: dict[str, list[str]] = {}
    for (status, code), sentence in {**always, **own}.items():
        if status != "200":  # a warning accompanies the answer, which is described already
            sentences.setdefault(status, []).append(f"{code}: {sentence}")
    for status, found in sorted(sentences.items()):
        content = {JSON: {"schema": _error_schema(form)}}
        responses[status] = {"description": " ".join(found), "content": content} | _headers_of(status)
    return responses


def _status_of(code: str) -> str:
    return str(contracts.HTTP_STATUS.get(code, 500))


def _headers_of(status: str) -> dict[str, Any]:
    return {"headers": _RETRY_AFTER} if status == "429" else {}


def _error_schema(form: ErrorFormat) -> contracts.Schema:
    return FLAT_ERROR if form.is_flat else NESTED_ERROR


def _health() -> dict[str, Any]:
    return {
        "operationId": "health",
        "security": [],
        "summary": "Whether the server works",
        "description": "What is served, how current it is, and what is wrong, if anything is.",
        "responses": _probe_responses("It works; `problems` says what could be better.", "It does not work"),
    }


def _readiness() -> dict[str, Any]:
    return {
        "operationId": "ready",
        "security": [],
        "summary": "Whether requests may be sent",
        "description": "For load balancers and orchestrators.",
        "responses": _probe_responses("They may.", "They may not"),
    }


def _probe_responses(good: str, bad: str) -> dict[str, Any]:
    content = {JSON: {"schema": {"type": "object"}}}
    return {
        "200": {"description": good, "content": content},
        "503": {"description": f"{bad}; `problems` says why.", "content": content},
    }


def _metrics() -> dict[str, Any]:
    refused = {JSON: {"schema": NESTED_ERROR}}
    return {
        "operationId": "metrics",
        "summary": "What the server has counted",
        "description": "In the text format of Prometheus. It needs the scope `metrics:read`.",
        "responses": {
            "200": {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}},
            "401": {"description": "No valid key or access token came with the request.", "content": refused},
            "403": {"description": "The key lacks the scope.", "content": refused},
            "429": {"description": "Too many requests.", "content": refused} | _headers_of("429"),
        },
    }
