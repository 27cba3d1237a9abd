"""Where results are kept: a JSON file and a page for each, below `docs/benchmarks/`."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from refdesk import __version__

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = REPOSITORY / "docs" / "benchmarks"


def describe_run() -> dict[str, Any]:
    """Return what a run is known by: the date, the version, the last commit of the server's code, and the machine."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "version": __version__,
        "commit": _read_commit(),
        "machine": describe_machine(),
    }


def describe_machine() -> dict[str, Any]:
    """Return what figures depend on, and nothing that names the machine."""
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0]
    return {
        "cores": cores,
        "processor": _read_field("/proc/cpuinfo", r"^model name\s*:\s*(.+)$"),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "load": round(load, 1),
    }


def write_result(name: str, result: dict[str, Any]) -> None:
    """Write the JSON of a result."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def read_result(name: str) -> dict[str, Any] | None:
    """Return the result that was written last, if one was."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def name_run(result: dict[str, Any]) -> str:
    """Return the line of a page that says what its figures come from."""
    machine = result["machine"]
    where = f"{machine['cores']} cores ({machine['processor']}), {machine['memory']}, {machine['system']}"
    return (
        f"Measured on {result['date']}, refdesk {result['version']} at `{result['commit']}`, on {where}, Python "
        f"{machine['python']}; the load of the machine was {machine['load']} when the run ended."
    )


def _read_commit() -> str:
    # Of the server, not of the pages: writing them does not make them out of date.
    command = ["git", "log", "-1", "--abbrev=10", "--format=%h", "--", "src"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def _read_field(path: str, pattern: str) -> str:
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return "unknown processor"
    return found[1].strip() if found else "unknown processor"
