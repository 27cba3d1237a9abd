"""A batch is answered in one body, whatever its messages ask for, and counts as the messages that it holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from refdesk.app import Desk
from tests.server.conftest import open_http
from tests.server.echo import echo_desk
from tests.server.limits.test_rates import open_limited
from tests.server.test_elicitation import make_case
from tests.server.test_eras import HANDSHAKE
from tests.server.test_keys import bearer, make_key
from tests.server.test_messages import ACCEPT, OPEN, PING, call, open_session, read_error
from tests.server.test_subscriptions import open_on, who

ASKING: dict[str, Any] = {**HANDSHAKE, "protocolVersion": "2025-03-26", "capabilities": {"elicitation": {}}}


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_on(tmp_path) as desk:
        yield desk


async def test_who_asks_for_progress_in_a_batch_gets_the_answer_alone(desk: Desk) -> None:
    asked = call(name="search_echo", arguments={"query": "x"}, _meta={"progressToken": "a"})
    async with open_session(desk, "2025-03-26") as client:
        answer = await client.post("/mcp", json=[asked, {**PING, "id": 8}])
    assert answer.status_code == 200
    assert [each["id"] for each in answer.json()] == [7, 8]


async def test_nobody_is_asked_where_no_question_can_precede_the_answer(opened: Desk) -> None:
    tool, arguments = await make_case(opened, "product")
    asked = call(name=tool, arguments=arguments)
    async with open_http(opened, who(opened)) as client:
        client.headers |= ACCEPT
        session = (await client.post("/mcp", json={**OPEN, "params": ASKING})).headers["mcp-session-id"]
        client.headers["mcp-session-id"] = session
        [in_batch] = (await client.post("/mcp", json=[asked])).json()
        alone = (await client.post("/mcp", json=asked, headers={"accept": "application/json"})).json()
    assert in_batch == alone
    assert in_batch["id"] == 7


async def test_each_message_of_a_batch_counts(tmp_path: Path) -> None:
    async with open_limited(tmp_path, agent_rate=60) as (desk, client):
        headers = bearer(await make_key(desk))
        opening = {**OPEN, "params": {**HANDSHAKE, "protocolVersion": "2025-03-26"}}
        session = (await client.post("/mcp", json=opening, headers=headers)).headers["mcp-session-id"]
        batch = [{**PING, "id": number} for number in range(50)]
        answers = (await client.post("/mcp", json=batch, headers=headers | {"mcp-session-id": session})).json()
    assert [each["id"] for each in answers] == list(range(50))
    refused = ["error" in each for each in answers]
    assert refused == sorted(refused)
    assert 0 < refused.count(False) < 25
    assert answers[-1]["error"]["data"]["error"]["code"] == "LIMIT_EXCEEDED"


async def test_an_id_is_one_requests_at_a_time(tmp_path: Path) -> None:
    async with echo_desk(tmp_path) as desk, open_session(desk, "2025-11-25") as client:
        answers: list[Any] = []

        async def ask(id: object) -> None:
            asked = {**call(name="search_echo", arguments={"query": str(id)}), "id": id}
            answers.append(await client.post("/mcp", json=asked))

        async with anyio.create_task_group() as group:
            for id in (5, "5", 5, 6):
                group.start_soon(ask, id)
        refused = [each for each in answers if each.status_code == 400]
        served = [each for each in answers if each.status_code == 200]
        assert sorted(str(each.json()["id"]) for each in served) == ["5", "6"]
        assert len(refused) == 2
        assert "unanswered request" in read_error(refused[0])["message"]
        again = await client.post("/mcp", json={**PING, "id": 5})
        assert again.json() == {"jsonrpc": "2.0", "id": 5, "result": {}}
