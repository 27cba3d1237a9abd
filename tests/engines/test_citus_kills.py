"""A node of a cluster killed under load, again and again: the other orgs go on, and nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread
import pytest

from refdesk.model import Collection
from refdesk.stores.postgres import open_store
from tests.engines import citus
from tests.engines.citus import CitusCluster
from tests.engines.postgres import get_schema
from tests.engines.writers import MOST_BETWEEN, Writer, find_faults
from tests.reliability.counting import count

pytestmark = pytest.mark.engines

ORGS = [f"org{number}" for number in range(6)]
MEANWHILE = 3
"""Writes of each org of the other nodes that are acknowledged while one is gone."""


async def strike(cluster: CitusCluster, schema: str, writers: Sequence[Writer], victim_org: str) -> set[str]:
    """Kill the node of an org and start it again; return "held up" where an org of another node did not go on."""
    places = {org: cluster.find_worker(schema, org) for org in (writer.collection.org for writer in writers)}
    victim = places[victim_org]
    others = [writer for writer in writers if places[writer.collection.org] is not victim]
    await anyio.to_thread.run_sync(victim.kill)
    faults = set[str]()

    async def look(writer: Writer) -> None:
        if not await writer.get_on(MEANWHILE, whatever_fails=False):
            faults.add("held up")

    async with anyio.create_task_group() as group:
        for writer in others:
            group.start_soon(look, writer)
    await anyio.to_thread.run_sync(victim.start)
    # The same store goes on: the writers must get through again before they are looked at.
    for writer in writers:
        await writer.get_on(1, whatever_fails=True)
    return faults


async def kill(folder: Path, cluster: CitusCluster, kills: int, seed: int, fault: str = "") -> set[str]:
    """Return the faults after so many kills, or after as many as it takes to see one."""
    random, schema = Random(seed), get_schema(folder)
    async with open_store(citus.get_store_url(folder, cluster), patience_seconds=5) as store:
        acknowledgements = anyio.Semaphore(0)
        writers = [Writer(org, Collection(org, "notes"), store, acknowledgements, fault == "early") for org in ORGS]
        if fault == "entangled":
            for writer, also in zip(writers, [*ORGS[1:], ORGS[0]], strict=True):
                writer.also = also
        workers = [org for org in ORGS if cluster.find_worker(schema, org) is not cluster.coordinator]
        assert len({cluster.find_worker(schema, org).port for org in workers}) == len(cluster.workers)
        # A model's first vector makes its graph on every node.
        for writer in writers:
            await writer.write_next()
        faults = set[str]()
        for _ in range(kills):
            async with anyio.create_task_group() as group:
                for writer in writers:
                    group.start_soon(writer.run)
                for _ in range(random.randrange(1, MOST_BETWEEN)):
                    await acknowledgements.acquire()
                faults = await strike(cluster, schema, writers, random.choice(workers))
                for writer in writers:
                    writer.is_stopped = True
            if faults := faults | await find_faults(store, writers):
                return faults
    return set()


@pytest.mark.timeout(300)
async def test_killed_nodes_stop_nobody_else_and_lose_nothing(tmp_path: Path) -> None:
    with citus.lent() as cluster:
        assert await kill(tmp_path, cluster, 5, seed=1) == set()
    count("kills of a cluster's nodes", 5)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_nodes_killed_a_hundred_times_stop_nobody_else_and_lose_nothing(tmp_path: Path) -> None:
    with citus.lent() as cluster:
        assert await kill(tmp_path, cluster, 100, seed=2) == set()
    count("kills of a cluster's nodes", 100)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("fault", "seen"), [("early", "lost"), ("entangled", "held up")])
async def test_the_proof_catches(tmp_path: Path, fault: str, seen: str) -> None:
    with citus.lent() as cluster:
        assert seen in await kill(tmp_path, cluster, 30, seed=3, fault=fault)
