"""What the long forms begin with."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def first_seed() -> int:
    """Where the seeds of a long form begin: `REFDESK_SEED`, so that another run can look elsewhere."""
    return int(os.environ.get("REFDESK_SEED", "10"))
