"""An answer whose connection broke is resumed where it broke, by whom it was for."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.acceptance.processes import HANDSHAKE, WAIT_SECONDS
from tests.acceptance.test_http import make_key
from tests.acceptance.test_slow_clients import PATIENT, serve

ACCEPT = {"accept": "application/json, text/event-stream"}
TEXT = "".join(
    json.dumps({"type": "entity", "name": f"Note {number}", "entityType": "policy", "observations": ["500 EUR."]})
    + "\n"
    for number in range(200)
)
ARGUMENTS = {"format": "mcp-memory", "text": TEXT, "dryRun": True}


@dataclass(frozen=True)
class Served:
    url: str
    ann: dict[str, str]
    bob: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    home = tmp_path_factory.mktemp("home")
    with serve(home, **PATIENT, REFDESK_TOOLS="all") as (_, url):
        scopes = ["--scope", "knowledge:read", "--scope", "knowledge:write"]
        yield Served(url, *(make_key(home, *scopes)[1] for _ in range(2)))


def read_events(response: httpx2.Response) -> Generator[tuple[str, str]]:
    """Yield the id and the data of each event."""
    id = ""
    for line in response.iter_lines():
        if line.startswith("id: "):
            id = line.removeprefix("id: ")
        elif line.startswith("data:"):
            yield id, line.removeprefix("data:").strip()


def break_off(client: httpx2.Client) -> tuple[str, str]:
    """Ask for an answer that is a stream, break off after its first event, and return the session and that event."""
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
    session = client.post("/mcp", json=opening).headers["mcp-session-id"]
    params: dict[str, Any] = {"name": "import_knowledge", "arguments": ARGUMENTS, "_meta": {"progressToken": "p"}}
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    headers = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    with client.stream("POST", "/mcp", json=call, headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        return session, next(read_events(stream))[0]


def resume(client: httpx2.Client, session: str, event: str) -> tuple[int, list[str]]:
    headers = {"mcp-session-id": session, "last-event-id": event, "mcp-protocol-version": "2025-11-25"}
    with client.stream("GET", "/mcp", headers=headers) as stream:
        if stream.status_code != 200:
            return stream.status_code, [stream.read().decode()]
        return 200, [data for _, data in read_events(stream) if data]


def test_an_answer_is_resumed_to_its_end_by_its_caller_alone(served: Served) -> None:
    with (
        httpx2.Client(base_url=served.url, headers={**ACCEPT, **served.ann}, timeout=WAIT_SECONDS) as ann,
        httpx2.Client(base_url=served.url, headers={**ACCEPT, **served.bob}, timeout=WAIT_SECONDS) as bob,
    ):
        session, event = break_off(ann)
        status, said = resume(ann, session, event)
        assert status == 200
        assert json.loads(said[-1])["id"] == 7
        assert json.loads(said[-1])["result"]["structuredContent"]["added"] == 200
        theirs, none = resume(bob, session, event), resume(bob, "0" * 32, event)
        assert (theirs[0], theirs) == (404, none)
        own, _ = break_off(bob)
        status, said = resume(bob, own, event.replace("-", "9-"))
        assert (status, "send what was not answered again" in said[0]) == (400, True)


class Cutting(httpx2.AsyncHTTPTransport):
    """Loses the connection in the middle of the first answer to a call that is a stream."""

    cuts = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if request.method == "POST" and is_stream and not self.cuts:
            self.cuts += 1
            response.stream = Cut(response.stream)
        return response


class Cut(httpx2.AsyncByteStream):
    """Ends once an event has come."""

    def __init__(self, whole: Any) -> None:  # noqa: ANN401 - of either kind, as the library has it
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = b""
        async for chunk in self._whole:
            seen += chunk
            yield chunk
            if b"\r\n\r\n" in seen or b"\n\n" in seen:
                break

    async def aclose(self) -> None:
        await self._whole.aclose()


async def test_the_official_client_goes_on_where_it_was_cut_off(served: Served) -> None:
    async def note(progress: float, total: float | None, message: str | None) -> None:
        del progress, total, message

    cutting = Cutting()
    async with (
        httpx2.AsyncClient(transport=cutting, headers=served.ann, timeout=WAIT_SECONDS) as http,
        Client(streamable_http_client(f"{served.url}/mcp", http_client=http), mode="legacy") as client,
    ):
        answer = await client.call_tool("import_knowledge", ARGUMENTS, progress_callback=note)
    assert cutting.cuts == 1
    assert answer.structured_content is not None
    assert answer.structured_content["added"] == 200
