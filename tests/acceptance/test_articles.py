"""The help desk's articles from the real command: under its own label, on each transport, and never on a disk."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from sample_world.salesforce.process import RunningEmulator, running_emulator
from tests.acceptance.processes import Running, shake_hands, start

LABEL = "salesforce-knowledge"
MODULE = ["-m", "refdesk.toolsets.salesforce_knowledge"]
SERVE = ["-m", "refdesk", "serve", "--no-auth", "--port", "0"]
TOOLS = ["search_articles", "get_article_by_id"]
QUESTION = {"query": "reset password"}


@pytest.fixture(scope="module")
async def emulator(anyio_backend: str) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator() as running:
        yield running


def settings(emulator: RunningEmulator) -> dict[str, str]:
    return {
        "REFDESK_EMBEDDER": "hashing",
        **emulator.settings,
    }


def read_all(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def talk(server: Running) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    label = shake_hands(server)["result"]["serverInfo"]
    tools = [tool["name"] for tool in server.ask(2, "tools/list")["result"]["tools"]]
    answer = server.ask(3, "tools/call", {"name": TOOLS[0], "arguments": QUESTION})["result"]
    return label, tools, answer


async def test_over_stdio_it_is_a_server_of_its_own(emulator: RunningEmulator, tmp_path: Path) -> None:
    with start(MODULE, tmp_path, **settings(emulator)) as server:
        label, tools, answer = await anyio.to_thread.run_sync(talk, server)
        assert (label["name"], tools) == (LABEL, TOOLS)
        assert answer["structuredContent"]["articles"][0]["title"] == "Reset a forgotten password"
        status, out, _ = await anyio.to_thread.run_sync(server.close)
    assert (status, out) == (0, "")


@pytest.mark.parametrize("transport", ["--http", "--sse"])
async def test_over_http_and_sse_too(emulator: RunningEmulator, tmp_path: Path, transport: str) -> None:
    with start([*MODULE, transport, "--no-auth", "--port", "0"], tmp_path, **settings(emulator)) as server:
        url = (await anyio.to_thread.run_sync(server.read_log, "listening"))["url"]
        stream = sse_client(f"{url}/sse") if transport == "--sse" else streamable_http_client(f"{url}/mcp")
        async with Client(stream, mode="legacy") as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            answer = await client.call_tool(TOOLS[0], QUESTION)
    assert listed == TOOLS
    assert answer.structured_content is not None
    assert answer.structured_content["search_method"] == "sosl"


async def test_nothing_from_salesforce_is_ever_on_disk_or_in_the_log(emulator: RunningEmulator, tmp_path: Path) -> None:
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    scratch.mkdir()
    variables = {**settings(emulator), "TMPDIR": str(scratch), "REFDESK_LOG_LEVEL": "debug"}
    with start(SERVE, home, **variables) as server:
        url = (await anyio.to_thread.run_sync(server.read_log, "listening"))["url"]
        async with httpx2.AsyncClient(base_url=url) as client:
            note = {"title": "A note of ours", "body": "This one is kept: marzipan."}
            assert (await client.post("/knowledge", json=note)).status_code == 200
            found = (await client.post("/articles/search", json=QUESTION)).json()["articles"]
            articles = [(await client.get(f"/articles/{each['id']}")).json()["article"] for each in found]
            assert (await client.get("/articles/ka05g0000009999")).status_code == 404
        server.process.terminate()
        _, out, log = await anyio.to_thread.run_sync(server.close)
    said = [emulator.client_secret, emulator.access_token]
    said += [str(article[name]) for article in articles for name in ("title", "body", "url_name") if article[name]]
    assert len(said) > 10
    kept = await anyio.to_thread.run_sync(read_all, tmp_path)
    assert b"marzipan" in kept, "the look at the disk sees what is kept"
    for text in said:
        assert text.encode() not in kept
        assert text[:40] not in log + out
