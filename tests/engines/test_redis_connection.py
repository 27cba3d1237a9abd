"""Redis comes, goes, refuses and says nothing: it is told in a sentence, and nobody waits for it."""

from __future__ import annotations

import logging
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from redis.exceptions import BusyLoadingError, ResponseError

from refdesk.errors import ConfigurationError, EmbedderError
from refdesk.protocols import EmbeddingJob, JobOutcome
from refdesk.queues.bullmq import Shared, connection, open_shared, working
from refdesk.queues.bullmq.connection import CALL_SECONDS
from tests.engines import redis
from tests.engines.redis import do_nothing, open_patiently, until
from tests.engines.servers import find_free_port

pytestmark = pytest.mark.engines

SECRET = "hunter2-0123456789"
LONGEST_SECONDS = 120.0
"""Far above what anything takes, so that a loaded machine fails no test: it ends a hanging one."""

JOB = EmbeddingJob("acme", "knowledge", "a", "d")


@dataclass
class Wakes:
    """How often somebody was told to look for work by himself."""

    count: int = 0

    def ring(self) -> None:
        self.count += 1


@dataclass
class Worker:
    """Takes jobs; `refusals` says why the next ones are not done."""

    refusals: list[Exception] = field(default_factory=list[Exception])
    done: list[str] = field(default_factory=list[str])

    async def work(self, job: EmbeddingJob) -> JobOutcome:
        if self.refusals:
            raise self.refusals.pop(0)
        self.done.append(job.id)
        return "embedded"

    async def has_done(self, count: int = 1) -> bool:
        return len(self.done) >= count

    @asynccontextmanager
    async def working(self, shared: Shared) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(shared.queue.consume, self.work)
            yield
            group.cancel_scope.cancel()


async def check_away(shared: Shared) -> None:
    """Everything is answered at once, and nothing is kept."""
    assert not shared.queue.is_shared
    assert not await shared.queue.enqueue([JOB])
    pad = shared.scratchpad
    assert (await pad.add("k", "a", 60), await pad.add("k", "b", 60), await pad.count("c", 60)) == (None, None, None)
    await pad.put("k", "c", 60)
    await pad.remove("k")


async def is_up(shared: Shared) -> bool:
    return shared.queue.is_shared


async def is_down(shared: Shared) -> bool:
    return not shared.queue.is_shared


async def test_without_redis_everything_opens_and_answers() -> None:
    wakes = Wakes()
    async with open_patiently(f"redis://:{SECRET}@127.0.0.1:{find_free_port()}/0", wakes.ring) as shared:
        assert shared.queue.trouble == "Redis is away: it cannot be reached."
        await check_away(shared)
        before = wakes.count
        shared.queue.announce([JOB])
        assert wakes.count == before + 1


