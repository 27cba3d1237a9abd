"""Long forms run only when they are asked for."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def only_when_asked_for(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("soak") and not os.environ.get("REFDESK_SOAK"):
        pytest.skip("the long form runs by `make soak`")


@pytest.fixture
def first_seed() -> int:
    """Where the seeds of a long form begin: `REFDESK_SEED`, so that another run can look elsewhere."""
    return int(os.environ.get("REFDESK_SEED", "10"))
