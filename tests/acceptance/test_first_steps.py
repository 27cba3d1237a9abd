"""The tutorial, followed to the letter: each command of its page does what the page says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import httpx2
from anyio.to_thread import run_sync

from sample_world.azure_updates.process import running_emulator
from tests.acceptance.processes import run, start
from tests.conftest import REPOSITORY
from tests.meta.test_docs import list_commands, read_snippets

PAGE = REPOSITORY / "docs" / "tutorial" / "first-steps.md"
ADDRESS = "http://127.0.0.1:8350"
OF_THE_SHELL = {"make demo", "make serve", "source .venv/bin/activate"}
"""The tour has a test of its own; a server is started below, beside which the others run."""

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def list_steps() -> list[str]:
    return [command for snippet in read_snippets(PAGE) for command in list_commands(snippet)]


async def ask_by_curl(words: list[str]) -> str:
    """Return what `curl -s ADDRESS -H HEADER -d BODY` would print."""
    assert words[:2] == ["curl", "-s"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    name, _, value = options["-H"].partition(": ")
    async with httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(words[2], content=options["-d"], headers={name: value})
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_each_command_of_the_tutorial_does_what_the_page_says(tmp_path: Path) -> None:
    steps = list_steps()
    assert set(steps) >= OF_THE_SHELL
    said: dict[str, str] = {}
    async with running_emulator() as feed:
        variables = {"REFDESK_EMBEDDER": "hashing", "REFDESK_AZURE_UPDATES_URL": feed.url, "HOME": str(tmp_path)}
        with start(["-m", "refdesk", "serve", "--no-auth", "--port", "0"], tmp_path, **variables) as server:
            url = server.read_log("listening")["url"]
            await run_sync(server.read_log, "synced")
            for step in steps:
                if step in OF_THE_SHELL:
                    continue
                words = shlex.split(step.replace(ADDRESS, url))
                if words[0] == "curl":
                    said[step] = await ask_by_curl(words)
                    continue
                if words[1:3] == ["skills", "show"]:
                    words[3] = ID.findall(said["refdesk skills search 'my radiator valve makes noise all night'"])[0]
                asked = words[1:] + (["--dry-run"] if words[1] == "connect" else [])
                done = await run_sync(lambda asked=asked: run(asked, tmp_path, **variables))
                assert done.returncode == 0, f"{step}: {done.stdout}{done.stderr}"
                said[step] = done.stdout + done.stderr
    shown = {step.removeprefix("refdesk "): text for step, text in said.items()}
    assert all("  1  " in text for step, text in shown.items() if step.startswith("search"))
    assert len(json.loads(next(text for step, text in shown.items() if step.startswith("curl")))["results"]) == 3
    assert '"--stdio"' in shown["connect claude-code"]
    assert "20 learned, 0 known, 0 failed." in shown["skills learn sample_world/conversations"]
    assert "Radiator valve" in shown["skills show ID"]
    assert "ok    azure-updates" in shown["doctor"]
