"""Whatever tells people to set a variable names one that is read."""

from __future__ import annotations

import re

from refdesk.settings import compose, variable
from tests.conftest import REPOSITORY

OF_THE_TESTS = {
    "REFDESK_TEST_DATA",
    "REFDESK_TEST_ENGINES",
    "REFDESK_SOAK",
    "REFDESK_CONFORMANCE",
    "REFDESK_PACKAGING",
    "REFDESK_COUNTS",
    "REFDESK_PEERS",
    "REFDESK_PEERS_VECTORS",
} | {"REFDESK_UPDATE_SNAPSHOTS"}
OF_THE_READERS = {"REFDESK_KEY"}  # where the how-to on clients keeps a key
OF_THE_EXAMPLE = {"REFDESK_OUR_NEWS_URL", "REFDESK_OUR_NEWS_STALE_HOURS"}  # the toolset that the how-to makes


def test_every_variable_that_is_named_is_a_setting() -> None:
    known = {variable(name) for name in compose().model_fields} | OF_THE_TESTS | OF_THE_READERS | OF_THE_EXAMPLE
    listed = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "src").rglob("*.py")]
    listed += [REPOSITORY / name for name in ("compose.yaml", "Dockerfile", "Makefile", ".ci/run")]
    unknown = {
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in listed
        for name in re.findall(r"\bREFDESK_[A-Z][A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
        if name not in known
    }
    assert unknown == set()
