"""Prompts: what a user picks from a menu, as the SDK's client gets it over every transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, TextContent

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.server.calls import Caller
from refdesk.server.principals import local_principal
from refdesk.toolsets.azure_updates.records import to_document
from tests.server.conftest import connect
from tests.server.echo import make_settings
from tests.server.transports import TRANSPORTS, serve
from tests.toolsets.azure_updates.samples import make_record

NAMES = ["whats_changed_in_azure", "write_down_what_we_learned", "solve_with_playbook", "ask_the_desk"]
ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    settings = make_settings(tmp_path)
    async with open_desk(settings, load_toolsets((), settings), in_background=False) as opened:
        yield opened


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_toolset_has_a_prompt_that_names_its_tools(desk: Desk, transport: str) -> None:
    principal = local_principal(desk.settings, desk.toolsets, "tester")
    async with serve(desk, principal) as reach, reach.connect(transport) as client:
        listed = (await client.list_prompts()).prompts
        written = await client.get_prompt("ask_the_desk", {"question": " Who approves refunds? "})
    assert [prompt.name for prompt in listed] == NAMES
    assert all(prompt.title and prompt.description and prompt.arguments and prompt.icons for prompt in listed)
    [message] = written.messages
    assert isinstance(message.content, TextContent)
    assert "\n\nWho approves refunds?\n\n" in message.content.text
    assert "search_everything" in message.content.text


@ERAS
@pytest.mark.parametrize(
    ("name", "filled", "message"),
    [
        ("no_such", {}, "Unknown prompt: 'no_such'"),
        ("ask_the_desk", {}, "`question` is required."),
        ("ask_the_desk", {"question": "  "}, "`question` is required."),
        ("ask_the_desk", {"question": "x" * 4001}, "at most 4000 characters"),
        ("ask_the_desk", {"quest": "x"}, "the arguments are question."),
        ("ask_the_desk", {"question": "a\x00b"}, "NUL"),
    ],
)
async def test_what_does_not_fit_is_said_in_words(
    desk: Desk, era: str, name: str, filled: dict[str, str], message: str
) -> None:
    async with connect(desk, era, local_principal(desk.settings, desk.toolsets, "tester")) as client:
        with pytest.raises(MCPError, match=message) as caught:
            await client.get_prompt(name, filled)
    assert caught.value.code == -32602


@ERAS
async def test_a_prompt_is_offered_to_those_who_may_call_all_of_its_tools(desk: Desk, era: str) -> None:
    everyone = local_principal(desk.settings, desk.toolsets, "tester")
    reader = replace(everyone, scopes=frozenset({"knowledge:read", "skills:read"}))
    async with connect(desk, era, reader) as client:
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["ask_the_desk"]
        with pytest.raises(MCPError, match="knowledge:write"):
            await client.get_prompt("write_down_what_we_learned", {})
        with pytest.raises(MCPError, match="knowledge:write"):
            await client.complete(PromptReference(name="write_down_what_we_learned"), {"name": "tag", "value": ""})


async def test_a_server_that_only_reads_offers_no_prompt_that_writes(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, read_only=True)
    toolsets = load_toolsets((), settings)
    async with (
        open_desk(settings, toolsets, in_background=False) as desk,
        connect(desk, "legacy", local_principal(settings, toolsets, "tester")) as client,
    ):
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == [NAMES[0], NAMES[3]]


@ERAS
async def test_products_and_tags_are_completed_from_what_there_is(desk: Desk, era: str) -> None:
    principal = local_principal(desk.settings, desk.toolsets, "tester")
    base = (await desk.get_base()).knowledge_base
    async with base.store.transaction() as transaction:
        records = [make_record(str(n), products=products) for n, products in enumerate([["Azure Monitor", "Azure AI"]])]
        await transaction.put_documents([to_document(record) for record in records])
    [store] = [each for toolset in desk.toolsets for each in toolset.operations if each.name == "store_knowledge"]
    note = {"title": "Refunds", "body": "Up to 500 EUR.", "tags": ["refunds", "policy"]}
    await Caller(desk, principal, "test").run(store, note)
    other = replace(principal, org="others")
    await Caller(desk, other, "test").run(store, {**note, "tags": ["refused-secret"]})
    async with connect(desk, era, principal) as client:
        changes, learned = PromptReference(name=NAMES[0]), PromptReference(name=NAMES[1])
        products = await client.complete(changes, {"name": "product", "value": "monitor"})
        assert products.completion.values == ["Azure Monitor"]
        tags = await client.complete(learned, {"name": "tag", "value": "ref"})
        assert tags.completion.values == ["refunds"]
        assert (await client.complete(learned, {"name": "topic", "value": "x"})).completion.values == []
        with pytest.raises(MCPError, match="no argument"):
            await client.complete(learned, {"name": "nothing", "value": ""})


@ERAS
async def test_lists_for_people_have_pictures_and_those_for_models_do_not(desk: Desk, era: str) -> None:
    async with connect(desk, era, local_principal(desk.settings, desk.toolsets, "tester")) as client:
        assert all(resource.icons and resource.title for resource in (await client.list_resources()).resources)
        # A title that says no more than the name does is left out: clients show the name then.
        tools = (await client.list_tools()).tools
        assert not any(tool.icons or tool.title == tool.name.replace("_", " ").capitalize() for tool in tools)
