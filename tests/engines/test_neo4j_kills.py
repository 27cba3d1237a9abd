"""A Neo4j that is killed under load loses nothing it acknowledged, and who uses it goes on; and the proof can fail."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from refdesk.model import Document
from refdesk.protocols import Store
from refdesk.stores.neo4j import open_store
from tests.engines.neo4j import Neo4jServer, get_namespace, running
from tests.engines.neo4j_processes import Neo4jWorker, running_workers
from tests.stores.samples import MODEL, NOTES, asking
from tests.stores.sqlite.worker import BATCH

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1200)]

WRITERS = ("a", "b", "c")
MOST_ACKNOWLEDGED = 6


async def kill(folder: Path, kills: int, manner: str, seed: int) -> set[str]:
    """Return the faults that so many kills of the server under load leave behind."""
    random, acknowledged = Random(seed), {name: list[object]() for name in WRITERS}
    with running() as server:
        url = server.get_url(get_namespace(folder))
        with running_workers("write_for_ever", url, *((name, manner) for name in WRITERS)) as workers:
            for _ in range(kills):
                _hear_some(workers, acknowledged, random)
                server.kill()
                server.start()
            _hear_some(workers, acknowledged, random)
        _hear_rest(workers, acknowledged)
        assert all(len(numbers) > kills for numbers in acknowledged.values())
        return await _find_faults(server, url, acknowledged)


def _hear_some(workers: list[Neo4jWorker], acknowledged: dict[str, list[object]], random: Random) -> None:
    for name, worker in zip(WRITERS, workers, strict=True):
        for _ in range(random.randrange(1, MOST_ACKNOWLEDGED)):
            acknowledged[name].append(worker.hear())


def _hear_rest(workers: list[Neo4jWorker], acknowledged: dict[str, list[object]]) -> None:
    """What was said before the end and not yet heard counts too."""
    for name, worker in zip(WRITERS, workers, strict=True):
        with suppress(ValueError):
            acknowledged[name] += worker.hear_all()


async def _find_faults(server: Neo4jServer, url: str, acknowledged: dict[str, list[object]]) -> set[str]:
    """Return what is wrong: "lost" (acknowledged, not there), "torn" (there in part), "twice" (written again)."""
    faults: set[str] = set()
    async with open_store(url) as store:
        ids = set(await store.get_digests(NOTES))
        parts = Counter(tuple(id.split("-")[:2]) for id in ids)
        if any(parts[name, str(number)] < BATCH for name, numbers in acknowledged.items() for number in numbers):
            faults.add("lost")
        if any(count != BATCH for count in parts.values()):
            faults.add("torn")
        if await _is_written_again(store, ids) or await _is_doubled(server, ids):
            faults.add("twice")
        found = await store.find(asking("batch", depth=100_000))
        assert {each.id for each in found.candidates} == ids
        assert await store.get_embedded(NOTES, MODEL.name, sorted(ids)) == ids
        assert all(isinstance(each, Document) for each in await store.get_documents(NOTES, sorted(ids)))
    return faults


async def _is_written_again(store: Store, ids: set[str]) -> bool:
    return any([len(await store.get_revisions(NOTES, id)) > 1 for id in sorted(ids)])


async def _is_doubled(server: Neo4jServer, ids: set[str]) -> bool:
    ((nodes,),) = server.query("MATCH (d:Document) RETURN count(d)")
    return nodes != len(ids)


async def test_a_killed_server_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    assert await kill(tmp_path, 2, "honest", seed=1) == set()


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_server_that_is_killed_many_times_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    for seed in range(3):
        assert await kill(tmp_path, 20, "honest", seed) == set()


async def test_the_proof_catches_writers_that_acknowledge_before_they_commit(tmp_path: Path) -> None:
    assert "lost" in await kill(tmp_path, 2, "early", seed=3)
