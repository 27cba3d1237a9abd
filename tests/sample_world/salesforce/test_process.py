"""The emulator's process starts as it is told, says where it listens, and ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from sample_world.process import REPOSITORY
from sample_world.salesforce import load_articles
from sample_world.salesforce.process import EmulatorError, running_emulator

BOUND = 120.0
COMMAND = [sys.executable, "-m", "sample_world.salesforce"]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_it_starts_with_the_files_that_it_is_given_and_lives_as_long_as_its_block(tmp_path: Path) -> None:
    articles, faults, key = tmp_path / "articles.json", tmp_path / "faults.json", tmp_path / "key.pem"
    articles.write_text(json.dumps([load_articles()[4].model_dump(mode="json")]))
    faults.write_text('[{"fault": "refuse", "error": "query_timeout", "at": [1]}]')
    key.write_text("no key, but none is needed before an assertion comes")
    async with running_emulator("classic", articles=articles, faults=faults, public_key=key) as emulator:
        assert is_running(emulator.pid)
        assert emulator.private_key == ""
        address = f"{emulator.url}/services/data/v68.0/query"
        options = {"q": "SELECT Title FROM HowTo__kav WHERE PublishStatus = 'Online'"}
        headers = {"Authorization": f"Bearer {emulator.access_token}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False, verify=False) as client:
            assert (await client.get(address, params=options)).json()[0]["errorCode"] == "QUERY_TIMEOUT"
            titles = [row["Title"] for row in (await client.get(address, params=options)).json()["records"]]
        assert titles == ["Restart the hub without losing schedules"]
    assert not is_running(emulator.pid)


async def test_a_process_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match=r"absent\.json"):
        async with running_emulator(articles=tmp_path / "absent.json"):
            pass
    with pytest.raises(EmulatorError, match="something__kav"):
        async with running_emulator(article_object="Knowledge"):
            pass


def test_one_line_of_json_says_all_that_a_client_needs_and_sigterm_ends_it() -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert said.keys() == {
            *("url", "control", "client_id", "client_secret", "username", "private_key", "access_token")
        }
        assert said["private_key"].startswith("-----BEGIN PRIVATE KEY-----")
        assert httpx2.get(f"{said['url']}/services/data", trust_env=False, verify=False).status_code == 200
        process.terminate()
        assert process.wait(BOUND) == -signal.SIGTERM
        assert process.stdout.read() == b""
