"""A desk that is killed under its clients costs them no acknowledged write and no session; and the proof can fail."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.processes import list_desks, shake_hands, start
from tests.acceptance.test_desk import HASHING, SERVE, list_processes
from tests.reliability.counting import count
from tests.reliability.desk_kills import DeskKills

SAYS_STORED = """
import json
from refdesk.forwarder.journal import Calls
Calls.say_unsure = lambda self, request: json.dumps(
    {"jsonrpc": "2.0", "id": request.id, "result": {"content": [], "structuredContent": {"id": "x",
     "embeddingStatus": "pending", "createdAt": "2026-01-01T00:00:00Z", "replayed": False}}}
).encode() + b"\\n"
"""
REPEATS_WRITES = """
import anyio
from refdesk.forwarder.journal import Calls
from refdesk.server.local.lines import Session
Calls.is_repeatable = lambda self, request: True
write = Session.write
async def write_late(self, text):
    await anyio.sleep(0.1)
    return await write(self, text)
Session.write = write_late
"""
FORGETS_KEYS_AT_ONCE = """
import sys
if "refdesk.server.local" in sys.orig_argv:
    from datetime import timedelta
    import anyio
    from refdesk.core.writing import idempotency
    from refdesk.server.local.lines import Session
    idempotency.WINDOW = timedelta(0)
    write = Session.write
    async def write_late(self, text):
        await anyio.sleep(0.1)
        return await write(self, text)
    Session.write = write_late
"""
"""As if each desk took longer to come than a key holds: a machine that is busy, or was asleep."""

STARTERS = 4
LOCKS_NOTHING = f"""
import os
import sys
from pathlib import Path
from refdesk.forwarder.locking import FileLock
def take(self, seconds=0.0):
    if "refdesk.server.local" not in sys.orig_argv:
        arrived = Path(__file__).with_name("arrived")
        arrived.mkdir(exist_ok=True)
        (arrived / str(os.getpid())).touch()
        while len(os.listdir(arrived)) < {STARTERS}:
            os.sched_yield()
    return True
FileLock.take = take
FileLock.is_in_place = lambda self: True
"""
"""Clients come to the lock together: one that came late would find the desk of another, with or without a lock."""


def plant(folder: Path, fault: str) -> dict[str, str]:
    """Return the variables with which every Python process of a test has a fault."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(fault)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.timeout(300)
async def test_a_killed_desk_costs_its_clients_nothing(tmp_path: Path) -> None:
    trials = DeskKills(tmp_path, seed=1, clients=3)
    assert await trials.run(4) == set(), trials
    assert trials.stored
    count("kills of desks", 4)


@pytest.mark.timeout(300)
async def test_what_a_slow_machine_repeats_late_is_not_doubled(tmp_path: Path) -> None:
    trials = DeskKills(
        tmp_path / "home", seed=3, clients=3, variables=plant(tmp_path / "planted", FORGETS_KEYS_AT_ONCE)
    )
    assert await trials.run(4) == set(), trials


@pytest.mark.soak
async def test_a_thousand_killed_desks_cost_ten_clients_nothing(tmp_path: Path, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 10):
        trials = DeskKills(tmp_path / str(seed), seed, clients=10)
        assert await trials.run(100) == set(), trials
        count("kills of desks", 100)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("fault", "named"), [(SAYS_STORED, "lost"), (REPEATS_WRITES, "doubled")])
async def test_the_proof_catches_a_forwarder_that_guesses(tmp_path: Path, fault: str, named: str) -> None:
    variables, seen = plant(tmp_path / "planted", fault), set[str]()
    # A few kills may all come between a call and its commit, where either fault costs nothing.
    for seed in range(2, 6):
        seen |= await DeskKills(tmp_path / str(seed), seed, variables=variables).run(4)
        if named in seen:
            break
    assert named in seen


def count_desks(home: Path, clients: int, **variables: str) -> int:
    """Return how many desks so many first starts at the same moment make."""
    with ExitStack() as stack:
        servers = [stack.enter_context(start(SERVE, home, **HASHING, **variables)) for _ in range(clients)]
        for server in servers:
            shake_hands(server)
        desks = list_processes(home)
        assert set(list_desks(home)) <= set(desks)
        return len(desks)


@pytest.mark.soak
def test_two_hundred_first_starts_at_the_same_moment_make_one_desk(tmp_path: Path) -> None:
    for trial in range(5):
        assert count_desks(tmp_path / str(trial), 200) == 1


def test_the_count_of_desks_catches_locks_that_hold_nobody(tmp_path: Path) -> None:
    assert count_desks(tmp_path / "home", STARTERS, **plant(tmp_path / "planted", LOCKS_NOTHING)) > 1
