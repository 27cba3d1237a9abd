"""Orgs share the workers: however much one of them writes, the others' notes do not wait for all of it."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

from refdesk.protocols import EmbeddingJob, JobOutcome
from tests.engines import redis
from tests.engines.redis import open_patiently, until

pytestmark = pytest.mark.engines

MANY = 1000
CHART = Path(__file__).parents[2] / "deploy/helm/refdesk/templates/worker.yaml"


async def test_an_org_with_a_thousand_jobs_does_not_hold_up_another() -> None:
    server = redis.get_fresh_server()
    done: list[str] = []

    async def work(job: EmbeddingJob) -> JobOutcome:
        done.append(job.org)
        return "embedded"

    async def are_all_done() -> bool:
        return len(done) > MANY

    async with open_patiently(server.url) as shared, anyio.create_task_group() as group:
        assert await shared.queue.enqueue([EmbeddingJob("large", "knowledge", str(n)) for n in range(MANY)])
        assert await shared.queue.enqueue([EmbeddingJob("small", "knowledge", "one")])
        group.start_soon(shared.queue.consume, work)
        await until(are_all_done)
        group.cancel_scope.cancel()
    # More come first only on a machine so slow that counting begins anew while jobs are added.
    assert done.index("small") < MANY // 2


async def test_what_scales_the_workers_counts_every_job_that_waits() -> None:
    server = redis.get_fresh_server()
    async with open_patiently(server.url) as shared:
        assert await shared.queue.enqueue([EmbeddingJob("large", "knowledge", str(n)) for n in range(MANY)])
    [named] = re.findall(r"range \$jobs := list (.*) }}", CHART.read_text())
    keys = [f"bull:embeddings:{each}" for each in re.findall(r'"(\w+)"', named)]
    count = {"list": "LLEN", "zset": "ZCARD"}  # as KEDA does
    assert sum(int(str(server.ask(count[str(server.ask("TYPE", key))], key))) for key in keys) == MANY
