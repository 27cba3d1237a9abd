"""Signals end commands and servers in good order, and the commands say what that may have left."""

from __future__ import annotations

import signal
import socket
from collections.abc import Generator
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from tests.acceptance.processes import WAIT_SECONDS, start

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def silence() -> Generator[socket.socket]:
    """Yield a listener that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_SECONDS)
        yield listener


@pytest.mark.parametrize("number", ENDING)
async def test_a_command_that_is_interrupted_says_what_to_do_and_ends_by_the_signal(
    silence: socket.socket, tmp_path: Path, number: signal.Signals
) -> None:
    url = f"http://127.0.0.1:{silence.getsockname()[1]}/"
    sync = ["-m", "refdesk", "sync", "azure-updates", "--json"]
    with start(sync, tmp_path, REFDESK_EMBEDDER="hashing", REFDESK_AZURE_UPDATES_URL=url) as waiting:
        connection, _ = await run_sync(silence.accept)
        for _ in range(2):  # whoever is impatient sends it again
            waiting.process.send_signal(number)
        assert (await run_sync(waiting.receive))["error"]["code"] == "ABORTED"
        status, _, said = await run_sync(waiting.close)
        connection.close()
    assert status == -number
    assert said.strip().startswith(f"Interrupted by {number.name}: ")
    assert "Traceback" not in said


@pytest.mark.parametrize("number", ENDING)
def test_a_server_ends_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    serve = ["-m", "refdesk", "serve", "--port", "0", "--no-auth", "--toolset", "knowledge"]
    with start(serve, tmp_path, REFDESK_EMBEDDER="hashing") as server:
        server.read_log("listening")
        server.process.send_signal(number)
        assert server.process.wait(timeout=WAIT_SECONDS) == 0


@pytest.mark.parametrize("number", ENDING)
def test_a_worker_ends_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    with start(["-m", "refdesk", "worker", "--toolset", "knowledge"], tmp_path, REFDESK_EMBEDDER="hashing") as worker:
        worker.read_log("working")
        worker.process.send_signal(number)
        assert worker.process.wait(timeout=WAIT_SECONDS) == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell what a process ignores")
def test_what_runs_under_nohup_does_not_hear_that_its_terminal_was_closed(tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); from refdesk.__main__ import main; main()"
    serve = ["-c", deaf, "serve", "--port", "0", "--no-auth", "--toolset", "knowledge"]
    with start(serve, tmp_path, REFDESK_EMBEDDER="hashing") as server:
        server.read_log("listening")
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        ignored = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn:"))
        assert ignored & (1 << (signal.SIGHUP - 1))
