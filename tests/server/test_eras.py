from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from refdesk.app import Desk
from refdesk.server import eras, mcp
from refdesk.settings import StdioEra
from tests.server.echo import READER

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}


Send: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
Receive: TypeAlias = MemoryObjectReceiveStream[SessionMessage]


class Peer:
    """A client that writes what it likes."""

    def __init__(self, send: Send, receive: Receive) -> None:
        self._send, self._receive, self._id = send, receive, 0

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._id += 1
        await self._send.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=self._id, method=method, params=params)))
        answer = await self.receive()
        assert answer["id"] == self._id
        return answer

    async def receive(self) -> dict[str, Any]:
        with anyio.fail_after(120):
            return (await self._receive.receive()).message.model_dump(by_alias=True, exclude_unset=True, mode="json")

    async def send(self, item: SessionMessage | Exception) -> None:
        await self._send.send(item)

    async def leave(self) -> None:
        await self._send.aclose()

    async def modern(self, method: str) -> dict[str, Any]:
        return await self.ask(method, {"_meta": MODERN_META})

    async def shake_hands(self) -> dict[str, Any]:
        answer = await self.ask("initialize", HANDSHAKE)
        if "result" in answer:
            await self.send(
                SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized", params={}))
            )
        return answer


@asynccontextmanager
async def connect(desk: Desk, era: StdioEra) -> AsyncGenerator[Peer]:
    server = mcp.build_server(desk, mcp.identify_local(READER, is_agent_known=True))
    to_server, at_server = anyio.create_memory_object_stream[SessionMessage | Exception](4)
    to_client, at_client = anyio.create_memory_object_stream[SessionMessage](4)
    async with anyio.create_task_group() as group:
        group.start_soon(eras.run, server, at_server, to_client, era)
        yield Peer(to_server, at_client)
        await to_server.aclose()
    at_client.close()


async def test_a_probe_does_not_keep_a_client_from_shaking_hands(desk: Desk) -> None:
    async with connect(desk, "auto") as peer:
        probed = await peer.modern("server/discover")
        assert probed["result"]["supportedVersions"] == ["2026-07-28"]
        assert (await peer.shake_hands())["result"]["protocolVersion"] == "2025-11-25"
        assert len((await peer.ask("tools/list", {}))["result"]["tools"]) == 4


async def test_a_probe_does_not_keep_a_client_from_going_on_without_a_handshake(desk: Desk) -> None:
    async with connect(desk, "auto") as peer:
        for _ in range(2):
            assert "result" in await peer.modern("server/discover")
        assert len((await peer.modern("tools/list"))["result"]["tools"]) == 4
        assert "result" in await peer.modern("server/discover")


async def test_a_legacy_server_knows_no_probe_and_shakes_hands(desk: Desk) -> None:
    async with connect(desk, "legacy") as peer:
        assert (await peer.modern("server/discover"))["error"]["code"] == -32601
        assert "result" in await peer.shake_hands()


async def test_a_modern_server_shakes_no_hands_and_says_what_it_speaks(desk: Desk) -> None:
    async with connect(desk, "modern") as peer:
        refused = (await peer.shake_hands())["error"]
        assert (refused["code"], refused["data"]) == (-32022, {"supported": ["2026-07-28"]})
        assert len((await peer.modern("tools/list"))["result"]["tools"]) == 4


@pytest.mark.parametrize("era", ["auto", "legacy", "modern"])
async def test_what_cannot_be_parsed_is_answered_and_harms_nothing(desk: Desk, era: StdioEra) -> None:
    async with connect(desk, era) as peer:
        await peer.send(ValueError("not JSON"))
        answer = await peer.receive()
        assert answer["id"] is None
        assert answer["error"]["code"] == -32700
        opened = await (peer.modern("tools/list") if era == "modern" else peer.shake_hands())
        assert "result" in opened


async def test_a_connection_that_has_shaken_hands_refuses_requests_of_the_later_era(desk: Desk) -> None:
    async with connect(desk, "auto") as peer:
        await peer.shake_hands()
        for method in ("tools/list", "server/discover"):
            assert (await peer.modern(method))["error"]["code"] == -32600
        assert len((await peer.ask("tools/list", {}))["result"]["tools"]) == 4


@pytest.mark.parametrize("era", ["auto", "modern"])
async def test_what_comes_before_the_first_request_is_no_request_and_opens_nothing(desk: Desk, era: StdioEra) -> None:
    async with connect(desk, era) as peer:
        for _ in range(20):
            await peer.send(
                SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/roots/list_changed"))
            )
        opened = await (peer.modern("tools/list") if era == "modern" else peer.shake_hands())
        assert "result" in opened


async def test_a_client_that_leaves_without_a_request_is_let_go(desk: Desk) -> None:
    async with connect(desk, "auto") as peer:
        await peer.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")))
        await peer.leave()
        with pytest.raises(anyio.EndOfStream):
            await peer.receive()


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_request_before_the_handshake_is_told_what_comes_first(desk: Desk, era: StdioEra) -> None:
    async with connect(desk, era) as peer:
        for method in ("tools/list", "resources/list"):
            refused = (await peer.ask(method, {}))["error"]
            assert (refused["code"], refused["message"]) == (-32602, f"Send initialize first, then {method}.")
        assert "result" in await peer.shake_hands()
        assert len((await peer.ask("tools/list", {}))["result"]["tools"]) == 4
