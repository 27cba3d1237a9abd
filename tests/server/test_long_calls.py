"""Each tool that may take long says how far it is; the help desk is an emulator in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from refdesk.server.principals import local_principal
from sample_world.salesforce.process import RunningEmulator
from tests.server.conftest import connect
from tests.server.test_everything import ASKED, TALK, open_all
from tests.server.test_progress import Seen

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("create_skill", {"conversation": TALK.replace("Marrowby", "Brackwater")}),
    ("search_articles", {"query": "password"}),
    ("search_everything", ASKED),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=[tool for tool, _ in CALLS])
async def test_a_long_call_says_how_far_it_is(
    tool: str, arguments: dict[str, Any], tmp_path: Path, emulator: RunningEmulator
) -> None:
    seen = Seen()
    async with open_all(tmp_path, emulator) as desk:
        principal = local_principal(desk.settings, desk.toolsets, "tester")
        async with connect(desk, "legacy", principal) as client:
            result = await client.call_tool(tool, arguments, progress_callback=seen.note)
            assert not result.is_error, result
    numbers = [done for done, _, _ in seen.steps]
    assert len(numbers) >= 2
    assert numbers == sorted(set(numbers))
    assert all(total is not None and done <= total and message for done, total, message in seen.steps)
