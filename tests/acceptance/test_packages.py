"""A toolset that an installed package brings is served like refdesk's own; a broken one costs nobody else anything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import TOOLS, run, shake_hands, start
from tests.conftest import REPOSITORY

UV = Path(sys.executable).parent / "uv"
EXAMPLE = REPOSITORY / "examples" / "company_glossary"
SERVE = ["-m", "refdesk", "serve", "--stdio", "--isolated"]

DESCRIPTOR = """\
from refdesk.core.descriptors import ToolsetDescriptor
TOOLSET = ToolsetDescriptor(name={name!r}, description="Stray.", load={load}, scopes={scopes!r})
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the example, built into a wheel and installed; nothing is fetched for it."""
    folder = tmp_path_factory.mktemp("packages")
    build = [UV, "build", "--wheel", "--offline", "--out-dir", folder / "wheels", EXAMPLE]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = (folder / "wheels").glob("*.whl")
    install = [UV, "pip", "install", "--offline", "--no-deps", "--python", sys.executable]
    subprocess.run([*install, "--target", folder / "site", wheel], check=True, capture_output=True)
    return folder / "site"


def plant(folder: Path, module: str) -> Path:
    """Put a package into the folder, as an installer would, whose descriptor is this module."""
    information = folder / "stray_toolset-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: stray-toolset\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[refdesk.toolsets]\nstray = stray_toolset:TOOLSET\n")
    (folder / "stray_toolset.py").write_text(module)
    return folder


def examine(home: Path, **variables: str) -> dict[str, Mapping[str, Any]]:
    done = run(["doctor", "--json"], home, REFDESK_EMBEDDER="hashing", **variables)
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_the_toolset_of_a_package_is_served_and_named_by_doctor(installed: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.json"
    words.write_text(json.dumps({"RDK": "refdesk"}))
    variables = {"PYTHONPATH": str(installed), "REFDESK_COMPANY_GLOSSARY_FILE": str(words)}
    with start(SERVE, tmp_path, **variables) as server:
        shake_hands(server)
        listed = [tool["name"] for tool in server.ask(2, "tools/list")["result"]["tools"]]
        assert sorted(listed) == sorted([*TOOLS, "define_company_word"])
        called = server.ask(3, "tools/call", {"name": "define_company_word", "arguments": {"word": "RDK"}})
        assert called["result"]["structuredContent"] == {"word": "RDK", "meaning": "refdesk"}
    checks = examine(tmp_path, **variables)
    assert checks["company-glossary"]["found"] == "brought by the package company-glossary"
    assert checks["glossary"]["found"] == "1 words"
    helped = run(["keys", "create", "--help"], tmp_path, **variables)
    assert "company-glossary:read" in helped.stdout


def test_a_package_that_is_not_configured_waits(installed: Path, tmp_path: Path) -> None:
    with start(SERVE, tmp_path, PYTHONPATH=str(installed)) as server:
        shake_hands(server)
        assert [tool["name"] for tool in server.ask(2, "tools/list")["result"]["tools"]] == TOOLS


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("raise RuntimeError('out of paper')", "RuntimeError: out of paper"),
        ("TOOLSET = 7", "is no ToolsetDescriptor"),
        (DESCRIPTOR.format(name="knowledge", load=None, scopes={}), "there is a toolset knowledge already"),
        (DESCRIPTOR.format(name="Not Kebab", load=None, scopes={}), "write it in kebab case"),
        (DESCRIPTOR.format(name="stray", load=None, scopes={"admin": "all"}), "the scope admin"),
        (DESCRIPTOR.format(name="stray", load="lambda means: 1 / 0", scopes={}), "ZeroDivisionError"),
    ],
)
def test_a_broken_or_clashing_package_is_named_and_left_out(tmp_path: Path, module: str, reason: str) -> None:
    site = str(plant(tmp_path / "site", module))
    with start(SERVE, tmp_path, PYTHONPATH=site) as server:
        shake_hands(server)
        assert [tool["name"] for tool in server.ask(2, "tools/list")["result"]["tools"]] == TOOLS
        _, _, err = server.close()
    assert "stray-toolset" in err
    assert reason in err
    check = examine(tmp_path, PYTHONPATH=site)["stray-toolset"]
    assert check["status"] == "fail"
    assert reason in check["found"]
    asked = run(["serve", "--stdio", "--isolated", "--toolset", "stray"], tmp_path, PYTHONPATH=site)
    assert asked.returncode != 0
    assert "stray-toolset" in asked.stderr


COPY = """\
from dataclasses import replace
from refdesk.toolsets.knowledge.descriptor import TOOLSET as OTHER
TOOLSET = replace(OTHER, name="stray", scopes={}, load_settings=None)
"""


def test_a_package_whose_tools_have_the_names_of_others_is_left_out_beside_them(tmp_path: Path) -> None:
    site = str(plant(tmp_path / "site", COPY))
    with start(SERVE, tmp_path, PYTHONPATH=site) as server:
        shake_hands(server)
        assert [tool["name"] for tool in server.ask(2, "tools/list")["result"]["tools"]] == TOOLS
        _, _, err = server.close()
    assert "is another toolset's" in err
    assert "is another toolset's" in examine(tmp_path, PYTHONPATH=site)["stray-toolset"]["found"]
