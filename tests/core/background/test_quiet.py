"""Quiet: what nobody waits for is loaded when nobody is being answered."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from refdesk.core.background.quiet import QUIET_SECONDS, Quiet


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Two modules that nobody has imported."""
    names = "refdesk_part_one", "refdesk_part_two"
    for name in names:
        (tmp_path / f"{name}.py").touch()
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return names


async def test_nothing_is_loaded_while_somebody_is_answered(parts: tuple[str, ...]) -> None:
    asked, looked = True, anyio.Event()

    def is_asked() -> bool:
        nonlocal looks
        looks += 1
        if looks == 5:
            looked.set()
        return asked

    looks = 0
    async with anyio.create_task_group() as group:

        async def load() -> None:
            await Quiet(is_asked).load(*parts)

        group.start_soon(load)
        await looked.wait()
        assert not sys.modules.keys() & set(parts)
        asked = False
    assert sys.modules.keys() >= set(parts)


async def test_a_call_between_two_parts_is_answered_first(parts: tuple[str, ...]) -> None:
    def is_asked() -> bool:
        nonlocal looks
        looks += parts[0] in sys.modules
        return 0 < looks < 5

    looks = 0
    await Quiet(is_asked).load(*parts)
    assert looks >= 5


async def test_a_moment_passes_after_the_last_call() -> None:
    quiet = Quiet(lambda: False)
    quiet.note_end()
    ended = anyio.current_time()
    await quiet.wait()
    assert anyio.current_time() >= ended + QUIET_SECONDS


async def test_however_much_is_asked_it_is_loaded_at_last(parts: tuple[str, ...]) -> None:
    await Quiet(lambda: True).load(*parts, most_seconds=0.1)
    assert sys.modules.keys() >= set(parts)


async def test_quiet_is_counted_from_the_end_of_the_last_call() -> None:
    asked = False
    quiet = Quiet(lambda: asked)
    assert quiet.seconds == float("inf")
    quiet.note_end()
    asked = True
    assert quiet.seconds == 0
    asked = False
    await anyio.lowlevel.checkpoint()
    assert 0 < quiet.seconds < float("inf")


async def test_a_step_of_what_has_begun_waits_for_a_call_that_came_meanwhile_and_for_nothing_else() -> None:
    looks = 0

    def is_asked() -> bool:
        nonlocal looks
        looks += 1
        return 1 < looks < 5

    quiet = Quiet(is_asked)
    await quiet.give_way()
    assert looks == 1
    await quiet.give_way(most_seconds=60)
    assert looks == 5


async def test_a_step_waits_a_while_only_however_much_is_asked() -> None:
    await Quiet(lambda: True).give_way(most_seconds=0.05)
