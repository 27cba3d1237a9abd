"""The documentation as a site: every page is in its navigation, no link is dead, and nothing comes from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import cast

import pytest

from tests.conftest import REPOSITORY
from tests.packaging.conftest import find_tool

Navigation = list[str] | list[dict[str, "Navigation"]] | str


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [find_tool("zensical"), "build", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(REPOSITORY / "zensical.toml", tmp_path)
    shutil.copytree(REPOSITORY / "docs", tmp_path / "docs")
    return tmp_path


def list_entries(navigation: Navigation) -> list[str]:
    if isinstance(navigation, str):
        return [navigation]
    parts = [part for entry in navigation for part in (entry.values() if isinstance(entry, dict) else [entry])]
    return [page for part in parts for page in list_entries(part)]


def test_every_page_is_in_the_navigation_once() -> None:
    project = cast("dict[str, Navigation]", tomllib.loads((REPOSITORY / "zensical.toml").read_text())["project"])
    pages = [page.relative_to(REPOSITORY / "docs").as_posix() for page in (REPOSITORY / "docs").rglob("*.md")]
    assert sorted(list_entries(project["nav"])) == sorted(pages)


def test_the_site_is_built_whole_and_asks_no_other_server(folder: Path) -> None:
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    made = sorted((folder / "build" / "site").rglob("*.html"))
    pages = {page.relative_to(folder / "docs").with_suffix(".html") for page in (folder / "docs").rglob("*.md")}
    assert pages <= {page.relative_to(folder / "build" / "site") for page in made}
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?(https?:[^\"'\s>]+)")
    assert [(page.name, address) for page in made for address in loaded.findall(page.read_text())] == []
    found = json.dumps(json.loads((folder / "build" / "site" / "search.json").read_text()))
    assert "supersede" in found


def test_a_link_that_leads_nowhere_stops_the_build(folder: Path) -> None:
    page = folder / "docs" / "index.md"
    page.write_text(page.read_text() + "\n[planted](how-to/gone.md)\n")
    done = build(folder)
    assert done.returncode != 0
    assert "index.md" in done.stdout + done.stderr
