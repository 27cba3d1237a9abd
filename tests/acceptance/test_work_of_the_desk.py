"""Learning, the versions of skills and embeddings from the command line: by the desk that runs, else alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import list_desks, run, shake_hands, start
from tests.acceptance.test_desk import HASHING, SERVE, call

PRINTER = "Customer: The label printer jams every morning.\nAgent: Clean the roller with alcohol.\nCustomer: Solved!\n"
LAMP = "Customer: The desk lamp flickers.\nAgent: Screw the bulb in tighter.\nCustomer: Thank you, it works.\n"
HEAVY = {"anyio", "asyncio", "mcp", "numpy", "pydantic", "refdesk.app", "refdesk.settings"}
NAMES = re.compile('"work": "([a-z]+)"')


def read_log(home: Path) -> list[str]:
    """Return what work the desk has done for the command line."""
    return NAMES.findall(next((home / "desk").glob("*.log")).read_text())


def test_the_desk_learns_shows_versions_and_tries_embeddings_again(tmp_path: Path) -> None:
    for name, text in (("printer.txt", PRINTER), ("lamp.txt", LAMP)):
        (tmp_path / name).write_text(text)

    def ask(*arguments: str) -> Any:  # noqa: ANN401 - JSON
        done = run([*arguments, "--json"], tmp_path, **HASHING)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    [alone] = ask("skills", "learn", str(tmp_path / "printer.txt"), "--agent", "ann")["learned"]
    assert list_desks(tmp_path) == []
    with start(SERVE, tmp_path, **HASHING) as server:
        shake_hands(server)
        files = [str(tmp_path / name) for name in ("printer.txt", "lamp.txt")]
        assert len(ask("skills", "learn", *files, "--dry-run")["skills"]) == 1
        printer, lamp = ask("skills", "learn", *files, "--agent", "ann")["learned"]
        assert (printer["skill_id"], printer["created"], lamp["created"]) == (alone["skill_id"], False, True)
        # What it learned is in its own index at once, and on record as its agent's.
        matches = call(server, "search_skills", {"query": "the desk lamp flickers"})["matches"]
        assert matches[0]["skill_id"] == lamp["skill_id"]
        [version] = ask("skills", "history", lamp["skill_id"])["versions"]
        assert (version["version"], version["skill_id"]) == (1, lamp["skill_id"])
        assert ask("skills", "show", lamp["skill_id"])["title"] == version["title"]
        assert "say the same" in run(["skills", "diff", lamp["skill_id"]], tmp_path, **HASHING).stdout
        assert ask("embeddings", "list") == {"failures": []}
        assert ask("embeddings", "retry") == {"retried": 0}
        assert read_log(tmp_path) == ["plan", "learn", "versions", "versions", "versions", "failures", "retry"]
        unknown = run(["skills", "history", alone["skill_id"].replace("0", "1")], tmp_path, **HASHING)
        assert unknown.returncode == 2


@pytest.mark.parametrize(
    "command",
    [
        ["search", "lamp"],
        ["search", "--toolset", "knowledge", "--filter", "tags=lamps", "lamp"],
        ["updates", "list", "--filter", "dateFrom=90d"],
        ["skills", "show", "01a20672-4cb5-7404-bfcb-cdaae2775df6"],
        ["status"],
        [],
    ],
    ids=" ".join,
)
def test_what_a_desk_answers_costs_the_command_next_to_nothing(tmp_path: Path, command: list[str]) -> None:
    with start(SERVE, tmp_path, **HASHING) as server:
        shake_hands(server)
        done = run(command, tmp_path, PYTHONPROFILEIMPORTTIME="1", **HASHING)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time" in line}
    assert "refdesk.cli.through_desk" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_desk_that_lacks_the_toolset_is_not_asked_for_its_work(tmp_path: Path) -> None:
    (tmp_path / "lamp.txt").write_text(LAMP)
    with start([*SERVE, "--toolset", "knowledge"], tmp_path, **HASHING) as server:
        shake_hands(server)
        done = run(["skills", "learn", str(tmp_path / "lamp.txt"), "--json"], tmp_path, **HASHING)
        assert json.loads(done.stdout)["learned"][0]["created"] is True
        assert read_log(tmp_path) == []
