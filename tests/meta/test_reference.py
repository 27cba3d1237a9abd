"""The reference pages say what the code does."""

from __future__ import annotations

import os

import pytest

from tests.conftest import REPOSITORY
from tests.meta.reference import pages

FOLDER = REPOSITORY / "docs" / "reference"


@pytest.mark.parametrize("name", pages())
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    """Set REFDESK_UPDATE_SNAPSHOTS=1 to accept what it is now."""
    written = pages()[name]()
    if os.environ.get("REFDESK_UPDATE_SNAPSHOTS") == "1":
        (FOLDER / name).write_text(written)
    assert (FOLDER / name).read_text() == written


def test_every_page_is_of_something_that_is_there() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == {*pages(), "glossary.md", "protocol.md", "queue.md"}
