"""Installs tools of other people's from pinned lock files of npm, once for all tests that share a cache folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

INSTALL_SECONDS = 600.0


def install(source: Path, folder: Path, what: str) -> None:
    """Install what a lock file names; skip the test where it cannot be had, unless `CI=true`.

    Args:
        source: Has `package.json` and `package-lock.json`.
        folder: Where it is installed; anew when the lock file differs.
        what: Is installed, for people.
    """
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        _do_without(f"no {' and no '.join(missing)}: {what} cannot be installed")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (source / "package-lock.json").read_text()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "installed.json"
        if not stamp.is_file() or stamp.read_text() != wanted:
            _run(source, folder, what)
            stamp.write_text(wanted)


def _run(source: Path, folder: Path, what: str) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(folder / "npm-cache")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if done.returncode:
        _do_without(f"npm could not install {what}: {done.stderr[-500:]}")
    shutil.rmtree(folder / "npm-cache", ignore_errors=True)


def _do_without(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
