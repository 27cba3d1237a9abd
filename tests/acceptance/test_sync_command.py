"""`refdesk sync` beside a server: the server does it, and ends it when the command goes."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from sample_world.azure_updates.process import RunningEmulator, running_emulator
from tests.acceptance.processes import run, start

SYNC = ["sync", "azure-updates"]
SERVE = ["-m", "refdesk", "serve", "--no-auth", "--port", "0"]


@pytest.fixture
async def feed() -> AsyncGenerator[RunningEmulator]:
    async with running_emulator() as emulator:
        yield emulator


async def test_a_server_that_runs_syncs_and_the_command_shows_what_it_did(
    feed: RunningEmulator, tmp_path: Path
) -> None:
    variables = {"REFDESK_EMBEDDER": "hashing", "REFDESK_AZURE_UPDATES_URL": feed.url}

    async def call(*arguments: str) -> str:
        done = await run_sync(lambda: run(arguments, tmp_path, **variables))
        assert done.returncode == 0, done.stderr
        return done.stdout

    with start(SERVE, tmp_path, **variables) as server:
        await run_sync(server.read_log, "synced")
        assert json.loads(await call(*SYNC, "--full", "--json"))["unchanged"] > 0
        assert (await run_sync(server.read_log, "synced"))["written"] == 0, "the server did it"

        await feed.set_faults([{"fault": "hang"}])
        with start(["-m", "refdesk", *SYNC, "--json"], tmp_path, **variables) as waiting:
            while "syncing azure-updates" not in await call("status"):
                assert waiting.process.poll() is None
            assert "is being synced already" in await call(*SYNC)
            waiting.process.send_signal(signal.SIGINT)
            assert (await run_sync(waiting.receive))["error"]["code"] == "ABORTED"
            await run_sync(waiting.close)
        await run_sync(server.read_log, "sync ends early")
        await feed.set_faults([])
        assert "azure-updates is current" in await call(*SYNC)
