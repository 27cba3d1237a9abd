"""An issuer of tokens, in a process of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.emulators.issuer import FIRST_KEYS, RunningIssuer, running_issuer

PATH = "/realms/desk"


@pytest.fixture(scope="module")
async def running() -> AsyncGenerator[RunningIssuer]:
    async with running_issuer(PATH) as started:
        yield started


@pytest.fixture
async def issuer(running: RunningIssuer) -> RunningIssuer:
    """An issuer that nobody has asked for anything yet, and that does what it should."""
    await running.set_faults([])
    await running.describe()
    await running.set_keys([id for id, _ in FIRST_KEYS])
    await running.forget_requests()
    return running
