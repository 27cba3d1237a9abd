"""A key is printed once: one that could not be printed opens nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import WAIT_SECONDS, make_environment, run
from tests.conftest import REPOSITORY

CREATE = ("keys", "create", "--org", "acme", "--agent", "bot", "--scope", "knowledge:read")
FULL = Path("/dev/full")


def run_with_output(redirect: str, arguments: Sequence[str], home: Path) -> tuple[int, str]:
    """Run `refdesk` with its output redirected by a shell; return its exit status and what it said of errors."""
    command = ["sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-m", "refdesk", *arguments]
    options: dict[str, Any] = {"cwd": REPOSITORY, "timeout": WAIT_SECONDS, "check": False}
    done = subprocess.run(command, env=make_environment(home), stderr=subprocess.PIPE, text=True, **options)
    return done.returncode, done.stderr


def list_states(home: Path) -> list[bool]:
    """Return of each key, oldest first, whether it was revoked."""
    listed = json.loads(run(["keys", "list", "--json"], home).stdout)["keys"]
    return [key["revokedAt"] is not None for key in listed]


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.skipif(not FULL.exists(), reason="the system has no device that is always full")
def test_a_key_that_could_not_be_printed_is_revoked(tmp_path: Path, more: tuple[str, ...]) -> None:
    status, said = run_with_output(">/dev/full", [*CREATE, *more], tmp_path)
    assert (status != 0, "was revoked" in said) == (True, True), said
    assert list_states(tmp_path) == [True]


@pytest.mark.skipif(not FULL.exists(), reason="the system has no device that is always full")
def test_a_rotation_that_could_not_be_printed_leaves_the_old_key(tmp_path: Path) -> None:
    old = json.loads(run([*CREATE, "--json"], tmp_path).stdout)["id"]
    status, said = run_with_output(">/dev/full", ["keys", "rotate", old], tmp_path)
    assert (status != 0, "was revoked" in said) == (True, True), said
    assert list_states(tmp_path) == [False, True]


@pytest.mark.parametrize("command", [CREATE, ("keys", "make", *CREATE[2:])])
@pytest.mark.skipif(sys.platform == "win32", reason="its shells close no output")
def test_no_key_is_made_where_the_output_is_closed(tmp_path: Path, command: tuple[str, ...]) -> None:
    status, said = run_with_output(">&-", command, tmp_path)
    assert (status, "standard output is closed" in said) == (2, True), said
    assert list_states(tmp_path) == []
