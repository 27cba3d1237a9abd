"""Drives a real browser through pages, by the script `console_node/visit.mjs`, and reads what it says of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import npm
from tests.acceptance.browser import find_browser
from tests.acceptance.processes import WAIT_SECONDS

SOURCE = Path(__file__).parent / "console_node"


def install(config: pytest.Config) -> Path:
    """Return the folder of the driver; skips the test where it cannot be had."""
    assert config.cache is not None
    folder = config.cache.mkdir("tools") / "console-node"
    npm.install(SOURCE, folder, "the browser's driver")
    npm.put(SOURCE / "visit.mjs", folder)
    return folder


def walk(driver: Path, steps: list[list[str]], *, script: bool = True) -> list[str]:
    """Return what the steps that read have read, on pages where nothing went wrong."""
    flow = visit(driver, {"flow": {"script": script, "steps": steps}})["flow"]
    assert flow["errors"] == []
    return flow["said"]


def visit(driver: Path, plan: dict[str, object]) -> dict[str, Any]:
    """Return what the browser says of a plan, both as the script has them."""
    done = subprocess.run(
        ["node", "visit.mjs", find_browser()],
        cwd=driver,
        input=json.dumps({"keys": None, "shots": None, **plan}),
        capture_output=True,
        text=True,
        timeout=20 * WAIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
