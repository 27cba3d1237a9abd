"""The pages of figures are made of the figures beside them, and are no older than the release before this one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pytest

from benchmarks import dialogues, growth_page, reliability, report
from benchmarks.peers import page
from benchmarks.results import FOLDER
from refdesk import __version__
from tests.conftest import REPOSITORY

RENDERERS = {
    "peers": page.render,
    "reliability": reliability.render,
    "dialogues": dialogues.render,
    "speed": partial(report.render, "speed"),
    "quality": partial(report.render, "quality"),
    "engines": partial(report.render, "engines"),
}
RESULTS = sorted(path.stem for path in FOLDER.glob("*.json"))


def list_releases(changelog: str) -> list[str]:
    """Return the versions, newest first: the one at hand, then those released before it."""
    released = re.findall(r"^## \[?v?(\d+\.\d+\.\d+)", changelog, re.MULTILINE)
    return list(dict.fromkeys([__version__, *released]))


def list_versions(result: object) -> Iterator[str]:
    """Yield the versions of refdesk that figures were measured on."""
    if isinstance(result, dict):
        known = cast("dict[str, Any]", result)
        if "commit" in known:
            yield known["version"]
        for each in known.values():
            yield from list_versions(each)


def find_old(result: dict[str, Any], releases: list[str]) -> list[str]:
    return [version for version in list_versions(result) if version not in releases[:2]]


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_is_what_its_figures_make(name: str) -> None:
    result = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == RENDERERS[name](result)


@pytest.mark.parametrize("name", RESULTS)
def test_no_page_is_older_than_the_release_before_this_one(name: str) -> None:
    result = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert list(list_versions(result)), "the figures do not say of which version they are"
    assert find_old(result, list_releases((REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"))) == []


def test_what_growth_was_measured_is_drawn_and_told_where_it_is_explained() -> None:
    parts = json.loads((FOLDER / f"{growth_page.PAGE}.json").read_text(encoding="utf-8"))["growth"]
    for picture, drawing in growth_page.draw(parts).items():
        assert (FOLDER / picture).read_text(encoding="utf-8") == drawing, picture
    page = growth_page.EXPLANATION.read_text(encoding="utf-8")
    assert page == growth_page.put_into(page, parts)


def test_an_old_page_is_found() -> None:
    releases = list_releases("## 9.1.0\n\n## 9.0.0\n")
    assert releases == [__version__, "9.1.0", "9.0.0"]
    old = {"parts": {"start": {"commit": "c", "version": "9.0.0"}, "stores": {"commit": "c", "version": "9.1.0"}}}
    assert find_old(old, releases) == ["9.0.0"]
