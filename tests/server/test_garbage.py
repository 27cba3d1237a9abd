"""Calls leave nothing behind that only the garbage collector finds: while it looks, all calls stand still."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from refdesk.app import open_desk
from refdesk.core.operations import find_operation
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from refdesk.server.calls import Caller
from tests.server.echo import make_settings

CALLS = 50


@pytest.fixture
async def caller(tmp_path: Path) -> AsyncGenerator[Caller]:
    settings = make_settings(tmp_path, store=f"sqlite:///{tmp_path}/a.sqlite3")
    async with open_desk(settings, load_toolsets(["knowledge"]), in_background=False) as desk:
        yield Caller(desk, Principal("o", "ann", frozenset({"knowledge:read", "knowledge:write"})), "mcp")


async def call(caller: Caller, name: str, number: int) -> None:
    arguments = {
        "store_knowledge": {"title": f"Note {number}", "body": f"It says {number}."},
        "search_knowledge": {"query": f"says {number}"},
    }[name]
    operation = find_operation(caller.desk.toolsets, name)
    assert operation is not None
    await caller.run(operation, arguments)


@pytest.mark.parametrize("name", ["store_knowledge", "search_knowledge"])
async def test_a_call_leaves_nothing_to_the_garbage_collector(caller: Caller, name: str) -> None:
    for number in range(CALLS):
        await call(caller, name, number)
    gc.collect()
    gc.disable()
    try:
        for number in range(CALLS):
            await call(caller, name, CALLS + number)
        left = gc.collect()
    finally:
        gc.enable()
    assert left < CALLS
