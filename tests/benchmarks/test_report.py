"""What benchmarks print is kept part by part, each with its own run, and says nothing of the machine's folders."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import report, results


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (report, results):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    return tmp_path


def test_a_part_that_was_not_run_stays_as_it_was(folder: Path) -> None:
    report.keep("speed", "writes", {"status": 1, "seconds": 3, "output": ["one writer: 3.6"]})
    before = json.loads((folder / "speed.json").read_text())["commands"]["writes"]
    report.keep("speed", "rest", {"status": 0, "seconds": 4, "output": ["REST: 2.3"]})
    after = json.loads((folder / "speed.json").read_text())
    assert list(after["commands"]) == ["writes", "rest"]
    assert after["commands"]["writes"] == before
    page = (folder / "speed.md").read_text()
    assert page == report.render("speed", after)
    assert "one writer: 3.6" in page
    assert "Over one of their limits: [writes](#writes)." in page


def test_what_is_kept_names_no_folder_of_the_machine(folder: Path) -> None:
    assert report.hide(f"no records in {results.REPOSITORY}/data") == "no records in …/data"


def test_commands_are_known() -> None:
    for commands in report.COMMANDS.values():
        for command in commands:
            assert find_spec(f"benchmarks.{command}") is not None
