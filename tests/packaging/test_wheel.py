"""The wheel, installed into clean environments in the ways that people have, stores, finds and answers a client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks.install import LIMIT, measure, sum_installed
from tests.acceptance.processes import HANDSHAKE, NOWHERE
from tests.acceptance.test_desk import HASHING
from tests.conftest import REPOSITORY
from tests.packaging.conftest import find_tool

pytestmark = pytest.mark.timeout(900)

UV = Path(sys.executable).parent / "uv"
RUN = REPOSITORY / "requirements" / "run.txt"
SECONDS = 600


def run(command: list[str | Path], folder: Path, stdin: str = "", **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("REFDESK_", "PYTHON", "VIRTUAL"))}
    own = {"REFDESK_HOME": str(folder / "home"), "REFDESK_AZURE_UPDATES_URL": NOWHERE, "REFDESK_CONFIG": "none"}
    done = subprocess.run(
        command,
        env={**kept, **own, **HASHING, **variables},
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the backend that a release pins."""
    folder = tmp_path_factory.mktemp("dist")
    run([find_tool("pyproject-build"), "--no-isolation", "--wheel", "--outdir", folder, REPOSITORY], folder)
    return next(folder.glob("refdesk-*.whl"))


def test_the_wheel_has_what_it_needs_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "refdesk",
        next(n for n in names if "dist-info" in n).split("/")[0],
    }
    assert [name for name in names if "test" in name.lower() or name.endswith((".pyc", ".sqlite3"))] == []
    for needed in ("refdesk/py.typed", "licenses/LICENSE", "licenses/NOTICE", "entry_points.txt"):
        assert any(name.endswith(needed) for name in names), needed
    ours = {path.relative_to(REPOSITORY / "src").as_posix() for path in (REPOSITORY / "src").rglob("*.*")}
    assert sorted(name for name in ours if "__pycache__" not in name and name not in names) == []


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with the wheel and what it needs, as pinned."""
    folder = tmp_path_factory.mktemp("pip") / "environment"
    run([UV, "venv", "--quiet", "--python", sys.executable, folder], folder.parent)
    python = folder / "bin" / "python"
    run([UV, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", RUN], folder.parent)
    run([UV, "pip", "install", "--quiet", "--python", python, "--no-deps", wheel], folder.parent)
    return folder


def test_what_is_installed_stores_finds_and_explains_itself(environment: Path, tmp_path: Path) -> None:
    refdesk = environment / "bin" / "refdesk"
    assert run([refdesk, "--version"], tmp_path).startswith("refdesk, version ")
    assert "nothing is kept yet" in run([refdesk], tmp_path)
    run([refdesk, "knowledge", "store", "--title", "Refund limit", "--body", "500 EUR"], tmp_path)
    assert "Refund limit" in run([refdesk, "search", "--toolset", "knowledge", "refund"], tmp_path)
    checks = json.loads(run([refdesk, "doctor", "--json"], tmp_path, REFDESK_EMBEDDER="local"))["checks"]
    assert {check["name"]: check["status"] for check in checks}["model"] == "ok"


def test_a_client_is_answered_by_what_is_installed(environment: Path, tmp_path: Path) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}) + "\n"
    for more in ([], ["--isolated"]):
        said = run([environment / "bin" / "refdesk", "serve", "--stdio", *more], tmp_path, message)
        assert json.loads(said.splitlines()[0])["result"]["serverInfo"]["name"] == "refdesk"
    run([environment / "bin" / "refdesk", "stop"], tmp_path)


def test_the_base_install_is_as_small_as_is_said(environment: Path) -> None:
    sizes = measure(next((environment / "lib").glob("python*/site-packages")))
    assert sum_installed(sizes) <= LIMIT, sizes.most_common(12)


def ask(refdesk: list[str | Path], folder: Path) -> None:
    """Store a note and find it by another process, as the first thing that somebody does."""
    run([*refdesk, "knowledge", "store", "--title", "Refund limit", "--body", "500 EUR"], folder)
    assert "Refund limit" in run([*refdesk, "search", "refund", "limit"], folder)
    run([*refdesk, "stop"], folder)


def test_pip_installs_the_wheel_to_a_useful_answer(wheel: Path, tmp_path: Path) -> None:
    run([sys.executable, "-m", "venv", tmp_path / "environment"], tmp_path)
    run(
        [tmp_path / "environment" / "bin" / "pip", "install", "--quiet", "--constraint", pin(tmp_path), wheel], tmp_path
    )
    ask([tmp_path / "environment" / "bin" / "refdesk"], tmp_path)


def test_pipx_installs_the_wheel_to_a_useful_answer(wheel: Path, tmp_path: Path) -> None:
    places = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    pinned = f"--pip-args=--constraint {pin(tmp_path)}"
    run([find_tool("pipx"), "install", "--quiet", pinned, wheel], tmp_path, **places)
    ask([tmp_path / "bin" / "refdesk"], tmp_path)


def test_uvx_runs_the_wheel_to_a_useful_answer(wheel: Path, environment: Path, tmp_path: Path) -> None:
    assert environment.is_dir()  # what is needed is in uv's cache by now
    ask([UV, "tool", "run", "--offline", "--constraints", RUN, "--from", wheel, "refdesk"], tmp_path)


def pin(folder: Path) -> Path:
    """Return the versions of what is pinned, as constraints: a wheel that was just built has no hash among them."""
    path = folder / "constraints.txt"
    lines = (line for line in RUN.read_text().splitlines() if line and line[0].isalnum())
    path.write_text("".join(line.removesuffix("\\").strip() + "\n" for line in lines))
    return path
