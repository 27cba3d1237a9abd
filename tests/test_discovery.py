"""Toolsets are found by their folders, and looking for them costs next to nothing."""

from __future__ import annotations

import subprocess
import sys

from refdesk import discovery
from refdesk.discovery import find_descriptor, find_descriptors, list_scopes
from tests.conftest import REPOSITORY

LIGHT = {"refdesk"}
"""All that descriptors may import beside the standard library."""


def test_every_folder_is_a_toolset() -> None:
    folders = {path.parent.name for path in (REPOSITORY / "src/refdesk/toolsets").glob("*/__init__.py")}
    assert {each.name.replace("-", "_") for each in find_descriptors()} == folders


def test_who_is_asked_live_comes_after_the_others_and_who_asks_them_last() -> None:
    places = [(each.join is not None, each.connect is not None, each.name) for each in find_descriptors()]
    assert places == sorted(places)
    assert [each.name for each in find_descriptors()][-5:] == [
        "administration",
        "everything",
        "gaps",
        "impact",
        "watches",
    ]


def test_a_toolset_is_found_by_its_name_alone() -> None:
    for each in find_descriptors():
        assert find_descriptor(each.name) is each
    assert find_descriptor("astrology") is None


def test_every_scope_says_what_it_allows() -> None:
    scopes = list_scopes()
    assert all(scopes.values())
    assert discovery.SERVER_SCOPES.items() <= scopes.items()


def test_looking_for_toolsets_imports_nothing_heavy() -> None:
    script = (
        "import sys; from refdesk.discovery import list_scopes; list_scopes(); "
        "print(*sorted({n.partition('.')[0] for n in sys.modules} - sys.stdlib_module_names - {'__main__'}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(REPOSITORY / "src")},
        check=True,
    )
    assert set(done.stdout.split()) <= LIGHT
