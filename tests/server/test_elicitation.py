"""A person is asked for the one choice that an answer needs, where the client can ask; otherwise nothing changes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp.client import Client
from mcp.client.session import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from refdesk.app import Desk
from refdesk.errors import Choice
from refdesk.toolsets.azure_updates.records import to_document
from tests.acceptance.processes import HANDSHAKE
from tests.server.test_everything import TALK
from tests.server.test_messages import ACCEPT, OPEN
from tests.server.test_messages import call as call_of
from tests.server.test_subscriptions import open_on, run, who
from tests.server.transports import TRANSPORTS, serve
from tests.toolsets.azure_updates.samples import make_record

NOBODY = "01930000-0000-7000-8000-000000000001"
CASES = ("product", "head", "skill")


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_on(tmp_path) as opened:
        yield opened


@dataclass
class Person:
    """Answers forms: with the first option, or not at all."""

    action: Literal["accept", "decline", "cancel"] = "accept"
    picks: str | None = None
    asked: list[ElicitRequestFormParams] = field(default_factory=list[ElicitRequestFormParams])

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        [question] = params.requested_schema["properties"].values()
        first = question["oneOf"][0]["const"]
        return ElicitResult(action=self.action, content={"choice": self.picks or first})


async def make_case(desk: Desk, case: str) -> tuple[str, dict[str, Any]]:
    """A call that needs a choice."""
    if case == "product":
        base = (await desk.get_base()).knowledge_base
        async with base.store.transaction() as transaction:
            record = make_record(
                "9", title="Azure Kubernetes Service news", products=["Azure Kubernetes Service (AKS)"]
            )
            await transaction.put_documents([to_document(record)])
        return "search_azure_updates", {"filters": {"products": ["Azure Kubernetes"]}, "limit": 5}
    if case == "head":
        old, new, newest = [
            (await run(desk, "store_knowledge", {"title": f"Limit {n}", "body": "EUR"}))["id"] for n in range(3)
        ]
        await run(desk, "supersede_knowledge", {"oldId": old, "newId": new})
        return "supersede_knowledge", {"oldId": old, "newId": newest}
    await run(desk, "create_skill", {"conversation": TALK})
    return "update_skill", {"skill_id": "Marrowby password", "conversation": TALK, "feedback": "Good."}


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    return result


def is_whole(case: str, result: CallToolResult) -> bool:
    """Whether a call had the effect that the choice was needed for."""
    found: dict[str, Any] = result.structured_content or {}
    if case == "product":
        return not result.is_error and found["total"] == 1
    return not result.is_error and ("headId" in found or "changes" in found)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_goes_on_with_what_a_person_chose(desk: Desk, transport: str, case: str) -> None:
    tool, arguments = await make_case(desk, case)
    person = Person()
    async with (
        serve(desk, who(desk)) as reach,
        reach.connect(transport, elicitation_callback=person.answer) as client,
    ):
        result = await call(client, tool, arguments)
    assert is_whole(case, result), result
    [question] = person.asked
    assert question.message.endswith("?")
    assert all(option["title"] for option in question.requested_schema["properties"]["choice"]["oneOf"])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("transport", ["stdio legacy", "http legacy", "http 2026-07-28"])
async def test_who_cannot_be_asked_or_does_not_choose_gets_what_they_got_before(
    desk: Desk, transport: str, case: str
) -> None:
    tool, arguments = await make_case(desk, case)
    results: list[CallToolResult] = []
    persons = [Person("decline"), Person("cancel"), Person(picks="nothing that was offered")]
    async with serve(desk, who(desk)) as reach:
        async with reach.connect(transport) as client:
            results.append(await call(client, tool, arguments))
        for person in persons:
            async with reach.connect(transport, elicitation_callback=person.answer) as client:
                results.append(await call(client, tool, arguments))
    assert all(len(person.asked) == 1 for person in persons)
    assert not any(is_whole(case, result) for result in results)
    assert len({result.content[0].model_dump_json() for result in results}) == 1


@pytest.mark.parametrize("answer", [{}, {"action": "perhaps"}, {"action": "accept", "content": ["x"]}])
async def test_an_answer_that_is_none_is_as_if_nobody_had_chosen(desk: Desk, answer: dict[str, object]) -> None:
    tool, arguments = await make_case(desk, "head")
    message = call_of(name=tool, arguments=arguments)
    async with serve(desk, who(desk)) as reach, httpx2.AsyncClient(base_url=reach.url, timeout=120) as web:
        able: dict[str, Any] = {**HANDSHAKE, "capabilities": {"elicitation": {}}}
        able["clientInfo"] = {"name": reach.principal.agent, "version": "1"}
        opened = await web.post("/mcp", json={**OPEN, "params": able}, headers=ACCEPT)
        session = {**ACCEPT, "mcp-session-id": opened.headers["mcp-session-id"]}
        async with web.stream("POST", "/mcp", json=message, headers=session) as stream:
            said = [json.loads(line[6:]) async for line in answered(stream, web, session, answer)]
        async with reach.connect("http legacy") as client:
            plain = await call(client, tool, arguments)
    assert said[0]["method"] == "elicitation/create"
    assert said[-1]["result"]["isError"]
    assert said[-1]["result"]["content"] == [each.model_dump(exclude_none=True) for each in plain.content]


async def answered(
    stream: httpx2.Response, web: httpx2.AsyncClient, session: dict[str, str], answer: dict[str, object]
) -> AsyncGenerator[str]:
    """Yield the messages of a stream, and answer the question among them."""
    async for line in stream.aiter_lines():
        if line.startswith("data: {"):
            yield line
            if (message := json.loads(line[6:])).get("method") == "elicitation/create":
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer}
                assert (await web.post("/mcp", json=reply, headers=session)).status_code == 202


async def test_only_what_the_caller_may_read_is_offered(desk: Desk) -> None:
    tool, arguments = await make_case(desk, "skill")
    person = Person()
    async with (
        serve(desk, who(desk, org="others")) as reach,
        reach.connect("http legacy", elicitation_callback=person.answer) as client,
    ):
        assert (await call(client, tool, arguments)).is_error
    assert person.asked == []


async def test_a_call_that_needs_no_choice_asks_nobody(desk: Desk) -> None:
    await make_case(desk, "product")
    person = Person()
    async with (
        serve(desk, who(desk)) as reach,
        reach.connect("http legacy", elicitation_callback=person.answer) as client,
    ):
        for product in ("Azure Kubernetes Service (AKS)", "Nothing like any"):
            await call(client, "search_azure_updates", {"filters": {"products": [product]}})
    assert person.asked == []


def test_a_choice_takes_the_place_of_the_value_that_did_not_do() -> None:
    choice = Choice(("filters", "products"), "Which?", [("b", "B")], "a")
    asked = {"query": "x", "filters": {"products": ["a", "c"], "tags": ["a"]}}
    assert choice.amend(asked, "b") == {"query": "x", "filters": {"products": ["b", "c"], "tags": ["a"]}}
    assert asked["filters"] == {"products": ["a", "c"], "tags": ["a"]}
