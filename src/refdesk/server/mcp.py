"""The MCP transport: serves the operation table as tools and resources, on the official SDK, in both protocol eras.

It builds on the SDK's low-level `Server`, which accepts complete results: schemas, error texts and cache hints are
ours, the protocol is the SDK's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote

import anyio.to_thread
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError

from refdesk import __version__, errors
from refdesk.core.clock import SystemClock
from refdesk.core.context import report_nothing
from refdesk.core.operations import LARGEST_REQUEST, NESTED, Completions, Resource, find_operation
from refdesk.model import Principal
from refdesk.server import (
    answers,
    calls,
    elicitation,
    json_types,
    protocol_errors,
    repetition,
    skill_files,
    strict_json,
    subscriptions,
    tasks,
)
from refdesk.server.announcement import DeclareExtensions, Instruct, LabelledServer, get_icons
from refdesk.server.calls import Caller
from refdesk.server.descriptions import (
    JSON,
    choose_tools,
    describe_resource,
    describe_template,
    describe_tools,
    instructions,
    server_name,
)
from refdesk.server.progress import reporting
from refdesk.server.prompts import Prompts, collect_prompts
from refdesk.server.subscriptions import Subscriptions
from refdesk.server.tasks import Tasks
from refdesk.server.telemetry import find_traceparent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    from refdesk.app import Desk
    from refdesk.core.background.tasks import Task
    from refdesk.core.context import Report
    from refdesk.core.operations import Operation, ResourceTemplate, Toolset
    from refdesk.model import JsonValue
    from refdesk.protocols import Clock
    from refdesk.server.tasks import Outcome, Work

    RequestContext: TypeAlias = ServerRequestContext[Any, Any]
    Identify: TypeAlias = Callable[[RequestContext], Principal]

LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover")
MESSAGE_BYTES = LARGEST_REQUEST + strict_json.ENVELOPE_BYTES
"""Largest message, in bytes."""

LIST_HINT = CacheHint(ttl_ms=300_000, scope="private")
_FIRST_MODERN = "2026-07-28"
_FIRST_STRUCTURED = "2025-06-18"
"""First revision with structured content. Clients of earlier ones read only the text; later ones read either of the
two."""


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
        identify: Returns who calls, from the context of a request.
        clock: Gives today's date for the instructions.
        subscriptions: The clients' subscriptions to changes.
        tasks: The calls that go on without anybody waiting for them.
        tools: Which tools are offered, in the form of the setting of that name; `None` to follow the desk's settings.
    """

    desk: Desk
    identify: Identify
    clock: Clock = field(default_factory=SystemClock)
    tools: tuple[str, ...] | None = None
    _entries: dict[str, _Entry] = field(default_factory=dict[str, _Entry])
    _templates: list[tuple[ResourceTemplate, types.ResourceTemplate]] = field(
        default_factory=list["tuple[ResourceTemplate, types.ResourceTemplate]"]
    )

    subscriptions: Subscriptions = field(init=False)
    tasks: Tasks = field(init=False)
    _prompts: Prompts = field(init=False)

    def __post_init__(self) -> None:
        wanted = self.desk.settings.tools if self.tools is None else self.tools
        for toolset, offered in choose_tools(self.desk.toolsets, wanted):
            for operation, tool in zip(offered, describe_tools(offered), strict=True):
                self._entries[operation.name] = _Entry(operation, toolset, tool)
            self._templates += [(template, describe_template(template)) for template in toolset.templates]
        self._prompts = collect_prompts(self.desk.toolsets, self._entries)
        self.tasks = Tasks(self.desk, self.identify, self._redo)
        watcher = partial(Caller, self.desk, transport=subscriptions.WATCH)
        self.subscriptions = Subscriptions(self.desk, lambda each: watcher(self.identify(each)), self.get_fingerprint)

    async def list_tools(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return the tools that the caller's scopes allow, in the table's order."""
        _refuse_cursor(params)
        caller = self._caller(context)
        listed = [entry.tool for entry in self._entries.values() if caller.may_run(entry.operation)]
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        self, context: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | dict[str, Any]:
        """Return the tool's answer, its error as a result that the model can read, a choice to put to a person, or the
        task that the call has become.

        Raises:
            MCPError: There is no such tool.
        """
        entry = self._entries.get(params.name)
        if entry is None:
            from refdesk.server import wording  # rarely needed

            is_operation = find_operation(self.desk.toolsets, params.name) is not None
            message = wording.describe_unknown_tool(params.name, self._entries, is_operation=is_operation)
            raise MCPError(types.INVALID_PARAMS, message)
        arguments = params.arguments or {}
        outcome = await self._try(context, entry, arguments)
        if isinstance(outcome, dict):
            return outcome
        result, choice = outcome
        if choice is None or not elicitation.can_ask(context):
            return result
        chosen = await elicitation.ask(context, params, choice)
        if not isinstance(chosen, str):
            return chosen or result
        again = await self._try(context, entry, choice.amend(arguments, chosen))
        return again if isinstance(again, dict) else again[0]

    async def _try(
        self, context: RequestContext, entry: _Entry, arguments: Mapping[str, Any]
    ) -> Outcome | dict[str, Any]:
        """Return the result of a call with the choice by which a person may get a different one, or the task that it
        has become."""
        caller = self._caller(context)
        attempt = partial(self._attempt, caller, entry, arguments, context.protocol_version >= _FIRST_STRUCTURED)
        if entry.operation.keep is not None and self.tasks.is_wanted(context):
            try:
                kept = await _keep(caller, entry.operation, arguments)
                return await self.tasks.run(caller.principal, entry.operation.name, kept, attempt)
            except errors.LimitExceededError as error:
                return _error_result(error, entry.toolset), None
            except errors.CallerError:
                pass  # the attempt itself reports and records it
        if (context.meta or {}).get("progress_token") is None:
            return await attempt(report_nothing)
        async with reporting(context.session.report_progress) as report:
            return await attempt(report)

    async def _attempt(
        self, caller: Caller, entry: _Entry, arguments: Mapping[str, Any], is_structured: bool, report: Report
    ) -> Outcome:
        try:
            answer = await caller.run(entry.operation, arguments, report)
        except errors.RefdeskError as error:
            return _error_result(error, entry.toolset), error.choice
        from refdesk.server import ceiling  # not at start-up, which its patterns would slow down

        value = ceiling.shorten(answer.value, entry.operation.shortening, arguments, answer.cursors)
        result = types.CallToolResult(
            content=[_text(value)], structured_content=value if is_structured else None, _meta=answer.meta or None
        )
        return result, answer.choice

    def _redo(self, task: Task) -> Work | None:
        """Return a function that repeats the work of a task; `None` if that is not safe."""
        entry = self._entries.get(task.tool)
        if entry is None or not entry.operation.effects.idempotent or task.arguments is None:
            return None
        return partial(self._attempt, Caller(self.desk, task.principal, "mcp"), entry, task.arguments, True)

    async def list_resources(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the resources that the caller's scopes allow, in the table's order."""
        _refuse_cursor(params)
        caller = self._caller(context)
        listed = [describe_resource(each) for each in self._list_resources() if caller.may(each.scopes)]
        return types.ListResourcesResult(resources=[each.model_copy(update={"icons": get_icons()}) for each in listed])

    async def list_resource_templates(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return the templates that the caller's scopes allow, in the table's order."""
        _refuse_cursor(params)
        caller = self._caller(context)
        listed = [described for template, described in self._templates if caller.may(template.operation.scopes)]
        return types.ListResourceTemplatesResult(resource_templates=listed)

    async def read_resource(
        self, context: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return what is at an address, and how long it may be cached.

        Raises:
            MCPError: There is no such resource, or reading it failed; its data is the error in the nested form.
        """
        uri, caller = str(params.uri), self._caller(context)
        found, arguments = self._find_address(uri)
        try:
            if isinstance(found, Resource):
                return _contents(uri, await caller.read(found), found.max_age_seconds, found.is_public)
            if found is not None:
                answer = await caller.run(found.operation, arguments)
                return _contents(uri, answer.value, 0, is_public=False)
        except errors.NotFoundError as error:
            raise _not_found(context, error.message, uri) from None
        except errors.RefdeskError as error:
            raise _to_protocol(error) from None
        raise _not_found(context, "No such resource; call resources/list for the addresses.", uri)

    async def get_fingerprint(self, caller: Caller, uri: str) -> str:
        """Return a text that changes when what a caller reads at an address changes; errors as in `Caller.read`."""
        found, arguments = self._find_address(uri)
        if isinstance(found, Resource):
            value = await caller.read(found)
        elif found is not None:
            operation, asked = found.operation, calls.validate(found.operation, arguments)
            toolset = self.desk.find_toolset(operation)
            answer = await caller.ask(toolset, found.uri, operation.scopes, lambda each: operation.handler(each, asked))
            value = answers.to_json(answer)
        else:
            text = await skill_files.find_text(caller, uri) if self._has_skills() else None
            if text is None:
                raise errors.NotFoundError("No such resource; call resources/list for the addresses.")
            return sha256(text.encode()).hexdigest()
        kept = {name: field for name, field in value.items() if name not in found.volatile}
        return sha256(answers.to_text(kept).encode()).hexdigest()

    async def list_prompts(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Return the prompts whose tools the caller may call, in the table's order."""
        _refuse_cursor(params)
        listed = self._prompts.list(self._caller(context))
        return types.ListPromptsResult(prompts=[each.model_copy(update={"icons": get_icons()}) for each in listed])

    async def get_prompt(
        self, context: RequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Return a prompt, filled in.

        Raises:
            MCPError: There is no prompt of that name, or the arguments do not fit it.
        """
        try:
            return self._prompts.write(self._caller(context), params.name, params.arguments or {})
        except errors.RefdeskError as error:
            raise _to_protocol(error) from None

    async def complete(self, context: RequestContext, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return completions, for this caller, of a partly written argument of a template or a prompt.

        Raises:
            MCPError: There is no such template or prompt, or completing failed.
        """
        caller = self._caller(context)
        if isinstance(params.ref, types.PromptReference):
            return await self._complete_prompt(caller, params.ref.name, params.argument)
        for template, _ in self._templates:
            if (
                params.ref.uri == template.uri
                and f"{{{params.argument.name}}}" in template.uri
                and caller.may(template.operation.scopes)
            ):
                return await _complete(caller, template, params.argument.value)
        raise MCPError(types.INVALID_PARAMS, "No such template; call resources/templates/list for those there are.")

    async def _complete_prompt(
        self, caller: Caller, name: str, argument: types.CompletionArgument
    ) -> types.CompleteResult:
        try:
            found = await self._prompts.complete(caller, name, argument.name, argument.value)
        except errors.RefdeskError as error:
            raise _to_protocol(error) from None
        return _to_completions(found or Completions(()))

    def check(self, caller: Caller, method: object, params: Mapping[str, Any]) -> None:
        """Check that the caller has the scopes that a message needs, if what it calls or reads exists.

        Raises:
            PermissionDeniedError: It lacks one.
        """
        if self._has_skills() and skill_files.asks_for_skills(method, params):
            caller.require(skill_files.SCOPES)
        elif method == "tools/call":
            if entry := self._entries.get(str(params.get("name"))):
                caller.require_operation(entry.operation)
        elif method == "prompts/get":
            self._prompts.require(caller, str(params.get("name")))
        elif method in ("resources/read", "resources/subscribe"):
            found, _ = self._find_address(str(params.get("uri")))
            if found is not None:
                caller.require(found.scopes if isinstance(found, Resource) else found.operation.scopes)

    def get_input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments; without this method, the SDK lists all tools before each call."""
        entry = self._entries.get(name)
        return entry.tool.input_schema if entry is not None else None

    def may_ask(self, message: Mapping[str, Any]) -> bool:
        """Return whether serving a message may require a question to its client."""
        params = message.get("params")
        if message.get("method") != "tools/call" or not isinstance(params, dict):
            return False
        asked = cast("dict[str, Any]", params)
        entry, arguments = self._entries.get(str(asked.get("name"))), cast("object", asked.get("arguments") or {})
        if entry is None or not isinstance(arguments, dict):
            return False
        return entry.operation.may_offer(cast("dict[str, object]", arguments))

    def name_target(self, method: object, params: Mapping[str, Any]) -> str:
        """Return the name, for the audit log, of what a message calls or reads."""
        if method == "tools/call" and (entry := self._entries.get(str(params.get("name")))):
            return entry.operation.name
        if method == "resources/read" and (found := self._find_address(str(params.get("uri")))[0]):
            return found.uri if isinstance(found, Resource) else found.operation.name
        return str(method)[:64]

    def _list_resources(self) -> list[Resource]:
        return [resource for toolset in self.desk.toolsets for resource in toolset.resources]

    def _find_address(self, uri: str) -> tuple[Resource | ResourceTemplate | None, dict[str, object]]:
        """Return the resource or template that an address belongs to, and the values in the address."""
        if found := next((each for each in self._list_resources() if each.uri == uri), None):
            return found, {}
        for template, _ in self._templates:
            value = _match(template.uri, uri)
            if value is not None:
                schema = calls.get_schema(template.operation.input)
                return template, json_types.read_texts({template.argument: value}, schema)
        return None, {}

    def build_server(self) -> LabelledServer:
        """Return an SDK server; it opens nothing by itself."""
        server = LabelledServer(
            server_name(self.desk.toolsets),
            version=__version__,
            title="refdesk",
            icons=get_icons(),
            cache_hints=dict.fromkeys(LISTS, LIST_HINT),
            get_tool_input_schema=self.get_input_schema,
            on_list_tools=self.list_tools,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_resource_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
        )
        # Replaces the SDK's own middleware, which makes a span for each message; `calls` traces operations instead.
        declare = DeclareExtensions(server, frozenset({tasks.EXTENSION}))
        server.middleware[:] = [protocol_errors.explain, declare, Instruct(self._tell)]
        server.add_request_handler("tools/call", types.CallToolRequestParams, self.call_tool)
        self.subscriptions.extend(server)
        if any(entry.operation.keep for entry in self._entries.values()):
            self.tasks.extend(server)
        if self._has_skills():
            skill_files.extend(server, self.desk, self.identify)
        return server

    def _tell(self, context: RequestContext) -> str:
        may_run = self._caller(context).may_run
        return instructions(self.desk.toolsets, self.clock.now().date(), self.desk.synced, may_run)

    def _has_skills(self) -> bool:
        return any(toolset.name == "skills" for toolset in self.desk.toolsets)

    def _caller(self, context: RequestContext) -> Caller:
        asked_at = repetition.read(context.meta)
        return Caller(self.desk, self.identify(context), "mcp", find_traceparent(context), asked_at)


async def _keep(caller: Caller, operation: Operation, arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return the arguments in the form that a task may store.

    Raises:
        CallerError: The caller lacks permission, or the arguments are wrong.
    """
    assert operation.keep is not None
    caller.require_operation(operation)
    return await anyio.to_thread.run_sync(operation.keep, calls.validate(operation, arguments))


def _refuse_cursor(params: types.PaginatedRequestParams | None) -> None:
    """Refuse requests for a further page: everything fits on one."""
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "There is no such page: the list has one, so send no cursor.")


def build_server(desk: Desk, identify: Identify, tools: tuple[str, ...] | None = None) -> Server[Any]:
    """Return an SDK server for clients over stdio; it opens nothing by itself. Arguments as for `Adapter`.

    A client's first requests may have been answered from an earlier desk's answers; see `refdesk.forwarder.snapshot`.
    """
    server = Adapter(desk, identify, tools=tools).build_server()
    server.announces_lists = True
    return server


def identify_local(principal: Principal, *, is_agent_known: bool) -> Identify:
    """Return an `Identify` for a server without keys: it returns `principal`, with the client's name as agent unless
    known."""
    return partial(_identify_local, principal, is_agent_known)


def _identify_local(principal: Principal, is_agent_known: bool, context: RequestContext) -> Principal:
    if is_agent_known:
        return principal
    client = context.session.client_params
    name = re.sub(r"[^\w.-]+", "-", client.client_info.name)[:64].strip("-") if client else ""
    return replace(principal, agent=name or principal.agent)


def _match(template: str, uri: str) -> str | None:
    """Return the value that turns the template into the address, or `None` if there is none."""
    before, after = re.split(r"\{\w+\}", template)
    match = re.fullmatch(f"{re.escape(before)}([^/?#]+){re.escape(after)}", uri)
    return unquote(match[1]) if match else None


def _contents(uri: str, answer: dict[str, Any], max_age_seconds: int, is_public: bool) -> types.ReadResourceResult:
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type=JSON, text=answers.to_text(answer))],
        ttl_ms=max_age_seconds * 1000,
        cache_scope="public" if is_public else "private",
    )


