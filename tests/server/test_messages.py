"""What is no message, or asks for what there is not, gets the protocol's error in words, over each transport."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from refdesk.app import Desk
from tests.server.conftest import open_http
from tests.server.test_eras import HANDSHAKE, MODERN_META

ACCEPT = {"accept": "application/json, text/event-stream"}
OPEN = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
DUMPS = ("pydantic", "validation error", "input_value", "type=", "Traceback", "JSONRPC")


def call(**params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


@asynccontextmanager
async def open_session(desk: Desk, version: str) -> AsyncGenerator[httpx2.AsyncClient]:
    async with open_http(desk) as client:
        client.headers |= ACCEPT
        message = {**OPEN, "params": {**HANDSHAKE, "protocolVersion": version}}
        answer = await client.post("/mcp", json=message)
        assert answer.status_code == 200, answer.text
        client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        await client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield client


def read_error(answer: httpx2.Response) -> dict[str, Any]:
    [line] = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith(("{", "data: {"))]
    error = json.loads(line)["error"]
    assert not [word for word in DUMPS if word in error["message"]], error
    assert error["message"].endswith("."), error
    return error


WRONG = [
    (b"", -32700, "strict JSON"),
    (b"{", -32700, "strict JSON"),
    (b"\xff", -32700, "strict JSON"),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700, "strict JSON"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\udc00"}}', -32700, "strict JSON"),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', -32700, "strict JSON"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\xed\xa0\x80":1}}', -32700, "strict JSON"),
    ('{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"), -32700, "strict JSON"),
    (b"[" * 100_000, -32700, "strict JSON"),
    (b"null", -32600, "one JSON object"),
    (b'"ping"', -32600, "one JSON object"),
    (b"{}", -32600, "`jsonrpc`"),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, "`jsonrpc`"),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, "`id`"),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, "`id`"),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, "`id`"),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, "`id`"),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 40 + b',"method":"ping"}', -32600, "`id`"),
    (b'{"jsonrpc":"2.0","id":"' + b"9" * 400 + b'","method":"ping"}', -32600, "`id`"),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, "`method`"),
    (b'{"jsonrpc":"2.0","id":1}', -32600, "`method`"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602, "`params`"),
]


@pytest.mark.parametrize(("body", "code", "words"), WRONG)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_what_is_no_message_is_told_so(desk: Desk, version: str, body: bytes, code: int, words: str) -> None:
    headers = {"content-type": "application/json"}
    if version == "2026-07-28":
        async with open_http(desk) as client:
            answer = await client.post(
                "/mcp", content=body, headers={**ACCEPT, **headers, "mcp-protocol-version": version}
            )
    else:
        async with open_session(desk, version) as client:
            answer = await client.post("/mcp", content=body, headers=headers)
    error = read_error(answer)
    assert (answer.status_code, error["code"]) == (400, code)
    assert words in error["message"]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_the_type_of_a_message_is_read_in_any_case_and_no_other_is(desk: Desk, version: str) -> None:
    async with open_session(desk, "2025-11-25") as client:
        meta = {"_meta": MODERN_META} if version == "2026-07-28" else {}
        if meta:
            del client.headers["mcp-session-id"]
        client.headers |= {"mcp-protocol-version": version, "mcp-method": "tools/list"}
        body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": meta})
        for kind in ("Application/JSON", "application/json; charset=UTF-8"):
            answer = await client.post("/mcp", content=body, headers={"content-type": kind})
            assert answer.status_code == 200, answer.text
        for kind in ("text/plain", "application/jsonx", ""):
            answer = await client.post("/mcp", content=body, headers={"content-type": kind})
            assert answer.status_code == 415
            assert "Content-Type: application/json" in read_error(answer)["message"]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (call(), "`name` is required"),
        (call(name="search_echo", arguments=[1]), "`arguments` is of the wrong"),
        ({**PING, "method": "tools/list", "params": {"cursor": "bogus"}}, "Omit `cursor`"),
        ({**PING, "method": "resources/list", "params": {"cursor": ""}}, "Omit `cursor`"),
        ({**PING, "method": "resources/templates/list", "params": {"cursor": "x"}}, "Omit `cursor`"),
        ({**PING, "method": "resources/read", "params": {}}, "`uri` is required"),
    ],
)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_wrong_parameters_are_named(desk: Desk, era: str, message: dict[str, Any], words: str) -> None:
    if era == "legacy":
        async with open_session(desk, "2025-11-25") as client:
            answer = await client.post("/mcp", json=message)
    else:
        params = message.get("params", {})
        sent = {**message, "params": {**params, "_meta": MODERN_META}}
        own = {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
        if "name" in params:
            own["mcp-name"] = str(params["name"])
        async with open_http(desk) as client:
            answer = await client.post("/mcp", json=sent, headers=ACCEPT | own)
    error = read_error(answer)
    assert error["code"] == -32602
    assert words in error["message"]
    assert json.loads(answer.text.removeprefix("event: message").strip().removeprefix("data: "))["id"] == 7


async def test_a_name_that_is_none_is_named(desk: Desk) -> None:
    async with open_session(desk, "2025-11-25") as client:
        error = read_error(await client.post("/mcp", json=call(name=5)))
    assert error == {
        "code": -32602,
        "message": "These are no parameters of tools/call: `name` is of the wrong type or form.",
    }


async def test_an_unknown_version_is_told_which_there_are(desk: Desk) -> None:
    async with open_http(desk) as client:
        answer = await client.post("/mcp", json=PING, headers=ACCEPT | {"mcp-protocol-version": "2099-01-01"})
    error = read_error(answer)
    assert (answer.status_code, error["code"]) == (400, -32022)
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}
    assert "2025-11-25" in error["message"]


async def test_a_session_of_an_older_revision_is_served_batches(desk: Desk) -> None:
    listing = {"jsonrpc": "2.0", "id": "a", "method": "tools/list"}
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}
    async with open_session(desk, "2025-03-26") as client:
        answer = await client.post("/mcp", json=[PING, note, {"id": 1}, listing])
        assert answer.status_code == 200
        first, wrong, second = answer.json()
        assert (first["id"], first["result"]) == (7, {})
        assert wrong["error"]["code"] == -32600
        assert (second["id"], len(second["result"]["tools"])) == ("a", 4)
        assert (await client.post("/mcp", json=[note])).status_code == 202
        for batch, words in (([], "1 to 50"), ([PING] * 51, "1 to 50"), ([OPEN], "stands alone")):
            answer = await client.post("/mcp", json=batch)
            assert answer.status_code == 400
            assert words in read_error(answer)["message"]


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_a_later_session_is_told_that_there_are_no_batches(desk: Desk, version: str) -> None:
    async with open_session(desk, version) as client:
        answer = await client.post("/mcp", json=[PING])
    assert answer.status_code == 400
    assert read_error(answer)["message"] == "This protocol revision has no batches: send one message at a time."