async def test_redis_goes_and_comes_and_the_worker_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    wakes, worker = Wakes(), Worker()
    with redis.running() as server, caplog.at_level(logging.INFO):
        async with open_shared(server.url, wakes.ring, patience=CALL_SECONDS) as shared, worker.working(shared):
            # On a busy machine Redis may be late, and count as away for a moment, at any time.
            await until(lambda: shared.queue.enqueue([JOB]))
            await until(worker.has_done)
            rung = wakes.count
            server.kill()
            await until(lambda: is_down(shared))
            assert wakes.count > rung
            await check_away(shared)
            rung = wakes.count
            server.start()
            await until(lambda: is_up(shared))
            assert wakes.count > rung
            await until(lambda: shared.queue.enqueue([JOB]))
            await until(lambda: worker.has_done(2))
    messages = [record.message for record in caplog.records if record.name.startswith("refdesk")]
    assert messages == ["queue away", "queue back"] * (len(messages) // 2) != []
    assert wakes.count == len(messages)
    assert str(server.port) not in caplog.text


async def test_a_redis_that_says_nothing_is_away_and_is_asked_no_more() -> None:
    with redis.running() as server:
        async with open_shared(server.url, do_nothing, patience=CALL_SECONDS) as shared:
            server.freeze()
            # Were each of them to wait for an answer, this would take five minutes.
            with anyio.fail_after(120):
                for _ in range(600):
                    await shared.scratchpad.count("k", 60)
            assert shared.queue.trouble is not None
            assert "does not answer in time" in shared.queue.trouble
            await check_away(shared)
            server.thaw()

            async def counts() -> bool:
                return await shared.scratchpad.count("other", 60) is not None

            await until(counts)


async def test_a_redis_that_says_nothing_from_the_start_delays_nobody() -> None:
    with redis.running() as server:
        server.freeze()
        with anyio.fail_after(120):
            async with open_shared(server.url, do_nothing, patience=CALL_SECONDS) as shared:
                await check_away(shared)
        server.thaw()


async def test_a_wrong_password_is_told_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()
    with redis.running("--requirepass", "right") as server, caplog.at_level(logging.DEBUG, logger="refdesk"):
        wrong = f"redis://:{SECRET}@127.0.0.1:{server.port}/0"
        async with open_patiently(wrong) as shared, worker.working(shared):
            assert shared.queue.trouble is not None
            assert "refuses the credentials" in shared.queue.trouble
            assert SECRET not in repr(shared)
            await check_away(shared)
        async with open_patiently(f"redis://:right@127.0.0.1:{server.port}/0") as shared:
            assert await is_up(shared)
    assert "queue away" in caplog.text
    assert SECRET not in caplog.text
    assert "127.0.0.1" not in caplog.text


async def test_a_redis_that_is_full_is_away() -> None:
    with redis.running() as server:
        async with open_patiently(server.url) as shared:
            server.ask("CONFIG", "SET", "maxmemory", "1")
            await until(lambda: is_down(shared))
            assert shared.queue.trouble is not None
            assert "its memory is full" in shared.queue.trouble
            await check_away(shared)
            server.ask("CONFIG", "SET", "maxmemory", "0")
            await until(lambda: is_up(shared))


async def test_a_redis_with_too_many_clients_is_away_and_says_why() -> None:
    with redis.running("--maxclients", "1") as server:
        with socket.create_connection(("127.0.0.1", server.port)):
            async with open_patiently(server.url) as shared:
                assert shared.queue.trouble == "Redis is away: it takes no more clients; raise its maxclients."
                await check_away(shared)
        async with open_patiently(server.url) as shared:
            await until(lambda: is_up(shared))


SCRIPT_OF_6_2 = "Error running script (call to f_d1bfa850232c): @user_script:1: @user_script: 1: "


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ResponseError(f"{SCRIPT_OF_6_2}-OOM command not allowed when used memory > 'maxmemory'."), connection.FULL),
        (ResponseError(f"{SCRIPT_OF_6_2}-READONLY You can't write against a read only replica."), connection.REPLICA),
        (
            ResponseError(f"{SCRIPT_OF_6_2}-NOREPLICAS Not enough good replicas."),
            "it answers with the error NOREPLICAS",
        ),
        (
            ResponseError(f"{SCRIPT_OF_6_2}The user executing the script can't run this command or subcommand"),
            "it refuses the credentials or lacks a permission",
        ),
        (BusyLoadingError("Redis is loading the dataset in memory"), "it is still reading its data after a start"),
    ],
)
def test_older_servers_and_those_that_start_say_why_in_other_words(error: Exception, reason: str) -> None:
    assert connection.explain(error) == f"Redis is away: {reason}."


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("ACL SETUSER default -@scripting", "it refuses the credentials or lacks a permission"),
        ("ACL SETUSER default -@stream", "it refuses the credentials or lacks a permission"),
        ("ACL SETUSER default resetkeys ~refdesk:* ~idem:*", "it refuses the credentials or lacks a permission"),
        (
            "REPLICAOF 127.0.0.1 1",
            "it is a replica, which takes no writes; REFDESK_REDIS must name the primary",
        ),
        ("CONFIG SET min-replicas-to-write 1", "it answers with the error NOREPLICAS"),
    ],
)
async def test_a_redis_that_takes_no_jobs_is_away_and_says_why(command: str, reason: str) -> None:
    with redis.running() as server:
        server.ask(*command.split())
        async with open_patiently(server.url) as shared:
            assert shared.queue.trouble == f"Redis is away: {reason}."
            await check_away(shared)


async def test_a_user_who_may_do_what_the_reference_says_can_use_the_queue() -> None:
    keys = ["~bull:embeddings:*", "~idem:*", "~rate:*", "~refused:*", "~refdesk:probe"]
    worker = Worker()
    with redis.running() as server:
        server.ask("ACL", "SETUSER", "desk", "on", ">pw", *keys, "+@all", "-@admin", "-@dangerous")
        url = f"redis://desk:pw@127.0.0.1:{server.port}/0"
        async with open_patiently(url) as shared, worker.working(shared):
            assert await shared.queue.enqueue([JOB])
            await until(worker.has_done)
            assert await shared.queue.forget(lambda _: True)
            assert await shared.scratchpad.count("rate:acme:ann", 60) == 1


async def test_a_user_who_may_not_name_connections_works_on_the_queue_too() -> None:
    worker = Worker()
    with redis.running() as server:
        server.ask("ACL", "SETUSER", "default", "-client")
        async with open_patiently(server.url) as shared, worker.working(shared):
            assert await shared.queue.enqueue([JOB])
            await until(worker.has_done)


