"""Skills in a store of their own: `REFDESK_SKILLS_STORE`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from refdesk import errors
from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Collection
from refdesk.server.calls import Caller
from refdesk.server.principals import local_principal
from refdesk.settings import Settings
from refdesk.stores.sqlite import open_store
from tests.server.echo import make_settings

TALK = """\
Customer: The label printer feeds two labels at a time.
Agent: Please clean the gap sensor with a dry cloth.
Customer: That helped, thank you.
"""
NOTE = {"title": "Refund limit", "body": "Above 500 EUR a lead approves."}
ORG = "local"


def settle(folder: Path, **more: object) -> Settings:
    main, own = (f"sqlite:///{folder / name}" for name in ("main.sqlite3", "skills.sqlite3"))
    return make_settings(folder, store=main, skills_store=own, **more)


async def ask(desk: Desk, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    [operation] = [each for toolset in desk.toolsets for each in toolset.operations if each.name == name]
    caller = Caller(desk, local_principal(desk.settings, desk.toolsets, "tester"), "test")
    return (await caller.run(operation, arguments)).value


async def count(path: Path, toolset: str) -> int:
    async with open_store(path) as store:
        return len(await store.get_digests(Collection(ORG, toolset)))


async def test_each_is_kept_where_it_belongs_and_found_again(tmp_path: Path) -> None:
    settings = settle(tmp_path)
    async with open_desk(settings, load_toolsets((), settings), in_background=False) as desk:
        created = await ask(desk, "create_skill", {"conversation": TALK})
        await ask(desk, "store_knowledge", NOTE)
        health = await desk.get_health()
        assert {name: health.toolsets[name].documents for name in ("skills", "knowledge")} == {
            "skills": 1,
            "knowledge": 1,
        }
    assert [await count(tmp_path / name, "skills") for name in ("main.sqlite3", "skills.sqlite3")] == [0, 1]
    assert [await count(tmp_path / name, "knowledge") for name in ("main.sqlite3", "skills.sqlite3")] == [1, 0]
    async with open_desk(settings, load_toolsets((), settings), in_background=False) as desk:
        found = await ask(desk, "search_skills", {"query": "printer feeds two labels"})
    assert [match["skill_id"] for match in found["matches"]] == [created["skill_id"]]


async def test_both_are_embedded_in_the_background(tmp_path: Path) -> None:
    settings = settle(tmp_path)
    async with open_desk(settings, load_toolsets(["knowledge", "skills"], settings)) as desk:
        await ask(desk, "create_skill", {"conversation": TALK})
        await ask(desk, "store_knowledge", NOTE)
        with anyio.fail_after(120):
            while (backlog := (await desk.get_health()).backlog) is None or backlog.waiting:
                await anyio.lowlevel.checkpoint()


async def test_without_skills_in_play_their_store_is_not_opened(tmp_path: Path) -> None:
    settings = settle(tmp_path)
    async with open_desk(settings, load_toolsets(["knowledge"], settings), in_background=False) as desk:
        await ask(desk, "store_knowledge", NOTE)
    assert not await anyio.Path(tmp_path / "skills.sqlite3").exists()


async def test_a_wrong_address_names_its_own_setting(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, skills_store="oracle://x")
    with pytest.raises(errors.ConfigurationError, match="REFDESK_SKILLS_STORE"):
        async with open_desk(settings, load_toolsets((), settings)):
            pass


def test_addresses_with_passwords_are_shown_nowhere(tmp_path: Path) -> None:
    secret = "postgresql://refdesk:hunter2@db/refdesk"
    settings = make_settings(tmp_path, store=secret, skills_store=secret, redis="redis://:hunter2@cache")
    assert "hunter2" not in repr(settings) + json.dumps(settings.model_dump(mode="json"))
