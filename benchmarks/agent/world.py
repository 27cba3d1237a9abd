"""A desk in a process of its own, in a small invented world: a feed, a help desk, notes of colleagues, three playbooks.

The feed and the help desk are the sample world's emulators, in processes of their own; the store is a real engine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.agent.tasks import FOLDER
from sample_world.azure_updates.process import running_emulator as running_feed
from sample_world.process import REPOSITORY
from sample_world.salesforce import process as salesforce

TALKS = [
    REPOSITORY / "sample_world" / "conversations" / f"{name}.txt"
    for name in ("charged_twice", "hub_white_ring", "radiator_valve")
]
"""One conversation of each problem that the tasks are about."""

COLLEAGUE, AGENT = "ann", "visitor"
READY_SECONDS = 180.0
"""How long the local model may take to load."""


@dataclass(frozen=True, slots=True)
class World:
    """What a desk is started with.

    Attributes:
        environment: Settings that each of its processes gets.
    """

    environment: Mapping[str, str]

    @asynccontextmanager
    async def connect(self, agent: str) -> AsyncGenerator[Client]:
        """Yield a client of a desk that this agent starts over stdio."""
        arguments = ["-m", "refdesk", "serve", "--stdio", "--isolated", "--agent", agent]
        started = StdioServerParameters(
            command=sys.executable, args=arguments, env=dict(self.environment), cwd=REPOSITORY
        )
        async with Client(started) as client:
            yield client


@asynccontextmanager
async def open_world(
    home: Path, settings: Mapping[str, str], notes: Sequence[Mapping[str, Any]] | None = None
) -> AsyncGenerator[World]:
    """Yield a world that is settled.

    Args:
        home: Where its data go.
        settings: Further ones of the desk, by the names of their variables.
        notes: What the colleague has written; default: as the file beside this has it.
    """
    async with running_feed() as feed, salesforce.running_emulator() as help_desk:
        environment = {
            **os.environ,
            "REFDESK_HOME": str(home),
            "REFDESK_AZURE_UPDATES_URL": feed.url,
            **help_desk.settings,
            **settings,
        }
        await _run(environment, "sync", "azure-updates")
        world = World(environment)
        async with world.connect(COLLEAGUE) as colleague:
            await _settle(colleague, load_notes() if notes is None else notes)
        async with world.connect(AGENT) as agent:
            await _mistake(agent)
        # Everything, and not only what happened to be embedded when the first task began.
        await _run(environment, "worker", "--until-idle")
        yield world


def load_notes() -> list[dict[str, Any]]:
    """Return what the colleague has written."""
    return json.loads((FOLDER / "world.json").read_text("utf-8"))["notes"]


async def wait_for_model(client: Client) -> None:
    """Return as soon as the desk of a client has its embedding model in memory: until then, words alone find."""
    with anyio.fail_after(READY_SECONDS):
        while "still loading" in str(await _call(client, "search_azure_updates", {"query": "disks", "limit": 1})):  # noqa: ASYNC110 - it is another process's
            await anyio.sleep(0.1)


async def _run(environment: Mapping[str, str], *arguments: str) -> None:
    await anyio.run_process([sys.executable, "-m", "refdesk", *arguments], env=dict(environment), cwd=REPOSITORY)


async def _settle(colleague: Client, notes: Sequence[Mapping[str, Any]]) -> None:
    ids: list[str] = []
    for note in notes:
        arguments = {name: value for name, value in note.items() if name != "supersedes"}
        ids.append(str((await _call(colleague, "store_knowledge", arguments))["id"]))
        if "supersedes" in note:
            await _call(colleague, "supersede_knowledge", {"oldId": ids[note["supersedes"]], "newId": ids[-1]})
    for talk in TALKS:
        await _call(colleague, "create_skill", {"conversation": talk.read_text("utf-8")})


async def _mistake(agent: Client) -> None:
    """Let the agent make the mistakes that it is to take back."""
    await _call(agent, "store_knowledge", {"title": "Fire drill on Friday", "body": "It is at ten."})
    found = await _call(agent, "search_knowledge", {"query": "guest Wi-Fi password changes every Monday"})
    wrong = await _call(agent, "store_knowledge", {"title": "Guest Wi-Fi needs no password", "body": "Just choose it."})
    await _call(agent, "supersede_knowledge", {"oldId": found["results"][0]["id"], "newId": wrong["id"]})


async def _call(client: Client, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(name, dict(arguments))
    if result.is_error or result.structured_content is None:
        raise RuntimeError(f"The world cannot be settled: {name} answered {result.content}.")
    return dict(result.structured_content)
