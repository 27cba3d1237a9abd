"""The MCP face: the table of operations as tools and resources, on the official SDK, in both protocol eras.

It stands on the SDK's low-level `Server`, which takes whole results: schemas, error texts and cache hints are ours, the
protocol is the SDK's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from refdesk import __version__, errors
from refdesk.core import contracts
from refdesk.model import Principal
from refdesk.server import answers
from refdesk.server.calls import Caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import ServerRequestContext

    from refdesk.app import Desk
    from refdesk.core.operations import Operation, Resource, Toolset

    RequestContext: TypeAlias = ServerRequestContext[Any, Any]
    Identify: TypeAlias = Callable[[RequestContext], Principal]

JSON = "application/json"
RESOURCE_NOT_FOUND = -32002
"""What handshake-era clients know as "no such resource"; later ones get -32602."""

SHARED_SCOPES = frozenset({"updates:read"})
"""Scopes over what is the same for every org: a resource under these alone may be cached across callers."""

_LIMITS = frozenset({"examples", "format", "minLength", "maxLength", "minimum", "maximum", "maxItems"})
LIST_HINT = CacheHint(ttl_ms=300_000, scope="private")
_FIRST_MODERN = "2026-07-28"


@dataclass(frozen=True, slots=True)
class _Entry:
    """An operation as a tool, described once."""

    operation: Operation
    toolset: Toolset
    tool: types.Tool


@dataclass(slots=True)
class Adapter:
    """Serves one desk over MCP.

    Attributes:
        identify: Tells who calls, from the request.
    """

    desk: Desk
    identify: Identify
    _entries: dict[str, _Entry] = field(default_factory=dict[str, _Entry])
    _resources: dict[str, tuple[Resource, types.Resource]] = field(
        default_factory=dict[str, "tuple[Resource, types.Resource]"]
    )

    def __post_init__(self) -> None:
        for toolset in self.desk.toolsets:
            for operation in toolset.operations:
                self._entries[operation.name] = _Entry(operation, toolset, describe_tool(operation))
            for resource in toolset.resources:
                self._resources[resource.uri] = resource, describe_resource(resource)

    async def list_tools(
        self, context: RequestContext, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return the tools the caller's scopes allow, in the table's order."""
        caller = self._caller(context)
        return types.ListToolsResult(tools=[e.tool for e in self._entries.values() if caller.may(e.operation.scopes)])

    async def call_tool(self, context: RequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Return the tool's answer, or its error as a result that the model can read.

        Raises:
            MCPError: There is no such tool.
        """
        entry = self._entries.get(params.name)
        if entry is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]!r}; call tools/list for the names.")
        try:
            answer = await self._caller(context).run(entry.operation, params.arguments or {})
        except errors.RefdeskError as error:
            return _error_result(error, entry.toolset)
        return types.CallToolResult(content=[_text(answer)], structured_content=answer)

    async def list_resources(
        self, context: RequestContext, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the resources the caller's scopes allow, in the table's order."""
        caller = self._caller(context)
        listed = [described for resource, described in self._resources.values() if caller.may(resource.scopes)]
        return types.ListResourcesResult(resources=listed)

    async def list_resource_templates(
        self, context: RequestContext, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return no templates: every resource of the table has a fixed address."""
        del context
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, context: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return the resource with how long it keeps.

        Raises:
            MCPError: There is no such resource, or reading it failed; its data is the error in the common form.
        """
        found = self._resources.get(str(params.uri))
        if found is None:
            is_modern = context.protocol_version >= _FIRST_MODERN
            code = types.INVALID_PARAMS if is_modern else RESOURCE_NOT_FOUND
            raise MCPError(code, "No such resource; call resources/list for the addresses.", {"uri": str(params.uri)})
        resource, _ = found
        try:
            answer = await self._caller(context).read(resource)
        except errors.RefdeskError as error:
            code = types.INVALID_PARAMS if isinstance(error, errors.CallerError) else types.INTERNAL_ERROR
            raise MCPError(code, error.message, answers.error_to_json(error, "nested")) from None
        contents = types.TextResourceContents(uri=resource.uri, mime_type=JSON, text=answers.to_text(answer))
        return types.ReadResourceResult(
            contents=[contents],
            ttl_ms=resource.max_age_seconds * 1000,
            cache_scope="public" if resource.scopes <= SHARED_SCOPES else "private",
        )

    def _caller(self, context: RequestContext) -> Caller:
        return Caller(self.desk, self.identify(context), "mcp")


def build_server(desk: Desk, identify: Identify) -> Server[Any]:
    """Return an SDK server for the desk; it opens nothing by itself."""
    adapter = Adapter(desk, identify)
    return Server(
        server_name(desk.toolsets),
        version=__version__,
        instructions=instructions(desk.toolsets),
        cache_hints={"tools/list": LIST_HINT, "resources/list": LIST_HINT, "server/discover": LIST_HINT},
        on_list_tools=adapter.list_tools,
        on_call_tool=adapter.call_tool,
        on_list_resources=adapter.list_resources,
        on_list_resource_templates=adapter.list_resource_templates,
        on_read_resource=adapter.read_resource,
    )


def describe_tool(operation: Operation) -> types.Tool:
    """Return what tools/list says of an operation."""
    effects = operation.effects
    return types.Tool(
        name=operation.name,
        title=operation.title,
        description=operation.description,
        input_schema=_lean_input(contracts.get_input_schema(operation.input)),
        output_schema=_lean(contracts.get_output_schema(operation.output)),
        annotations=types.ToolAnnotations(
            read_only_hint=effects.read_only,
            destructive_hint=effects.destructive,
            idempotent_hint=effects.idempotent,
            open_world_hint=effects.open_world,
        ),
    )


def _lean_input(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of arguments without its model's description: the tool has one of its own."""
    return {key: value for key, value in schema.items() if key != "description"}


def _lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer's schema without what costs a model tokens and tells it nothing: fields speak for themselves.

    Objects are left open, so that a client that kept the schema is not broken by a field that is added.
    """
    noise = {"description", "additionalProperties", "required"} if "properties" in schema else _LIMITS
    return {key: _lean_part(key, value) for key, value in schema.items() if key not in noise}


def _lean_part(key: str, value: object) -> object:
    if key == "properties":
        fields = cast("Mapping[str, Mapping[str, Any]]", value)
        return {name: _lean(field) for name, field in fields.items()}
    return _lean(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value


def describe_resource(resource: Resource) -> types.Resource:
    """Return what resources/list says of a resource."""
    return types.Resource(uri=resource.uri, name=resource.name, description=resource.description, mime_type=JSON)


def server_name(toolsets: tuple[Toolset, ...]) -> str:
    """Return the label: the toolset's own when it is served alone."""
    return toolsets[0].name if len(toolsets) == 1 else "refdesk"


def instructions(toolsets: tuple[Toolset, ...]) -> str:
    """Return the few sentences a client may show its model."""
    return "\n".join(f"{toolset.name}: {toolset.description}" for toolset in toolsets)


def identify_local(principal: Principal, *, is_agent_known: bool) -> Identify:
    """Return an `Identify` for a server without keys: `principal`, whose agent is the client's name unless known."""
    return partial(_identify_local, principal, is_agent_known)


def _identify_local(principal: Principal, is_agent_known: bool, context: RequestContext) -> Principal:
    if is_agent_known:
        return principal
    client = context.session.client_params
    name = re.sub(r"[^\w.-]+", "-", client.client_info.name)[:64].strip("-") if client else ""
    return Principal(principal.org, name or principal.agent, principal.scopes)


def _error_result(error: errors.RefdeskError, toolset: Toolset) -> types.CallToolResult:
    # No structured content: clients check it against the output schema, and would show the model that failure instead.
    content = _text(answers.error_to_json(error, toolset.error_format))
    return types.CallToolResult(content=[content], is_error=True, _meta={"refdesk/code": error.code})


def _text(value: dict[str, Any]) -> types.TextContent:
    return types.TextContent(type="text", text=answers.to_text(value))
