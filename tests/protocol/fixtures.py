"""What the conformance suite looks for and a server with a purpose has not, served by refdesk's own adapter.

Everything but the content is the product's: the transports, the checks before them, sessions, streams, errors.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError

from refdesk.server.announcement import LabelledServer
from refdesk.server.calls import Caller
from refdesk.server.mcp import Adapter
from refdesk.server.tasks import EXTENSION
from tests.protocol import schemas

if TYPE_CHECKING:
    from refdesk.server.mcp import RequestContext

Result: TypeAlias = types.CallToolResult | types.InputRequiredResult
Handler: TypeAlias = "Callable[[RequestContext, types.CallToolRequestParams], Awaitable[Result]]"

PNG = b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db0"
        "0000000049454e44ae426082"
    )
).decode()
WAV = b64encode(
    b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00"
    b"\x02\x00\x10\x00data\x00\x00\x00\x00"
).decode()
STATIC = "test://static-text", "This is the content of the static text resource."
BINARY, WATCHED, TEMPLATE = "test://static-binary", "test://watched-resource", "test://template/{id}/data"
PAUSE = 0.05
"""Seconds, as the suite asks for, so that notifications come one by one."""


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, mime_type: str, words: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(
        type="resource", resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    )


def fixed(*content: types.ContentBlock, is_error: bool = False) -> Handler:
    async def answer(context: RequestContext, params: types.CallToolRequestParams) -> Result:
        del context, params
        return types.CallToolResult(content=list(content), is_error=is_error)

    return answer


def said(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[text(words)])


async def progress(context: RequestContext, params: types.CallToolRequestParams) -> Result:
    del params
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await anyio.sleep(PAUSE)
    return said("Done.")


async def log(context: RequestContext, params: types.CallToolRequestParams) -> Result:
    del params
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", words, related_request_id=context.request_id)  # pyright: ignore[reportDeprecated]
        await anyio.sleep(PAUSE)
    return said("Done.")


def need(context: RequestContext, capability: str) -> None:
    """Refuse what takes a capability that the client has not declared."""
    known = context.session.client_capabilities
    if known is None or getattr(known, capability) is None:
        data = types.MissingRequiredClientCapabilityErrorData(
            required_capabilities=types.ClientCapabilities.model_validate({capability: {}})
        )
        body = data.model_dump(mode="json", by_alias=True, exclude_none=True)
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"This needs the capability {capability}.", body)


async def sample(context: RequestContext, params: types.CallToolRequestParams) -> Result:
    need(context, "sampling")
    words = str((params.arguments or {})["prompt"])
    answer = await context.session.create_message(  # pyright: ignore[reportDeprecated]
        [types.SamplingMessage(role="user", content=types.TextContent(type="text", text=words))],
        max_tokens=100,
        related_request_id=context.request_id,
    )
    assert isinstance(answer.content, types.TextContent)
    return said(f"LLM response: {answer.content.text}")


def elicit(schema: Mapping[str, Any], message: str, prefix: str) -> Handler:
    async def answer(context: RequestContext, params: types.CallToolRequestParams) -> Result:
        need(context, "elicitation")
        asked = str((params.arguments or {}).get("message", message))
        given = await context.session.elicit_form(asked, dict(schema), context.request_id)
        return said(f"{prefix}: action={given.action}, content={json.dumps(given.content)}")

    return answer


async def refuse_without_sampling(context: RequestContext, params: types.CallToolRequestParams) -> Result:
    del params
    need(context, "sampling")
    return said("It was declared.")


def ask_for(requests: Mapping[str, types.InputRequest], state: str | None, answer: str) -> Handler:
    """A tool that first asks for all of this, and answers once it has it."""

    async def handle(context: RequestContext, params: types.CallToolRequestParams) -> Result:
        declared = context.session.client_capabilities
        wanted = {
            key: each
            for key, each in requests.items()
            if declared is not None and getattr(declared, schemas.CAPABILITY[each.method]) is not None
        }
        given = params.input_responses or {}
        if not set(wanted) <= set(given) or (state is not None and params.request_state != state):
            return types.InputRequiredResult(input_requests=dict(wanted), request_state=state)
        return said(f"{answer} {json.dumps({key: given[key].model_dump(mode='json') for key in wanted})}")

    return handle


async def ask_twice(context: RequestContext, params: types.CallToolRequestParams) -> Result:
    del context
    given = params.input_responses or {}
    if params.request_state == "second" and "step2" in given:
        return said("Both steps are done.")
    if params.request_state == "first" and "step1" in given:
        return types.InputRequiredResult(input_requests={"step2": schemas.COLOUR}, request_state="second")
    return types.InputRequiredResult(input_requests={"step1": schemas.NAME_FIRST}, request_state="first")


async def greet(context: RequestContext, params: types.CallToolRequestParams) -> Result:
    del context
    return said(f"Hello, {(params.arguments or {})['name']}!")


async def compute(params: types.CallToolRequestParams) -> types.CallToolResult:
    await anyio.sleep(float((params.arguments or {}).get("seconds", 0)))
    return said("Computed.")


async def fail(params: types.CallToolRequestParams) -> types.CallToolResult:
    del params
    await anyio.sleep(1)
    return types.CallToolResult(content=[text("This job fails.")], is_error=True)


async def fail_the_protocol(params: types.CallToolRequestParams) -> types.CallToolResult:
    del params
    await anyio.sleep(1)
    raise MCPError(types.INTERNAL_ERROR, "This job breaks.")


async def greet_later(params: types.CallToolRequestParams) -> types.CallToolResult:
    await anyio.sleep(1)
    given = (params.input_responses or {})["user_name"]
    return said(f"Hello, {given.model_dump_json()}!")


TASKS: dict[str, Callable[[types.CallToolRequestParams], Awaitable[types.CallToolResult]]] = {
    "slow_compute": compute,
    "failing_job": fail,
    "protocol_error_job": fail_the_protocol,
    "test_tool_with_task": greet_later,
}

TOOLS: dict[str, Handler] = {
    "greet": greet,
    "confirm_delete": ask_for({"confirm": schemas.CONFIRM}, None, "Deleted"),
    "test_simple_text": fixed(text("This is a simple text response for testing.")),
    "test_image_content": fixed(image()),
    "test_audio_content": fixed(types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")),
    "test_embedded_resource": fixed(
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": fixed(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    "test_error_handling": fixed(text("This tool intentionally returns an error for testing"), is_error=True),
    "test_tool_with_progress": progress,
    "test_tool_with_logging": log,
    "test_logging_tool": log,
    "test_sampling": sample,
    "test_elicitation": elicit(schemas.PERSON, "Who are you?", "User response"),
    "test_elicitation_sep1034_defaults": elicit(schemas.DEFAULTS, "Please fill in.", "Elicitation completed"),
    "test_elicitation_sep1330_enums": elicit(schemas.ENUMS, "Please choose.", "Elicitation completed"),
    "test_missing_capability": refuse_without_sampling,
    "test_streaming_elicitation": ask_for({"user_name": schemas.NAME}, None, "Hello"),
    "test_input_required_result_elicitation": ask_for({"user_name": schemas.NAME}, None, "Hello"),
    "test_input_required_result_sampling": ask_for({"capital_question": schemas.CAPITAL}, None, "It says"),
    "test_input_required_result_list_roots": ask_for({"client_roots": schemas.ROOTS}, None, "The roots are"),
    "test_input_required_result_request_state": ask_for({"confirm": schemas.CONFIRM}, "kept", "state-ok"),
    "test_input_required_result_tampered_state": ask_for({"confirm": schemas.CONFIRM}, "kept", "state-ok"),
    "test_input_required_result_multiple_inputs": ask_for(
        {"user_name": schemas.NAME, "greeting": schemas.GREETING, "client_roots": schemas.ROOTS}, "kept", "All of it"
    ),
    "test_input_required_result_capabilities": ask_for(
        {"user_name": schemas.NAME, "greeting": schemas.GREETING}, None, "All of it"
    ),
    "test_input_required_result_multi_round": ask_twice,
    "json_schema_2020_12_tool": fixed(text("ok")),
    "test_x_mcp_header": fixed(text("ok")),
}

PROMPTS: dict[str, list[types.ContentBlock]] = {
    "test_simple_prompt": [text("This is a simple prompt for testing.")],
    "test_prompt_with_arguments": [],
    "test_prompt_with_embedded_resource": [],
    "test_prompt_with_image": [image(), text("Please analyze the image above.")],
    "test_input_required_result_prompt": [],
}


class Fixtures(Adapter):
    """The product's adapter, with the suite's fixtures beside its own."""

    async def list_tools(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        own = await super().list_tools(context, params)
        return types.ListToolsResult(tools=[*own.tools, *(schemas.describe(name) for name in (*TOOLS, *TASKS))])

    async def call_tool(self, context: RequestContext, params: types.CallToolRequestParams) -> Result | dict[str, Any]:
        handler = TOOLS.get(params.name)
        if params.name in TASKS:
            return await self.call_task(context, params)
        return await (handler(context, params) if handler is not None else super().call_tool(context, params))

    async def call_task(self, context: RequestContext, params: types.CallToolRequestParams) -> Result | dict[str, Any]:
        if params.name == "test_tool_with_task" and "user_name" not in (params.input_responses or {}):
            return types.InputRequiredResult(input_requests={"user_name": schemas.NAME})
        if not self.tasks.is_wanted(context):
            if params.name == "failing_job":
                data: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
                raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This is done as a task only.", data)
            return await TASKS[params.name](params)

        async def work(report: object) -> tuple[types.CallToolResult, None]:
            del report
            return await TASKS[params.name](params), None

        outcome = await self.tasks.run(self.identify(context), params.name, {}, work)
        return outcome if isinstance(outcome, dict) else outcome[0]

    def get_input_schema(self, name: str) -> Mapping[str, Any] | None:
        return schemas.INPUTS.get(name) or super().get_input_schema(name)

    def may_ask(self, message: Mapping[str, Any]) -> bool:
        return message.get("method") == "tools/call"

    async def list_resources(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        own = await super().list_resources(context, params)
        uris = (STATIC[0], BINARY, WATCHED)
        found = [types.Resource(uri=uri, name=uri, description="A fixture.", mime_type="text/plain") for uri in uris]
        return types.ListResourcesResult(resources=[*own.resources, *found])

    async def list_resource_templates(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        own = await super().list_resource_templates(context, params)
        found = types.ResourceTemplate(uri_template=TEMPLATE, name="template", description="A fixture.")
        return types.ListResourceTemplatesResult(resource_templates=[*own.resource_templates, found])

    async def read_resource(
        self, context: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        contents = read_fixture(str(params.uri))
        if contents is None:
            return await super().read_resource(context, params)
        return types.ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")

    async def get_fingerprint(self, caller: Caller, uri: str) -> str:
        if uri == WATCHED:
            return "always the same"
        return await super().get_fingerprint(caller, uri)

    async def list_prompts(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        own = await super().list_prompts(context, params)
        return types.ListPromptsResult(prompts=[*own.prompts, *(schemas.describe_prompt(name) for name in PROMPTS)])

    async def get_prompt(
        self, context: RequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        if params.name not in PROMPTS:
            return await super().get_prompt(context, params)
        if params.name == "test_input_required_result_prompt" and "user_context" not in (params.input_responses or {}):
            return types.InputRequiredResult(input_requests={"user_context": schemas.CONTEXT})
        filled = params.arguments or {}
        content = PROMPTS[params.name] or fill_in(params.name, filled)
        return types.GetPromptResult(
            messages=[types.PromptMessage(role="user", content=each) for each in content], description="A fixture."
        )

    async def complete(self, context: RequestContext, params: types.CompleteRequestParams) -> types.CompleteResult:
        if isinstance(params.ref, types.PromptReference) and params.ref.name in PROMPTS:
            return types.CompleteResult(completion=types.Completion(values=["paris", "park", "party"], total=3))
        return await super().complete(context, params)

    def build_server(self) -> LabelledServer:
        server = super().build_server()
        server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="fixtures"))
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
        return server


async def set_level(context: RequestContext, params: types.SetLevelRequestParams) -> types.EmptyResult:
    del context, params
    return types.EmptyResult()


def read_fixture(uri: str) -> types.TextResourceContents | types.BlobResourceContents | None:
    if uri == STATIC[0]:
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text=STATIC[1])
    if uri == BINARY:
        return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    before, after = TEMPLATE.split("{id}")
    if uri.startswith(before) and uri.endswith(after):
        id = uri.removeprefix(before).removesuffix(after)
        words = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
        return types.TextResourceContents(uri=uri, mime_type="application/json", text=words)
    if uri == WATCHED:
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text="Watched.")
    return None


def fill_in(name: str, filled: Mapping[str, str]) -> list[types.ContentBlock]:
    if name == "test_prompt_with_arguments":
        return [text(f"Prompt with arguments: arg1='{filled['arg1']}', arg2='{filled['arg2']}'")]
    if name == "test_prompt_with_embedded_resource":
        found = embedded(filled["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return [found, text("Please process the embedded resource above.")]
    return [text("With that context.")]
