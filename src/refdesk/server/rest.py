"""The REST transport: one route per operation and resource."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.routing import Route

from refdesk import errors
from refdesk.server import answers, calls, json_types, strict_json
from refdesk.server.calls import Caller
from refdesk.server.credentials import get_caller
from refdesk.server.replies import reply, reply_error, status_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from refdesk.app import Desk
    from refdesk.core.operations import ErrorFormat, Operation, Resource, Toolset

__all__ = ["read_arguments", "routes", "routes_by_format", "status_of"]

WARNING = "refdesk-warning"
"""The header for an answer's warnings, each as `CODE: sentence`; over MCP they are in `_meta`."""


def routes(desk: Desk) -> list[Route]:
    """Return the routes of every operation and resource that is served.

    A fixed path never matches a route with parameters: `GET /knowledge/search` does not read an entry named `search`.
    """
    found = [route for toolset in desk.toolsets for route in _routes(desk, toolset)]
    own = [route for route in found if not route.param_convertors]
    filled_in = [route for route in found if route.param_convertors]
    return [*own, *(Route(path, _Only(methods)) for path, methods in _collect_methods(own).items()), *filled_in]


def _collect_methods(routes: Sequence[Route]) -> dict[str, set[str]]:
    methods = dict[str, set[str]]()
    for route in routes:
        methods.setdefault(route.path, set()).update(route.methods or ())
    return methods


class _Only:
    """Refuses methods that an address does not support."""

    def __init__(self, methods: Iterable[str]) -> None:
        self._allowed = ", ".join(sorted(methods))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        del scope, receive, send
        raise HTTPException(405, headers={"Allow": self._allowed})


def routes_by_format(desk: Desk) -> list[tuple[Route, ErrorFormat]]:
    """Return the routes, each with the form of its errors."""
    return [(route, toolset.error_format) for toolset in desk.toolsets for route in _routes(desk, toolset)]


def find_most_bytes(toolsets: Sequence[Toolset]) -> dict[str, int]:
    """Return the largest request in bytes, for each address that takes larger ones than others."""
    operations = [operation for toolset in toolsets for operation in toolset.operations]
    return {each.route.path: each.most_bytes for each in operations if each.most_bytes is not None}


def _routes(desk: Desk, toolset: Toolset) -> list[Route]:
    operations = [(entry, partial(_run, desk, toolset, entry)) for entry in toolset.operations]
    resources = [(entry, partial(_read, desk, toolset, entry)) for entry in toolset.resources]
    return [
        Route(entry.route.path, endpoint, methods=[entry.route.method]) for entry, endpoint in (*operations, *resources)
    ]


def _caller(desk: Desk, request: Request) -> Caller:
    return Caller(desk, get_caller(request), "rest", request.headers.get("traceparent"))


async def _run(desk: Desk, toolset: Toolset, operation: Operation, request: Request) -> Response:
    try:
        caller = _caller(desk, request)
        await caller.admit(operation)
        answer = await caller.run(operation, await read_arguments(request, operation))
        warnings = answers.get_warnings(answer.meta)
        return reply(answer.value, headers={WARNING: "; ".join(warnings)} if warnings else None)
    except errors.RefdeskError as error:
        return reply_error(error, toolset.error_format)


async def _read(desk: Desk, toolset: Toolset, resource: Resource, request: Request) -> Response:
    try:
        answer = await _caller(desk, request).read(resource)
    except errors.RefdeskError as error:
        return reply_error(error, toolset.error_format)
    return reply(answer, headers={"cache-control": f"private, max-age={resource.max_age_seconds}"})


async def read_arguments(request: Request, operation: Operation) -> dict[str, Any]:
    """Return an operation's arguments: those in the path, and those in the body of a POST or the query of a GET.

    Values in the address are text, and are converted as the operation's schema says.

    Raises:
        InvalidInputError: The body is not one strict JSON object, a parameter is given twice, or a POST has query
            parameters.
        TooLargeError: The body is larger than the operation takes.
    """
    schema = calls.get_schema(operation.input)
    in_path = json_types.read_texts(request.path_params, schema)
    if request.method == "POST":
        if request.query_params:
            raise errors.InvalidInputError(
                "A POST takes its arguments from its body alone; put those behind the question mark there."
            )
        return _join(await _read_body(request, operation.most_bytes or strict_json.MAX_BYTES), in_path)
    pairs = request.query_params.multi_items()
    if len({name for name, _ in pairs}) != len(pairs):
        raise errors.InvalidInputError("A query parameter is given twice; give each once.")
    return _join(json_types.read_texts(dict(pairs), schema), in_path)


def _join(arguments: Mapping[str, object], in_path: Mapping[str, object]) -> dict[str, Any]:
    for name, value in in_path.items():
        if arguments.get(name, value) != value:
            raise errors.InvalidInputError(f"`{name}` is in the address already, with another value; leave it out.")
    return {**arguments, **in_path}


async def _read_body(request: Request, most_bytes: int) -> dict[str, Any]:
    # Only with this type does a browser send a preflight before it lets a page of another origin send.
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise errors.InvalidInputError("Send the arguments as JSON, with the header Content-Type: application/json.")
    if request.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise errors.InvalidInputError("Send the body as it is, without Content-Encoding: nothing unpacks it here.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            raise strict_json.too_large(most_bytes)
    if not body:
        raise errors.InvalidInputError(
            "The body is empty: send the arguments as one JSON object, {} where none is left."
        )
    value = strict_json.parse(body, most_bytes)
    if not isinstance(value, dict):
        raise errors.InvalidInputError("The body must be one JSON object.")
    return value  # pyright: ignore[reportUnknownVariableType] - JSON objects have text keys
