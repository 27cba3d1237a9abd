"""What is shipped, checked where `REFDESK_PACKAGING=1`, as `make packaging` says; with `CI=true` besides it must be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

TOOLS = REPOSITORY / ".venv" / "release" / "bin"


def find_tool(name: str) -> Path:
    """Return a checker that `make packaging` installs; skip the test where it has not."""
    if os.environ.get("REFDESK_PACKAGING") != "1":
        pytest.skip("run by `make packaging`")
    return TOOLS / name
