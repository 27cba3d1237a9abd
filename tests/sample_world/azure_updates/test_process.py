"""The emulator's process starts, says where it listens, and ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest

from sample_world.azure_updates.process import REPOSITORY, EmulatorError, running_emulator

BOUND = 120.0
COMMAND = [sys.executable, "-m", "sample_world.azure_updates"]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_the_process_lives_as_long_as_its_block() -> None:
    async with running_emulator() as emulator:
        assert is_running(emulator.pid)
        assert emulator.pid != os.getpid()
    assert not is_running(emulator.pid)


async def fail_in_block(pids: list[int]) -> None:
    async with running_emulator() as emulator:
        pids.append(emulator.pid)
        raise RuntimeError("in the block")


async def test_the_process_ends_when_its_block_fails() -> None:
    pids: list[int] = []
    with pytest.raises(RuntimeError, match="in the block"):
        await fail_in_block(pids)
    assert [is_running(pid) for pid in pids] == [False]


async def test_the_process_ends_when_its_block_is_cancelled_while_a_request_hangs() -> None:
    pid = 0
    async with anyio.create_task_group() as group, running_emulator() as emulator:
        pid = emulator.pid
        await emulator.set_faults([{"fault": "hang"}])
        async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
            with anyio.move_on_after(0.3):
                await client.get(emulator.url)
            group.cancel_scope.cancel()
    assert not is_running(pid)


async def test_it_starts_with_the_records_and_faults_of_files(tmp_path: Path) -> None:
    records, faults = tmp_path / "records.json", tmp_path / "faults.json"
    records.write_text('[{"id": "1", "title": "Only"}]')
    faults.write_text('[{"fault": "status", "status": 500, "at": [1]}]')
    async with (
        running_emulator(records=records, faults=faults) as emulator,
        httpx2.AsyncClient(trust_env=False, verify=False) as client,
    ):
        assert (await client.get(emulator.url)).status_code == 500
        assert (await client.get(emulator.url)).json()["value"] == [{"id": "1", "title": "Only"}]


async def test_a_process_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match=r"absent\.json"):
        async with running_emulator(records=tmp_path / "absent.json"):
            pass


@pytest.mark.parametrize("day", [1, 2])
def test_one_line_of_json_says_where_it_listens_and_sigterm_ends_it(day: int) -> None:
    command = [*COMMAND, "--port", "0", "--day", str(day)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        addresses = json.loads(process.stdout.readline())
        assert addresses["url"].endswith("/releasecommunications/api/v2/azure")
        assert httpx2.get(f"{addresses['control']}/requests", trust_env=False, verify=False).json() == []
        process.terminate()
        assert process.wait(BOUND) == -signal.SIGTERM
        assert process.stdout.read() == b""


def test_sigterm_ends_it_while_a_request_hangs(tmp_path: Path) -> None:
    faults = tmp_path / "faults.json"
    faults.write_text('[{"fault": "hang"}]')
    command = [*COMMAND, "--faults", str(faults)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        address = urlsplit(str(json.loads(process.stdout.readline())["url"]))
        with socket.create_connection((address.hostname, address.port), BOUND) as connection:
            connection.sendall(f"GET {address.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            control = f"http://{address.netloc}/_emulator/requests"
            while not httpx2.get(control, trust_env=False, verify=False).json():
                pass
            process.terminate()
            assert process.wait(BOUND) == -signal.SIGTERM


def test_it_ends_when_its_input_is_closed() -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdin.close()
        assert process.wait(BOUND) == 0
