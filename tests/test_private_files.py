"""Whatever refdesk makes in its data folder is readable by its owner only, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.test_cli import refdesk
from tests.test_cli_erase import ask, store


@pytest.fixture(autouse=True)
def open_umask() -> Generator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def list_shared(folder: Path) -> list[str]:
    """Return what others may use in any way, of a folder and all that is in it."""
    every = [folder, *folder.rglob("*")]
    return [str(each) for each in every if not each.is_socket() and stat.S_IMODE(each.stat().st_mode) & 0o077]


def test_no_command_leaves_a_file_for_others(tmp_path: Path) -> None:
    home, target = tmp_path / "home", tmp_path / "home" / "backup"
    gone, url = store(home, "gone"), f"sqlite:///{home / 'other' / 'other.sqlite3'}"
    commands: list[list[str]] = [
        ["doctor"],
        ["search", "gone"],
        ["keys", "create", "--agent", "bot", "--scope", "knowledge:read"],
        ["backup", str(target)],
        ["erase", "--entry", gone, "--yes"],
        ["restore", str(target)],
        ["restore", "--as-is", str(home / "refdesk.sqlite3")],
        ["migrate", "--from", f"sqlite:///{home / 'refdesk.sqlite3'}", "--to", url],
        ["audit", "verify"],
        ["doctor", "--deep"],
    ]
    assert list_shared(home) == []
    for command in commands:
        done = refdesk(home, command)
        assert done.exit_code == 0, done.output
        assert list_shared(home) == [], command
    # A backup that others were let read becomes no store that they can.
    target.chmod(0o644)
    ask(home, "restore", str(target))
    target.unlink()
    assert list_shared(home) == []


def test_doctor_makes_a_data_folder_that_is_its_owners(tmp_path: Path) -> None:
    refdesk(tmp_path / "home", ["doctor"])
    assert list_shared(tmp_path / "home") == []
