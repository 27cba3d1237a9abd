"""What the protocol has beyond calls, with the official SDK's client, against real processes over every transport."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import PromptReference

from tests.acceptance.processes import make_environment, start
from tests.server.test_elicitation import Person
from tests.server.test_progress import Seen
from tests.server.test_subscriptions import Heard, subscribed

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

MODERN = "2026-07-28"
TRANSPORTS = ("stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}", "sse legacy")
SERVE = ["-m", "refdesk", "serve"]
TALK = "Customer: The zebra is stuck.\nAgent: Please restart the zebra under Settings.\nCustomer: That worked, thanks!"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    home = tmp_path_factory.mktemp("home")
    with start([*SERVE, "--no-auth", "--sse", "--port", "0"], home, REFDESK_EMBEDDER="hashing") as server:
        yield str(server.read_log("listening")["url"])


@asynccontextmanager
async def connect(transport: str, url: str, home: Path, **options: Any) -> AsyncGenerator[Client]:  # noqa: ANN401 - as the SDK has them
    way, era = transport.split()
    command = StdioServerParameters(
        command=sys.executable,
        args=[*SERVE, "--stdio"],
        env=make_environment(home, REFDESK_EMBEDDER="hashing", REFDESK_DESK_IDLE_SECONDS="1"),
    )
    where = {"http": f"{url}/mcp", "sse": sse_client(f"{url}/sse")}.get(way) or stdio_client(command)
    async with Client(where, mode=era, **options) as client:
        yield client


async def store(client: Client, title: str) -> str:
    result = await client.call_tool("store_knowledge", {"title": title, "body": "As of today."})
    assert result.structured_content is not None, result
    return result.structured_content["id"]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_every_capability_works_as_clients_use_it(transport: str, url: str, tmp_path: Path) -> None:
    seen, heard, person = Seen(), Heard(), Person()
    options = {"message_handler": heard.note, "elicitation_callback": person.answer}
    with anyio.fail_after(120):
        async with connect(transport, url, tmp_path, **options) as client:
            prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert "ask_the_desk" in prompts
            found = await client.complete(
                PromptReference(name="write_down_what_we_learned"), {"name": "tag", "value": ""}
            )
            assert found.completion.values == []

            learned = await client.call_tool("create_skill", {"conversation": TALK}, progress_callback=seen.note)
            assert not learned.is_error
            assert [done for done, _, _ in seen.steps] == [0, 1, 2][: len(seen.steps)]

            old, new, newest = [await store(client, f"Zebra {n}") for n in range(3)]
            uri = f"knowledge://{old}"
            async with subscribed(client, heard, transport, uri):
                await client.call_tool("supersede_knowledge", {"oldId": old, "newId": new})
                await heard.wait_for(uri)
            again = await client.call_tool("supersede_knowledge", {"oldId": old, "newId": newest})
            assert again.structured_content == {"oldId": new, "newId": newest, "headId": newest}
            assert len(person.asked) == 1
