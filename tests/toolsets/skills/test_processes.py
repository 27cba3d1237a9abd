"""Several servers on one file: what is one step in the store is one step for all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from refdesk.stores.sqlite import open_store
from tests.conftest import REPOSITORY
from tests.toolsets.skills.conftest import INVOICE, make_desk

SERVERS, CALLS = 3, 8

SERVER = """
import sys
from pathlib import Path

import anyio

from refdesk.stores.sqlite import open_store
from tests.toolsets.skills.conftest import INVOICE, ScriptedModel, make_desk

async def serve(path, number, calls, updated):
    async with open_store(path, patience_seconds=60) as store:
        desk = make_desk(store)
        # Ids count up from one in each: they are told apart by the server's number.
        desk.base.identifiers.new = iter([f"0193000{number}-0000-7000-8000-{n:012}" for n in range(1, 99)]).__next__
        sys.stdout.write("ready\\n")
        sys.stdout.flush()
        sys.stdin.readline()
        async with anyio.create_task_group() as group:
            for call in range(calls):
                if updated:
                    talk = f"Customer: My invoice {number} is wrong\\nAgent: Write form{number}x{call} please."
                    group.start_soon(change, desk, updated, talk)
                else:
                    group.start_soon(learn, desk, f"{INVOICE}Agent: Bye {number} {call}.")

async def learn(desk, talk):
    await desk.serve(ScriptedModel())("create_skill", conversation=talk)

async def change(desk, id, talk):
    await desk.serve()("update_skill", skill_id=id, conversation=talk)

anyio.run(serve, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
"""


def run_servers(path: Path, updated: str = "") -> None:
    """Run the servers, all at once from the moment that all are ready."""
    command = [sys.executable, "-c", SERVER, str(path)]
    servers = [
        subprocess.Popen(
            [*command, str(number), str(CALLS), updated],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        for number in range(SERVERS)
    ]
    for server in servers:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
    for server in servers:
        server.communicate("go\n", timeout=120)
        assert server.returncode == 0


async def test_parallel_creates_by_several_processes_make_one_skill(tmp_path: Path) -> None:
    path = tmp_path / "skills.db"
    run_servers(path)
    async with open_store(path) as store:
        assert len(await make_desk(store).queries().list_skills()) == 1


async def test_parallel_updates_by_several_processes_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "skills.db"
    async with open_store(path) as store:
        created = await make_desk(store).serve()("create_skill", conversation=INVOICE)
    run_servers(path, created["skill_id"])
    async with open_store(path) as store:
        skill = await make_desk(store).queries().get_skill(created["skill_id"])
    assert skill is not None
    assert skill.version == 1 + SERVERS * CALLS
    assert len(set(skill.playbook.cases)) == 1 + SERVERS * CALLS
