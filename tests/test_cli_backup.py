"""`refdesk backup` and `refdesk restore`, as whoever runs the desk uses them, with skills in a file of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_cli import refdesk
from tests.test_cli_erase import ask, store


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_what_was_backed_up_comes_back_without_what_was_erased_since(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFDESK_SKILLS_STORE", f"sqlite:///{home / 'skills.sqlite3'}")
    kept, gone = store(home, "kept"), store(home, "gone")
    talk = tmp_path / "talk.txt"
    talk.write_text(
        "Customer: My invoice shows the wrong address.\n"
        "Agent: Open Billing, choose Profile, and correct the address.\n"
        "Customer: That worked, thank you.\n"
    )
    assert refdesk(home, ["skills", "learn", str(talk)]).exit_code == 0
    target = tmp_path / "backup.sqlite3"
    assert ask(home, "backup", str(target))["documents"] == 3
    refused = refdesk(home, ["backup", str(target)])
    assert refused.exit_code == 2
    assert "--force" in refused.output
    ask(home, "erase", "--entry", gone, "--yes")
    later = store(home, "later")
    restored = refdesk(home, ["restore", str(target)])
    assert restored.exit_code == 0, restored.output
    assert "erased again: 1" in restored.output
    assert "Restored 1 document of skills" in restored.output
    assert ask(home, "knowledge", "get", kept)["body"] == "kept"
    assert "was erased" in refdesk(home, ["knowledge", "get", gone]).output
    assert refdesk(home, ["knowledge", "get", later]).exit_code == 2
    assert refdesk(home, ["audit", "verify"]).exit_code == 0
    assert "restore" in refdesk(home, ["audit", "show", "--org", "*"]).output
    checks = {check["name"]: check for check in json.loads(refdesk(home, ["doctor", "--json"]).stdout)["checks"]}
    assert checks["backups"]["status"] == "ok"


def test_what_it_is_asked_for_is_refused_in_words(home: Path, tmp_path: Path) -> None:
    assert "nothing to back up" in refdesk(home, ["backup", str(tmp_path / "b")]).output
    assert not home.exists() or not list(home.iterdir())
    assert "no such file" in refdesk(home, ["restore", str(tmp_path / "b")]).output
    for command in ("backup", "restore"):
        result = refdesk(home, [command, str(tmp_path / "b")], REFDESK_STORE="postgresql://desk@db/desk")
        assert result.exit_code == 1
        assert "back-up.md" in result.output


def test_damage_is_named_an_export_fails_and_doing_what_is_said_mends_it(home: Path, tmp_path: Path) -> None:
    id, file, export = store(home, "kept"), home / "refdesk.sqlite3", tmp_path / "export.jsonl"
    target = tmp_path / "backup.sqlite3"
    ask(home, "backup", str(target))
    well = refdesk(home, ["doctor", "--deep"])
    assert well.exit_code == 0, well.output
    assert "rows and the audit log are as they were written" in well.output
    file.write_bytes(file.read_bytes().replace(b"About kept", b"About kepu"))
    for deep in (refdesk(home, ["doctor", "--deep"]), refdesk(home, ["doctor", "--deep", "--json"])):
        assert deep.exit_code == 1
        assert f"knowledge {id} of local is not as it was written" in deep.output
        assert "refdesk restore FILE" in deep.output
    refused = refdesk(home, ["export", "knowledge", "--output", str(export)])
    assert refused.exit_code == 1
    assert "would not be whole" in refused.output
    assert not export.exists()
    assert list(tmp_path.glob("*.partial")) == []
    restored = json.loads(refdesk(home, ["restore", str(target), "--json"]).stdout)["restored"]
    assert [each["toolset"] for each in restored] == [None]
    assert refdesk(home, ["doctor", "--deep"]).exit_code == 0
    assert ask(home, "knowledge", "get", id)["body"] == "kept"
    assert refdesk(home, ["export", "knowledge", "--output", str(export)]).exit_code == 0
