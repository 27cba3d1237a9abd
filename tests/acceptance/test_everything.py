"""The one search over all toolsets from the real command, while the help desk hangs, is killed, or is well."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from sample_world.salesforce.process import RunningEmulator, running_emulator
from tests.acceptance.processes import Running, run, shake_hands, start

SERVE = ["-m", "refdesk", "serve", "--stdio", "--isolated", "--agent", "ann"]
HELP_DESK = "salesforce-knowledge"
NOTE = {"title": "Charged twice: look for a second account first", "body": "Then refund.", "tags": ["billing"]}
QUESTION = "charged twice in one month"
ENOUGH = 5_000
"""Milliseconds in which whoever does not hang answers, on a busy machine and in a process that has just started."""

TALK = Path(__file__).parents[2] / "sample_world" / "conversations" / "charged_twice.txt"


@pytest.fixture
async def emulator(anyio_backend: str) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator() as running:
        yield running


def settings(emulator: RunningEmulator) -> dict[str, str]:
    """A desk that would wait for Salesforce longer than any test does."""
    return {
        "REFDESK_EMBEDDER": "hashing",
        "REFDESK_SALESFORCE_INSTANCE_URL": emulator.url,
        "REFDESK_SALESFORCE_ACCESS_TOKEN": emulator.access_token,
        "REFDESK_SALESFORCE_TIMEOUT_SECONDS": "300",
        "REFDESK_REQUEST_TIMEOUT_SECONDS": "300",
    }


async def call(server: Running, name: str, **arguments: object) -> dict[str, Any]:
    def ask() -> dict[str, Any]:
        result = server.ask(9, "tools/call", {"name": name, "arguments": arguments})["result"]
        assert not result.get("isError"), result
        return result["structuredContent"]

    return await anyio.to_thread.run_sync(ask)


async def search(server: Running, **arguments: object) -> tuple[set[str], dict[str, str]]:
    """Return who has hits, and what became of each."""
    answer = await call(server, "search_everything", query=QUESTION, limit=50, **{"deadlineMs": ENOUGH, **arguments})
    return (
        {result["toolset"] for result in answer["results"]},
        {line["toolset"]: line["status"] for line in answer["coverage"]},
    )


def count_connections(server: Running) -> int:
    """Return how many sockets a process has open."""
    links = [os.readlink(path) for path in Path(f"/proc/{server.process.pid}/fd").iterdir() if path.exists()]
    return sum(link.startswith("socket:") for link in links)


async def test_a_help_desk_that_hangs_costs_its_own_hits_and_leaves_no_connection(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    with start(SERVE, tmp_path, **settings(emulator)) as server:
        await anyio.to_thread.run_sync(shake_hands, server)
        await call(server, "store_knowledge", **NOTE)
        assert await search(server) == (
            {"knowledge", HELP_DESK},
            dict.fromkeys(("azure-updates", "knowledge", "skills", HELP_DESK), "answered"),
        )
        await emulator.set_faults([{"fault": "hang"}])
        found, statuses = await search(server)
        assert found == {"knowledge"}
        assert statuses == {**dict.fromkeys(("azure-updates", "knowledge", "skills"), "answered"), HELP_DESK: "late"}
        for _ in range(12):
            assert (await search(server, deadlineMs=150))[1][HELP_DESK] == "late"
        await emulator.set_faults([])
        assert (await search(server))[1][HELP_DESK] == "answered"
        if sys.platform == "linux":
            with anyio.fail_after(120):
                while count_connections(server) > 4:
                    await anyio.lowlevel.checkpoint()
        status, _, _ = await anyio.to_thread.run_sync(server.close)
    assert status == 0


async def test_a_help_desk_that_is_killed_in_the_middle_costs_its_own_hits(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    with start(SERVE, tmp_path, **settings(emulator)) as server:
        await anyio.to_thread.run_sync(shake_hands, server)
        await call(server, "store_knowledge", **NOTE)
        await search(server)
        await emulator.set_faults([{"fault": "hang"}])
        await emulator.forget_requests()
        found = dict[str, Any]()

        async def ask() -> None:
            found["now"] = await search(server, deadlineMs=10_000)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            with anyio.fail_after(120):
                while not await emulator.requests():
                    await anyio.lowlevel.checkpoint()
            os.kill(emulator.pid, signal.SIGKILL)
        toolsets, statuses = found["now"]
        assert toolsets == {"knowledge"}
        assert statuses == {**dict.fromkeys(("azure-updates", "knowledge", "skills"), "answered"), HELP_DESK: "failed"}
        answer = await call(server, "search_everything", query=QUESTION, deadlineMs=ENOUGH)
        [line] = [line for line in answer["coverage"] if line["toolset"] == HELP_DESK]
        assert line["status"] == "failed"
        assert "Traceback" not in line["note"]
        assert (await anyio.to_thread.run_sync(server.close))[0] == 0


async def refdesk(emulator: RunningEmulator, home: Path, *arguments: str) -> tuple[int, str]:
    done = await anyio.to_thread.run_sync(lambda: run(arguments, home, **settings(emulator)))
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


async def test_the_command_shows_one_list_and_below_it_who_did_not_answer(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    tag = ("--title", NOTE["title"], "--body", NOTE["body"], "--tag", "billing")
    await refdesk(emulator, tmp_path, "knowledge", "store", *map(str, tag))
    await refdesk(emulator, tmp_path, "skills", "learn", str(TALK))
    code, shown = await refdesk(emulator, tmp_path, "search", "--limit", "5", *QUESTION.split())
    assert code == 0
    for name in ("knowledge", "skills", HELP_DESK):
        assert f"     {name} · " in shown
    assert "azure-updates: No sync has succeeded yet" in shown
    await emulator.set_faults([{"fault": "hang"}])
    code, shown = await refdesk(emulator, tmp_path, "search", "--deadline-ms", str(ENOUGH), *QUESTION.split())
    assert (code, f"{HELP_DESK} was late: " in shown, f"     {HELP_DESK} · " in shown) == (0, True, False)
    both = ("--toolset", "skills", "--toolset", HELP_DESK)
    code, printed = await refdesk(emulator, tmp_path, "search", "--json", *both, "--deadline-ms", "100", "charged")
    answer = json.loads(printed)
    assert [line["toolset"] for line in answer["coverage"]] == ["skills", HELP_DESK]
    assert answer["coverage"][1]["status"] == "late"
    assert {result["read"]["tool"] for result in answer["results"]} <= {"get_skill"}