async def _complete(caller: Caller, template: ResourceTemplate, written: str) -> types.CompleteResult:
    try:
        found = await caller.complete(template, written)
    except errors.RefdeskError as error:
        raise _to_protocol(error) from None
    return _to_completions(found)


def _to_completions(found: Completions) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=list(found.values), has_more=found.has_more))


def _to_protocol(error: errors.RefdeskError) -> MCPError:
    code = types.INVALID_PARAMS if isinstance(error, errors.CallerError) else types.INTERNAL_ERROR
    return MCPError(code, error.message, answers.error_to_json(error, NESTED))


def _not_found(context: RequestContext, message: str, uri: str) -> MCPError:
    is_modern = context.protocol_version >= _FIRST_MODERN
    return MCPError(types.INVALID_PARAMS if is_modern else protocol_errors.RESOURCE_NOT_FOUND, message, {"uri": uri})


def _error_result(error: errors.RefdeskError, toolset: Toolset) -> types.CallToolResult:
    # No structured content: clients would check it against the output schema, and show the model that failure instead.
    content = _text(answers.error_to_json(error, toolset.error_format))
    return types.CallToolResult(
        content=[content], is_error=True, _meta={"refdesk/code": toolset.error_format.name(error.code)}
    )


def _text(value: dict[str, Any]) -> types.TextContent:
    return types.TextContent(type="text", text=answers.to_text(value))
