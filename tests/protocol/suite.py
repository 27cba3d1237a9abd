"""The protocol's own conformance suite and inspector, run by the Node that they need.

They are installed by `npm ci` from the pinned `node/package-lock.json` into the cache folder of pytest, once.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tests import npm
from tests.conftest import REPOSITORY

SOURCE = Path(__file__).resolve().parent / "node"
PAGE = REPOSITORY / "docs" / "reference" / "protocol.md"
RUN_SECONDS = 300.0

_RESULT = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


@dataclass(frozen=True, slots=True)
class Suite:
    """Both tools, ready in a folder."""

    folder: Path

    def run_scenarios(self, url: str, results: Path, *chosen: str) -> dict[str, dict[str, str]]:
        """Return how each check went, `SUCCESS` or another word, by its scenario and its id."""
        command = ["conformance", "server", "--url", url, *chosen, "-o", str(results)]
        done = self.run(command)
        found: dict[str, dict[str, str]] = {}
        for path in sorted(results.glob("*/checks.json")):
            match = _RESULT.fullmatch(path.parent.name)
            assert match, path
            checks = cast("list[dict[str, Any]]", json.loads(path.read_text("utf-8")))
            found[match["scenario"]] = {str(check["id"]): str(check["status"]) for check in checks}
        assert found, done.stdout + done.stderr
        return found

    def inspect(self, target: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """List a server's tools with `--strict`; the status is 6 where a schema is not portable."""
        arguments = [
            "--cli",
            "--format",
            "json",
            "-q",
            "--strict",
            "--connect-timeout",
            "60000",
            "--method",
            "tools/list",
        ]
        return self.run(["mcp-inspector", *arguments, *target])

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run one of the tools' commands."""
        modules = self.folder / "node_modules"
        [node] = modules.glob("node-*/bin")
        path = os.pathsep.join([str(node), str(modules / ".bin"), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "MCP_CATALOG_PATH": str(self.folder / "catalog.json")}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS
        )


def install_suite(cache: Path) -> Suite:
    """Return the tools, installed below `cache`; skip the test where they are not wanted or cannot be had.

    They are wanted where `REFDESK_CONFORMANCE=1`, as `make conformance` says; with `CI=true` besides, they must be had.
    """
    if os.environ.get("REFDESK_CONFORMANCE") != "1":
        pytest.skip("make conformance runs it: it installs some 330 MB of tools")
    folder = cache / "protocol-suite"
    npm.install(SOURCE, folder, "the suite")
    return Suite(folder)


def read_list(title: str) -> set[str]:
    """Return the checks that a section of the written list says are not offered."""
    section = PAGE.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    assert all(len(row) == 4 and row[2].strip() for row in rows), "a row lacks its reason"
    return {check for row in rows for check in re.findall(r"`([^`]+)`", row[1])}


def find_failed(found: dict[str, dict[str, str]]) -> set[str]:
    """Return the ids of the checks that failed."""
    return {check for checks in found.values() for check, status in checks.items() if status == "FAILURE"}
