"""The real command with `REFDESK_REDIS`: servers, workers and the doctor."""

from __future__ import annotations

import json
import signal
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.acceptance.processes import NOWHERE, Running, run, start
from tests.engines import patient_refdesk, postgres, redis
from tests.engines.redis import until
from tests.engines.servers import find_free_port

pytestmark = pytest.mark.engines

SECRET = "hunter2-0123456789"


@contextmanager
def start_command(
    home: Path, settings: Mapping[str, str], *arguments: str, module: str = "refdesk"
) -> Generator[Running]:
    """Yield the running command; it must end well when it is told to stop."""
    with start(["-m", module, *arguments], home, REFDESK_EMBEDDER="hashing", **settings) as running:
        yield running
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(timeout=120) == 0


@contextmanager
def start_server(home: Path, settings: Mapping[str, str], module: str = "refdesk") -> Generator[str]:
    with start_command(home, settings, "serve", "--no-auth", "--port", "0", module=module) as server:
        yield server.read_log("listening")["url"]


@contextmanager
def start_worker(home: Path, settings: Mapping[str, str]) -> Generator[Running]:
    with start_command(home, settings, "worker") as worker:
        worker.read_log("working")
        yield worker


def store(address: str, title: str) -> str:
    answer = httpx2.post(f"{address}/knowledge", json={"title": title, "body": "Words."}, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


def get_health(address: str) -> tuple[int, str, str]:
    answer = httpx2.get(f"{address}/health", timeout=120)
    return answer.status_code, answer.json()["status"], answer.text


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The settings of a store."""
    return {"REFDESK_STORE": postgres.get_store_url(tmp_path)} if request.param == "postgres" else {}


async def test_servers_and_workers_share_the_work_and_live_through_an_outage(
    tmp_path: Path, place: dict[str, str]
) -> None:
    with redis.running() as server, ExitStack() as stack:
        settings = {**place, "REFDESK_REDIS": server.url}
        one, other = [stack.enter_context(start_server(tmp_path, settings)) for _ in range(2)]
        for _ in range(2):
            stack.enter_context(start_worker(tmp_path, settings))

        async def is_ready(id: str) -> bool:
            return httpx2.get(f"{other}/knowledge/{id}", timeout=120).json()["embeddingStatus"] == "ready"

        async def is_told() -> bool:
            return "Redis is away" in get_health(one)[2]

        async def is_well() -> bool:
            return "Redis" not in get_health(one)[2]

        for id in [store(one, f"Note {n}") for n in range(10)]:
            await until(lambda id=id: is_ready(id))
        assert "bull:embeddings:meta" in server.list_keys()
        await until(is_well)
        server.kill()
        for id in [store(one, "Meanwhile"), store(other, "Meanwhile too")]:
            await until(lambda id=id: is_ready(id))
        await until(is_told)
        assert get_health(one)[0] == 200
        assert str(server.port) not in get_health(one)[2]
        server.start()
        await until(is_well)
        id = store(one, "After that")
        await until(lambda: is_ready(id))


async def test_servers_share_one_rate_and_each_keeps_its_own_while_redis_is_away(tmp_path: Path) -> None:
    with redis.running() as server, ExitStack() as stack:
        settings = {"REFDESK_REDIS": server.url, "REFDESK_AGENT_RATE": "60", "REFDESK_ORG_RATE": "100000"}
        # What each of them counts at Redis must not depend on how quickly that answers.
        module = patient_refdesk.MODULE
        one, other = [stack.enter_context(start_server(tmp_path, settings, module)) for _ in range(2)]
        made = run(["keys", "create", "--agent", "ann", "--scope", "knowledge:read", "--json"], tmp_path, **settings)
        key = {"authorization": f"Bearer {json.loads(made.stdout)['key']}"}

        def ask(address: str) -> httpx2.Response:
            return httpx2.get(f"{address}/openapi.json", headers=key, timeout=120)

        # As the other servers of a large installation would have counted already.
        server.ask("SET", "rate:local:ann", "58", "EX", "3600")
        assert [ask(one).status_code, ask(other).status_code] == [200, 200]
        for address in (one, other):
            refused = ask(address)
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) > 0
        assert server.ask("GET", "rate:local:ann") == "62"
        server.kill()
        # Nobody counts for all of them now: each goes on by what it has counted itself.
        assert [ask(one).status_code, ask(other).status_code] == [200, 200]


@pytest.mark.parametrize("arguments", [["doctor", "--json"], ["worker", "--until-idle"]])
def test_commands_work_while_redis_is_away_and_show_no_secret(tmp_path: Path, arguments: list[str]) -> None:
    url = f"redis://:{SECRET}@127.0.0.1:{find_free_port()}/0"
    done = run(arguments, tmp_path, REFDESK_EMBEDDER="hashing", REFDESK_REDIS=url)
    assert SECRET not in done.stdout + done.stderr
    if arguments[0] == "doctor":
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        assert checks["queue"]["status"] == "warn"
        assert checks["queue"]["found"] == "Redis is away: it cannot be reached."
    assert done.returncode == 0


def test_a_malformed_url_is_told_by_its_name_and_never_shown(tmp_path: Path) -> None:
    done = run(["doctor"], tmp_path, REFDESK_REDIS=f"http://:{SECRET}@x", REFDESK_AZURE_UPDATES_URL=NOWHERE)
    assert done.returncode == 1
    assert "REFDESK_REDIS" in done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr
