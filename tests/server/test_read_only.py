"""A server that only reads offers nothing that writes, and refuses it by name."""

from __future__ import annotations

from refdesk.app import Desk
from tests.server.conftest import connect, open_http


async def test_a_server_that_only_reads_refuses_what_writes_on_every_transport(desk: Desk) -> None:
    writing = {each.name for toolset in desk.toolsets for each in toolset.operations if not each.effects.read_only}
    async with connect(desk, "2026-07-28") as client:
        offered = {tool.name for tool in (await client.list_tools()).tools}
    barred = writing & offered
    assert barred
    desk.settings = desk.settings.model_copy(update={"read_only": True})
    async with connect(desk, "2026-07-28") as client, open_http(desk) as rest:
        assert {tool.name for tool in (await client.list_tools()).tools} == offered - barred
        for toolset in desk.toolsets:
            for operation in (each for each in toolset.operations if each.name in barred):
                called = await client.call_tool(operation.name, {})
                assert called.is_error
                assert "REFDESK_READ_ONLY" in str(called.content)
                answer = await rest.request(operation.route.method, operation.route.path, json={})
                assert answer.status_code == 403
                assert "REFDESK_READ_ONLY" in answer.text
        assert (await rest.post("/echo/search", json={"query": "still"})).status_code == 200
