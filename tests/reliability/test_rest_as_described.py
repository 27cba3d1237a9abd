"""REST does what its OpenAPI document says, by schemathesis: all of its phases and checks, on the real command.

A fault shows as a status, a type, a body or a header that the document does not have; as data taken that it forbids or
refused that it allows; as a method or a caller let in that it does not name; or as an entry in the log.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest

from refdesk.core.key_files import write_line
from refdesk.core.keys import hash_secret, make_key
from refdesk.discovery import list_scopes
from sample_world.azure_updates.process import running_emulator as running_feed
from sample_world.salesforce.process import running_emulator as running_help_desk
from tests.acceptance.processes import run, start, watching
from tests.conftest import REPOSITORY
from tests.reliability.test_fuzzing import PLAIN, UNLIMITED, Watched

SOAK = os.environ.get("REFDESK_SOAK") == "1"
SEED = "11"
EXAMPLES = os.environ.get("REFDESK_EXAMPLES", "100") if SOAK else "1"
PHASES = "examples,coverage,fuzzing,stateful"
CONFIGURATION = REPOSITORY / "tests" / "reliability" / "schemathesis.toml"
CHECKER = Path(sys.executable).with_name("schemathesis")
CONVERSATION = "Customer: The valve makes noise all night.\nAgent: Please update its firmware.\nCustomer: Silent now!"
SLICE = ("search_knowledge", "get_knowledge", "supersede_knowledge", "metrics")
BROKEN = ("supersede_knowledge", "get_knowledge")
BUGGY = """
import runpy
from refdesk.server import answers
from refdesk.toolsets.knowledge.models import KnowledgeEntry, SupersedeOutput
to_json = answers.to_json
def to_json_badly(answer, **options):
    if isinstance(answer, KnowledgeEntry):
        raise ZeroDivisionError
    value = to_json(answer, **options)
    return {**value, "headId": 5} if isinstance(answer, SupersedeOutput) else value
answers.to_json = to_json_badly
runpy.run_module("refdesk", run_name="__main__", alter_sys=True)
"""


def write_keys(path: Path, *scopes: Sequence[str]) -> list[str]:
    """Write a file of keys, one for each set of scopes, and return their secrets."""
    made = [make_key("acme", f"agent-{number}", each, datetime.now(UTC)) for number, each in enumerate(scopes)]
    path.write_text("".join(write_line(hash_secret(secret), key) + "\n" for key, secret in made))
    return [secret for _, secret in made]


@contextmanager
def serve(home: Path, python: Sequence[str], **settings: str) -> Generator[Watched]:
    """Yield a server; what is wrong in its log is noted."""
    with start([*python, "serve", "--port", "0"], home, **UNLIMITED, **settings) as running:
        watched = Watched(running, running.read_log("listening")["url"])
        with watching(running, watched.watch):
            yield watched


async def settle(url: str, key: str) -> dict[str, Any]:
    """Store something of each kind, and return for each operation what valid calls of it name."""
    async with httpx2.AsyncClient(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60) as client:
        notes = [
            (await client.post("/knowledge", json={"title": f"Refund limit {number}", "body": "500 EUR."})).json()["id"]
            for number in range(5)
        ]
        skill = (await client.post("/create", json={"conversation": CONVERSATION})).json().get("skill_id")
    return {
        "supersede_knowledge": {"path": {"oldId": notes[0]}, "body": {"newId": notes[1]}},
        "get_knowledge": {"path": {"id": notes[2]}},
        "withdraw_knowledge": {"path": {"id": notes[3]}},
        "restore_knowledge": {"path": {"id": notes[3]}},
        "edit_knowledge": {"path": {"id": notes[2]}},
        "erase": {"instead": {"entry": notes[4]}},
        "get_skill": {"path": {"skill_id": skill}},
        "update_skill": {"body": {"skill_id": skill}},
        "report_outcome": {"body": {"skill_id": skill}},
        "withdraw_outcome": {"body": {"skill_id": skill}},
        "get_article_by_id": {"path": {"article_id": "ka0000000000001AAA"}},
    }


def check(folder: Path, url: str, key: str, known: Mapping[str, Any], operations: Sequence[str]) -> str:
    """Return what schemathesis reports, which keeps notes in the folder; empty when it finds nothing."""
    options = {
        "--phases": "examples,coverage,fuzzing,stateful",
        "--checks": "all",
        "--exclude-checks": "positive_data_acceptance",  # `rest_checks` has one that knows the reasons
        "--max-examples": EXAMPLES,
        "--seed": SEED,
        "--generation-database": "none",
        "--request-timeout": "120",
        "--suppress-health-check": "all",  # they measure the machine
        "--warnings": "off",
        "--header": f"Authorization: Bearer {key}",
    }
    command = [str(CHECKER), "--no-color", "--config-file", str(CONFIGURATION), "run", f"{url}/openapi.json"]
    command += ["--no-shrink", "--continue-on-failure"]
    command += [part for option in options.items() for part in option]
    command += [part for name in operations for part in ("--include-operation-id", name)]
    environment = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "tests.reliability.rest_checks",
        "PYTHONPATH": str(REPOSITORY),
        "REFDESK_KNOWN": json.dumps(known),
    }
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@asynccontextmanager
async def whole_world() -> AsyncGenerator[dict[str, str]]:
    """Yield settings for all toolsets, each with something to answer from."""
    async with running_feed() as feed, running_help_desk() as help_desk:
        yield {
            "REFDESK_AZURE_UPDATES_URL": feed.url,
            **help_desk.settings,
        }


async def find_faults(
    home: Path, python: Sequence[str], settings: Mapping[str, str], operations: Sequence[str] = ()
) -> list[str]:
    """Return what is wrong with these operations, or with all, for a caller of all rights and for one of few."""
    full, narrow = write_keys(home / "keys", sorted(list_scopes()), ["updates:read"])
    with serve(home, python, **settings, REFDESK_KEYS_FILE=str(home / "keys")) as watched:
        known = await settle(watched.url, full)
        for key in (full, narrow) if not operations else (full,):
            report = await anyio.to_thread.run_sync(check, home, watched.url, key, known, operations)
            watched.faults += [report] if report else []
    return watched.faults


def tell(faults: Sequence[str]) -> None:
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


@pytest.mark.timeout(600)
async def test_rest_does_what_its_description_says(tmp_path: Path) -> None:
    tell(await find_faults(tmp_path, PLAIN, {}, SLICE))


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="long; make soak runs it")
async def test_every_toolset_does_what_its_description_says(tmp_path: Path) -> None:
    async with whole_world() as settings:
        await anyio.to_thread.run_sync(lambda: run(["sync", "azure-updates"], tmp_path, **UNLIMITED, **settings))
        tell(await find_faults(tmp_path, PLAIN, settings))


@pytest.mark.timeout(600)
async def test_planted_bugs_are_found(tmp_path: Path) -> None:
    report = "\n".join(await find_faults(tmp_path, ("-c", BUGGY), {}, BROKEN))
    assert "[500] Internal Server Error" in report
    assert "GET /knowledge/{id}" in report
    assert re.search(r"POST /knowledge/{oldId}/supersede.*5 is not of type", report, re.DOTALL), report