async def test_a_database_that_there_is_not_is_told() -> None:
    server = redis.get_fresh_server()
    async with open_patiently(f"redis://127.0.0.1:{server.port}/99") as shared:
        assert shared.queue.trouble == "Redis is away: it has no database of that number."


@pytest.mark.parametrize(
    "url",
    [
        *(f"http://:{SECRET}@h", "h:6379", f"redis://:{SECRET}@h:port/0", "unix:///x", ""),
        *(f"redis://:{SECRET}@h/{rest}" for rest in ("prod", "-1", "0/1", "0#1", "0?no_option=1", "0?retry=3")),
    ],
)
async def test_what_is_no_url_of_redis_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match="REFDESK_REDIS") as raised:
        async with open_patiently(url):
            pass
    assert SECRET not in str(raised.value)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Return a certificate for this machine that nobody else vouches for, and its key."""
    certificate, key = folder / "server.crt", folder / "server.key"
    what = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *what, *names], check=True, capture_output=True)
    return certificate, key


async def test_tls_is_spoken_and_the_certificate_is_checked(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    port = str(find_free_port())
    files = ["--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-auth-clients", "no"]
    with redis.running("--tls-port", port, *files):
        async with open_patiently(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}") as shared:
            assert shared.queue.trouble is None
            assert await shared.scratchpad.count("k", 60) == 1
        async with open_patiently(f"rediss://127.0.0.1:{port}/0") as shared:
            assert shared.queue.trouble is not None
            assert "its certificate is not trusted" in shared.queue.trouble
            await check_away(shared)
        async with open_patiently(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={tmp_path}/none") as shared:
            assert shared.queue.trouble == "Redis is away: a file that REFDESK_REDIS names does not exist."


async def test_a_job_that_could_not_be_done_is_tried_again_and_leaves_nothing_behind() -> None:
    server = redis.get_fresh_server()
    worker = Worker([EmbedderError("the model is down"), ZeroDivisionError("a bug")])
    async with open_patiently(server.url) as shared, worker.working(shared):
        assert await shared.queue.enqueue([JOB])
        await until(worker.has_done)

        async def is_empty() -> bool:
            return {key for key in server.list_keys() if key.startswith("bull:")} <= {
                *("bull:embeddings:id", "bull:embeddings:meta", "bull:embeddings:events"),
                *("bull:embeddings:stalled-check", "bull:embeddings:marker"),
            }

        await until(is_empty)


async def test_workers_share_the_jobs_and_each_is_done_by_one_of_them() -> None:
    server, workers = redis.get_fresh_server(), [Worker() for _ in range(3)]
    jobs = [EmbeddingJob("acme", "knowledge", str(n)) for n in range(300)]
    async with open_patiently(server.url) as shared, AsyncExitStack() as stack:
        for worker in workers:
            await stack.enter_async_context(worker.working(shared))
        assert await shared.queue.enqueue(jobs)

        async def are_all_done() -> bool:
            return sum(len(worker.done) for worker in workers) >= len(jobs)

        await until(are_all_done)
    assert sorted(id for worker in workers for id in worker.done) == sorted(job.id for job in jobs)
    assert all(worker.done for worker in workers)


async def test_what_was_announced_just_before_the_end_is_sent() -> None:
    server, worker = redis.get_fresh_server(), Worker()
    async with open_patiently(server.url) as shared:
        shared.queue.announce([JOB])
    async with open_patiently(server.url) as shared, worker.working(shared):
        await until(worker.has_done)


async def test_a_worker_that_is_told_to_end_does_not_wait_for_a_redis_that_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(working, "DRAIN_SECONDS", 3600.0)
    monkeypatch.setattr(working, "ANSWER_SECONDS", 3600.0)
    is_at_work, may_end = anyio.Event(), anyio.Event()
    done = list[str]()

    async def work(job: EmbeddingJob) -> JobOutcome:
        is_at_work.set()
        await may_end.wait()
        done.append(job.id)
        return "embedded"

    with redis.running() as server, anyio.fail_after(LONGEST_SECONDS):
        async with (
            open_shared(server.url, do_nothing, patience=CALL_SECONDS) as shared,
            anyio.create_task_group() as group,
        ):
            group.start_soon(shared.queue.consume, work)
            # On a busy machine its answer may come too late; a job that waits or is worked on is not added again.
            await until(lambda: shared.queue.enqueue([JOB]))
            await is_at_work.wait()
            server.freeze()
            may_end.set()
            await until(lambda: has_entries(done))
            group.cancel_scope.cancel()
        # It is still there for the next worker, since it could not be ended.
        server.thaw()
        worker = Worker()
        async with open_patiently(server.url) as shared, worker.working(shared):
            await until(worker.has_done)
        assert worker.done == done


async def has_entries(entries: list[str]) -> bool:
    return bool(entries)
