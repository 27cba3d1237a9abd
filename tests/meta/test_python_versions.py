"""The versions of Python that refdesk runs on are the same wherever they are named."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from tests.conftest import REPOSITORY

BOUNDS = re.compile(r">=3\.(\d+),<3\.(\d+)")
SENTENCES = (
    "README.md",
    "CONTRIBUTING.md",
    "Makefile",
    ".ci/run",
    "docs/how-to/install.md",
    "docs/tutorial/first-steps.md",
)


def read_project(path: str) -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / path).read_text())["project"]


def test_every_place_names_the_versions_that_the_package_declares() -> None:
    project = read_project("pyproject.toml")
    bounds = BOUNDS.fullmatch(project["requires-python"])
    assert bounds is not None
    first, beyond = int(bounds[1]), int(bounds[2])

    versions = [f"Programming Language :: Python :: 3.{minor}" for minor in range(first, beyond)]
    assert [each for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)] == versions

    assert read_project("deploy/mcpb/pyproject.toml")["requires-python"] == project["requires-python"]
    manifest = json.loads((REPOSITORY / "deploy/mcpb/manifest.json").read_text())
    assert manifest["compatibility"]["runtimes"]["python"] == project["requires-python"].replace(",", " ")

    makefile = (REPOSITORY / "Makefile").read_text()
    assert f"(3, {first}) <= sys.version_info < (3, {beyond})" in makefile

    said = {
        path: set(re.findall(r"Python (3\.\d+ to 3\.\d+|3\.\d+ or newer)", (REPOSITORY / path).read_text()))
        for path in SENTENCES
    }
    assert said == {path: {f"3.{first} to 3.{beyond - 1}"} for path in SENTENCES}
