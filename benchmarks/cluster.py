"""A cluster of three nodes beside one server, in turns: the same questions, the same answers, and how long they take.

    python -m benchmarks.cluster [--notes 10000] [--json]

Both are real PostgreSQL servers that the benchmark starts; the cluster is Citus, as `tests/engines/citus.py` has it.
The same invented notes and vectors are loaded into both, as one org, which is moved to a worker where the coordinator
has it: so each search goes by way of the coordinator. Asked is what `search_knowledge` asks the store; the better of
two turns counts. Answers are compared as sets of ten.

Exit status 1 when a search takes more than `MOST` times as long, or fewer than `LEAST` of the first ten are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import anyio

from benchmarks.invented import TOP, Corpus, Question, invent
from benchmarks.postgres import ORG, load, search
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from tests.engines import citus, postgres
from tests.engines.citus import CitusCluster

MOST, LEAST = 1.5, 0.95
SCHEMA = "benchmark"
_MOVE = """
    SELECT citus_move_shard_placement(
        get_shard_id_for_distribution_column('documents', %s), '127.0.0.1', %s, '127.0.0.1', %s, 'block_writes'
    )
"""


@dataclass(frozen=True, slots=True)
class Compared:
    """Milliseconds of one kind of question, of the cluster and of one server, and the part that both answer."""

    name: str
    cluster: Sequence[float]
    single: Sequence[float]
    same: float

    @property
    def ratio(self) -> float:
        """How many times the median of one server the cluster's is."""
        return median(self.cluster) / median(self.single)


def place_on_worker(cluster: CitusCluster) -> None:
    """Have a worker hold the org."""
    coordinator, worker = cluster.coordinator, cluster.workers[0]
    if cluster.find_worker(SCHEMA, ORG) is coordinator:
        with coordinator.connect(SCHEMA) as connection:
            connection.execute(_MOVE.encode(), [ORG, coordinator.port, worker.port])


async def compare(cluster: Store, single: Store, name: str, questions: Sequence[Question]) -> Compared:
    """Ask both each question in turn."""
    theirs, ours, shared = list[float](), list[float](), 0
    for question in questions:
        times, answers = (list[float](), list[float]()), list[list[str]]()
        for _ in range(2):
            answers = list[list[str]]()
            for store, spent in zip((cluster, single), times, strict=True):
                start = perf_counter()
                answers.append(await search(store, question))
                spent.append((perf_counter() - start) * 1000)
        theirs.append(min(times[0]))
        ours.append(min(times[1]))
        shared += len(set(answers[0]) & set(answers[1]))
    return Compared(name, theirs, ours, shared / (TOP * len(questions)))


async def run(cluster_url: str, single_url: str, cluster: CitusCluster, corpus: Corpus) -> list[Compared]:
    """Load both and return what was measured."""
    async with open_store(cluster_url) as spread, open_store(single_url) as single:
        place_on_worker(cluster)
        for name, store in (("one server", single), ("cluster", spread)):
            print(f"{name}: {len(corpus.texts)} notes loaded, {await load(store, corpus):.0f} a second")
        return [await compare(spread, single, name, questions) for name, questions in corpus.questions.items()]


def main() -> None:
    """Measure, print, and fail when a figure is beyond its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("REFDESK_TEST_ENGINES", "citus")
    with citus.running(fsync=True) as cluster, postgres.running(fsync=True) as server:
        cluster.coordinator.create_schema(SCHEMA)
        server.create_schema(SCHEMA)
        urls = (cluster.coordinator.get_url(SCHEMA), server.get_url(SCHEMA))
        every = anyio.run(run, *urls, cluster, invent(options.notes))
    for each in every:
        print(
            f"search {each.name:10} p50 {median(each.cluster):7.2f} ms, one server {median(each.single):7.2f}; "
            f"{each.ratio:5.2f} of it; {each.same:.3f} of the first ten the same"
        )
    if options.json:
        print(json.dumps({each.name: {"ratio": each.ratio, "same": each.same} for each in every}))
    sys.exit(any(each.ratio > MOST or each.same < LEAST for each in every))


if __name__ == "__main__":
    main()
