from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    Implementation,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)

from refdesk.app import Desk
from refdesk.core.clock import FixedClock
from refdesk.errors import ConfigurationError
from refdesk.model import Principal
from refdesk.server import descriptions, mcp
from tests.server.conftest import connect
from tests.server.echo import READER, SECRET, echo_desk


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def error_of(result: CallToolResult) -> dict[str, Any]:
    assert result.is_error
    assert result.structured_content is None
    return json.loads(text_of(result))


async def test_text_and_structured_content_are_each_the_whole_answer(client: Client) -> None:
    result = await client.call_tool("search_echo", {"query": "ä", "limit": 2})
    expected = {
        "results": [{"id": "0", "title": "ä 0", "sortName": "first"}, {"id": "1", "title": "ä 1"}],
        "total": 5,
        "hasMore": True,
    }
    assert result.structured_content == expected
    assert text_of(result) == json.dumps(expected, ensure_ascii=False, separators=(",", ":"))


async def test_answers_match_the_output_schema_that_was_promised(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    result = await client.call_tool("search_echo", {"query": "x"})
    schema = tools["search_echo"].output_schema
    assert schema is not None
    assert list(Draft202012Validator(schema).iter_errors(result.structured_content)) == []  # pyright: ignore[reportUnknownMemberType]


async def test_tools_are_listed_in_the_order_of_the_table_every_time(client: Client) -> None:
    names = ["search_echo", "get_echo", "fail_echo", "fail_flat"]
    for _ in range(2):
        assert [tool.name for tool in (await client.list_tools()).tools] == names


async def test_effects_are_said_as_annotations(client: Client) -> None:
    tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    reads, fails = tools["search_echo"], tools["fail_echo"]
    assert reads is not None
    assert fails is not None
    # What the protocol gives no meaning, or takes for granted, is left out.
    assert (reads.read_only_hint, reads.destructive_hint, reads.idempotent_hint, reads.open_world_hint) == (
        (True, None, None, False)
    )
    assert (fails.read_only_hint, fails.destructive_hint, fails.idempotent_hint, fails.open_world_hint) == (
        (None, True, None, True)
    )


async def test_a_caller_sees_only_the_tools_and_resources_its_scopes_allow(desk: Desk) -> None:
    principal = Principal("local", "tester", frozenset({"flat:read"}))
    async with connect(desk, "legacy", principal) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["fail_flat"]
        assert (await client.list_resources()).resources == []


async def test_a_tool_beyond_the_scopes_is_denied_and_says_which_scope(desk: Desk) -> None:
    async with connect(desk, "legacy", Principal("local", "tester", frozenset())) as client:
        error = error_of(await client.call_tool("get_echo", {"id": "x"}))["error"]
    assert error["code"] == "PERMISSION_DENIED"
    assert error["details"] == {"missingScopes": ["echo:read"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quer": "x"}, "`quer` is not an argument; did you mean `query`?"),
        ({"zzz": 1}, "`zzz` is not an argument; the arguments are query, filters, limit, offset, color."),
        ({"filters": {"tag": []}}, "`filters.tag` is not an argument; did you mean `tags`?"),
        ({"limit": -1}, "`limit` must be at least 1."),
        ({"limit": 99}, "`limit` must be at most 10."),
        ({"query": "x" * 21}, "`query` must have at most 20 characters."),
        ({"color": "blue"}, "`color` must be one of 'red' or 'green'."),
        ({"filters": {"tags": ["a", 1]}}, "`filters.tags[1]` must be a text."),
        ({"query": "both", "color": "red"}, "query and color exclude each other."),
        ({"query": "a\x00b"}, "`query` holds a NUL character; remove it."),
    ],
)
async def test_wrong_arguments_get_one_sentence_that_says_what_to_mend(
    client: Client, arguments: dict[str, Any], message: str
) -> None:
    error = error_of(await client.call_tool("search_echo", arguments))["error"]
    assert (error["code"], error["message"]) == ("INVALID_INPUT", message)


async def test_errors_never_show_the_value_that_was_sent_nor_a_link(client: Client) -> None:
    text = text_of(await client.call_tool("search_echo", {"query": "secret-" * 9, "color": "secret-blue"}))
    assert "secret" not in text
    assert "http" not in text


async def test_a_missing_argument_is_named(client: Client) -> None:
    error = error_of(await client.call_tool("get_echo", {}))["error"]
    assert error["message"] == "`id` is required."
    assert error["details"] == {"fields": ["id"]}


async def test_only_the_first_problems_are_listed_and_the_rest_counted(client: Client) -> None:
    error = error_of(await client.call_tool("search_echo", {f"x{n}": n for n in range(9)}))["error"]
    assert error["message"].endswith("And 4 more.")
    assert len(error["details"]["fields"]) == 5


async def test_each_toolset_keeps_the_form_of_its_errors(client: Client) -> None:
    nested = await client.call_tool("fail_echo", {"how": "invalid"})
    flat = await client.call_tool("fail_flat", {"how": "invalid"})
    assert error_of(nested) == {
        "error": {"code": "INVALID_INPUT", "message": "Mend it.", "details": {"field": "how"}},
    }
    assert error_of(flat) == {"error": "INVALID_INPUT", "detail": "Mend it."}


async def test_the_code_of_an_error_stands_in_meta_too(client: Client) -> None:
    result = await client.call_tool("fail_echo", {"how": "conflict"})
    assert result.meta is not None
    assert result.meta["refdesk/code"] == "CONFLICT"


async def test_a_bug_shows_a_number_to_the_caller_and_its_trace_to_the_log_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        result = await client.call_tool("fail_echo", {"how": "bug"})
    error = error_of(result)["error"]
    assert error["code"] == "INTERNAL_ERROR"
    assert SECRET not in text_of(result)
    assert "ZeroDivision" not in text_of(result)
    [record] = [record for record in caplog.records if record.exc_info]
    assert vars(record)["incident"] == error["details"]["incident"]
    assert SECRET in str(record.exc_info)


async def test_an_unknown_tool_is_a_protocol_error(client: Client) -> None:
    with pytest.raises(MCPError, match="Unknown tool") as caught:
        await client.call_tool("no_such_tool", {})
    assert caught.value.code == -32602


async def test_a_misspelt_tool_names_the_nearest_and_one_that_is_not_offered_says_how_it_is(client: Client) -> None:
    with pytest.raises(MCPError, match=r"did you mean get_echo\?"):
        await client.call_tool("get_ecko", {})
    with pytest.raises(MCPError, match="--tools all"):
        await client.call_tool("flat_more", {})


async def test_an_unknown_resource_has_the_code_of_the_era(desk: Desk) -> None:
    for era, code in (("legacy", -32002), ("2026-07-28", -32602)):
        async with connect(desk, era) as client:
            with pytest.raises(MCPError, match="No such resource") as caught:
                await client.read_resource("echo://no-such")
            assert caught.value.code == code


async def test_a_resource_beyond_the_scopes_is_denied(desk: Desk) -> None:
    async with connect(desk, "legacy", Principal("local", "tester", frozenset())) as client:
        with pytest.raises(MCPError, match="updates:read"):
            await client.read_resource("echo://guide")


async def test_a_resource_is_compact_json_and_says_how_long_it_keeps(desk: Desk) -> None:
    async with connect(desk, "2026-07-28") as client:
        result = await client.read_resource("echo://guide")
    [contents] = result.contents
    assert isinstance(contents, TextResourceContents)
    assert contents.text == '{"said":"guide","by":"local"}'
    assert (contents.mime_type, result.ttl_ms, result.cache_scope) == ("application/json", 90_000, "public")


async def test_a_template_is_listed_and_read_by_address(client: Client) -> None:
    [template] = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "echo://items/{id}"
    result = await client.read_resource("echo://items/a%20b%2Fc")
    [contents] = result.contents
    assert isinstance(contents, TextResourceContents)
    assert (contents.uri, json.loads(contents.text)) == ("echo://items/a%20b%2Fc", {"said": "a b/c", "by": "tester"})


async def test_what_is_read_by_a_template_is_for_its_caller_and_not_kept(desk: Desk) -> None:
    async with connect(desk, "2026-07-28") as client:
        result = await client.read_resource("echo://items/a")
    assert (result.ttl_ms, result.cache_scope) == (0, "private")


@pytest.mark.parametrize(
    "uri", ["echo://items/", "echo://items/a/b", "echo://items/a?b", "echo://other/a", "echo:items"]
)
async def test_an_address_beside_the_template_is_no_resource(client: Client, uri: str) -> None:
    with pytest.raises(MCPError, match="No such resource"):
        await client.read_resource(uri)


async def test_what_is_missing_at_a_templates_address_has_the_code_of_the_era(desk: Desk) -> None:
    for era, code in (("legacy", -32002), ("2026-07-28", -32602)):
        async with connect(desk, era) as client:
            with pytest.raises(MCPError, match="No such thing") as caught:
                await client.read_resource("echo://items/missing")
            assert (caught.value.code, caught.value.data) == (code, {"uri": "echo://items/missing"})


TEMPLATE = ResourceTemplateReference(uri="echo://items/{id}")


async def test_a_half_written_argument_is_completed_for_its_caller(client: Client) -> None:
    completion = (await client.complete(TEMPLATE, {"name": "id", "value": "ab"})).completion
    assert (completion.values, completion.has_more) == (["ab1", "local"], True)


async def test_only_a_template_that_the_caller_sees_is_completed(desk: Desk) -> None:
    unknown = ResourceTemplateReference(uri="echo://others/{id}")
    async with connect(desk, "legacy") as client:
        for reference, name in ((unknown, "id"), (TEMPLATE, "other")):
            with pytest.raises(MCPError, match="No such template"):
                await client.complete(reference, {"name": name, "value": ""})
    async with connect(desk, "legacy", Principal("local", "tester", frozenset({"flat:read"}))) as client:
        assert (await client.list_resource_templates()).resource_templates == []
        with pytest.raises(MCPError, match="No such template"):
            await client.complete(TEMPLATE, {"name": "id", "value": ""})


async def test_a_completion_that_breaks_shows_nothing_of_itself(client: Client) -> None:
    with pytest.raises(MCPError, match="Internal error") as caught:
        await client.complete(TEMPLATE, {"name": "id", "value": "bug"})
    assert SECRET not in str(caught.value.data)


async def test_lists_may_be_kept_by_the_caller_only(desk: Desk) -> None:
    async with connect(desk, "2026-07-28") as client:
        result = await client.list_tools()
    assert result.ttl_ms > 0
    assert result.cache_scope == "private"


async def test_a_client_without_an_agent_of_its_own_is_known_by_its_name(desk: Desk) -> None:
    server = mcp.build_server(desk, mcp.identify_local(READER, is_agent_known=False))
    for era in ("legacy", "2026-07-28"):
        async with Client(server, mode=era, client_info=Implementation(name="My Client 1", version="1")) as client:
            answer = (await client.call_tool("get_echo", {"id": "x"})).structured_content
        assert answer == {"said": "x", "by": "My-Client-1"}


async def test_the_server_is_named_after_its_toolset_when_that_is_served_alone(desk: Desk) -> None:
    assert descriptions.server_name(desk.toolsets) == "refdesk"
    assert descriptions.server_name(desk.toolsets[:1]) == "echo"


async def test_the_server_tells_the_day_and_shows_its_mark(desk: Desk) -> None:
    clock = FixedClock(datetime(2026, 11, 22, 23, 59, tzinfo=UTC))
    server = mcp.Adapter(desk, mcp.identify_local(READER, is_agent_known=True), clock).build_server()
    for era in ("legacy", "auto"):
        async with Client(server, mode=era) as client:
            assert client.instructions is not None
            assert "2026-11-22" in client.instructions
            assert "- flat: Fails flatly." in client.instructions
            assert client.server_info is not None
            assert client.server_info.icons is not None
    clock.advance(timedelta(minutes=2))
    async with Client(server, mode="legacy") as client:
        assert "2026-11-23" in str(client.instructions)


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_instructions_leave_out_what_a_caller_may_not_use(desk: Desk, era: str) -> None:
    for scopes, told, denied in (
        ({"echo:read", "echo:write", "flat:read"}, ["echo", "flat"], None),
        ({"echo:read"}, ["echo"], "You may not use here: fail_echo."),
    ):
        reader = Principal("local", "reader", frozenset(scopes))
        server = mcp.build_server(desk, mcp.identify_local(reader, is_agent_known=True))
        async with Client(server, mode=era) as client:
            lines = str(client.instructions).splitlines()
        assert [line[2:6] for line in lines if line.startswith("- ")] == told
        assert [line for line in lines if line.startswith("You may not")] == ([denied] if denied else [])


async def test_a_cursor_that_no_list_gave_is_an_error(client: Client) -> None:
    for ask in (client.list_tools, client.list_resources, client.list_resource_templates):
        with pytest.raises(MCPError, match="no such page") as caught:
            await ask(cursor="made-up")
        assert caught.value.code == -32602


async def test_only_the_chosen_tools_are_there(tmp_path: Path) -> None:
    async with echo_desk(tmp_path, tools="get_echo,flat_more") as desk, connect(desk, "legacy") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["get_echo", "flat_more"]
        with pytest.raises(MCPError, match=r"Unknown tool: 'search_echo'; .* one started with --tools all does"):
            await client.call_tool("search_echo", {})


async def test_what_few_need_is_there_by_name_or_when_all_is_asked_for(tmp_path: Path) -> None:
    for chosen, is_there in ((None, False), ("default", False), ("all", True), ("default,flat_more", True)):
        settings = {} if chosen is None else {"tools": chosen}
        async with echo_desk(tmp_path, **settings) as desk, connect(desk, "legacy") as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
        assert ("flat_more" in listed, "search_echo" in listed) == (is_there, True)


async def test_a_tool_that_there_is_not_cannot_be_chosen(tmp_path: Path) -> None:
    async with echo_desk(tmp_path, tools="get_ecko") as desk:
        with pytest.raises(ConfigurationError, match="there is get_echo"):
            mcp.build_server(desk, mcp.identify_local(READER, is_agent_known=True))


async def test_a_call_that_takes_too_long_ends_in_an_error(tmp_path: Path) -> None:
    async with (
        echo_desk(tmp_path, request_timeout_seconds=0.05) as desk,
        connect(desk, "legacy") as client,
    ):
        with anyio.fail_after(120):
            error = error_of(await client.call_tool("fail_echo", {"how": "wait"}))["error"]
    assert error["code"] == "UNAVAILABLE"
