"""Installs tools of other people's from pinned lock files of npm, once for all tests that share a cache folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NoReturn

import pytest

INSTALL_SECONDS = 300.0
ATTEMPTS = 3
"""What one has fetched is there for the next."""

OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=5")


def install(source: Path, folder: Path, what: str, *, is_required: bool = False) -> None:
    """Install what a lock file names; skip the test where it cannot be had, unless `CI=true`.

    Args:
        source: Has `package.json` and `package-lock.json`.
        folder: Where it is installed; anew when the lock file differs.
        what: Is installed, for people.
        is_required: Whether the test fails without it, `CI=true` or not.
    """
    is_required = is_required or os.environ.get("CI") == "true"
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        _do_without(f"no {' and no '.join(missing)}: {what} cannot be installed", is_required=is_required)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (source / "package-lock.json").read_text()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "installed.json"
        if not stamp.is_file() or stamp.read_text() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(source / name, folder)
            failures = list(takewhile(bool, (_try(folder) for _ in range(ATTEMPTS))))
            if len(failures) == ATTEMPTS:
                _do_without(f"npm could not install {what}: {failures[-1]}", is_required=is_required)
            shutil.rmtree(folder / "npm-cache", ignore_errors=True)
            stamp.write_text(wanted)


def put(source: Path, folder: Path) -> None:
    """Put a file into a folder in one step: whoever reads it there meanwhile reads a whole one."""
    with NamedTemporaryFile("w", dir=folder, delete=False) as file:
        file.write(source.read_text())
    os.replace(file.name, folder / source.name)


def _try(folder: Path) -> str:
    """Install once; return why that failed, or nothing."""
    command = ["npm", "ci", *OPTIONS, "--cache", str(folder / "npm-cache")]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done within {INSTALL_SECONDS:g} seconds"
    return done.stderr[-500:] or "it says nothing" if done.returncode else ""


def _do_without(reason: str, *, is_required: bool) -> NoReturn:
    if is_required:
        pytest.fail(reason)
    pytest.skip(reason)
