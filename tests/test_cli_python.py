"""`refdesk doctor` says when the Python that runs it was built without optimizations, and only then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from refdesk.cli.python_build import lacks_optimizations

FLAG = "-fprofile-use -fprofile-correction"
PYENV = {"CONFIG_ARGS": "'--prefix=/home/ann/.pyenv/versions/3.12.1' '--enable-shared'", "PGO_PROF_USE_FLAG": FLAG}
CONTAINER = {
    "CONFIG_ARGS": "'--build=x86_64-linux-gnu' '--enable-optimizations' '--with-lto'",
    "PGO_PROF_USE_FLAG": FLAG,
}
DEBIAN = {"CONFIG_ARGS": "'--enable-shared' '--prefix=/usr' '--enable-ipv6'", "PGO_PROF_USE_FLAG": ""}
BY_HAND = {**PYENV, "PY_CFLAGS_NODIST": f"-std=c11 {FLAG} -I./Include/internal"}


@pytest.mark.parametrize(
    ("variables", "prefix", "lacks"),
    [
        (PYENV, "/home/ann/.pyenv/versions/3.12.1", True),
        (CONTAINER, "/usr/local", False),
        (DEBIAN, "/usr", False),
        (DEBIAN, "/opt/python", False),
        (PYENV, "/usr", False),
        (BY_HAND, "/opt/python", False),
        ({}, "C:\\Python313", False),
    ],
)
def test_a_build_is_told_by_its_variables(variables: dict[str, str], prefix: str, lacks: bool) -> None:
    assert lacks_optimizations(variables, prefix) is lacks


@pytest.mark.skipif(
    sys.platform == "win32" or sys.base_prefix == "/usr", reason="such builds tell nothing of themselves"
)
@pytest.mark.parametrize(("variables", "is_told"), [(PYENV, True), (CONTAINER, False)])
def test_doctor_gives_a_hint_and_goes_on(tmp_path: Path, variables: dict[str, str], is_told: bool) -> None:
    (tmp_path / "built.py").write_text(f"build_time_vars = {variables}", encoding="utf-8")
    environment = {
        **os.environ,
        "REFDESK_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(tmp_path),
        "_PYTHON_SYSCONFIGDATA_NAME": "built",
        "REFDESK_CONFIG": "none",
    }
    command = [sys.executable, "-m", "refdesk", "doctor", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    assert ("python" in checks) is is_told
    assert all("--enable-optimizations" in each["advice"] for name, each in checks.items() if name == "python")
    assert "store" in checks
