"""Whoever names what is not there is told what is: the nearest ids, tags and toolsets, of the own org alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from refdesk import errors
from refdesk.kit.unknown_ids import find_alike
from refdesk.model import Principal
from refdesk.server.calls import Caller
from tests.reliability.worlds import ALL_SCOPES, CONVERSATION, OTHERS, OWN, World, open_world

OTHER_ID = "01930000-0000-7000-8000-00000000dead"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    assert anyio_backend == "asyncio"
    folder: Path = tmp_path_factory.mktemp("unknown")
    async with open_world(folder) as world:
        yield world


async def run(world: World, name: str, arguments: dict[str, Any], org: str = OWN, *scopes: str) -> dict[str, Any]:
    caller = Caller(world.desk, Principal(org, "zoe", frozenset(scopes or ALL_SCOPES)), "test")
    return dict((await caller.run(world.operations[name], arguments)).value)


async def miss(world: World, name: str, arguments: dict[str, Any], org: str = OWN, *scopes: str) -> errors.RefdeskError:
    """Return the error that a call ends with."""
    with pytest.raises(errors.RefdeskError) as caught:
        await run(world, name, arguments, org, *scopes)
    return caught.value


def exchange(id: str) -> str:
    """Return an id in which two neighbouring characters have changed places."""
    place = next(
        place for place in range(20, len(id)) if id[place] != id[place - 1] and "-" not in id[place - 1 : place + 1]
    )
    return f"{id[: place - 1]}{id[place]}{id[place - 1]}{id[place + 1 :]}"


def cut_off(id: str) -> str:
    return id[:-6]


def join(id: str) -> str:
    return id.replace("-", "", 1)


@pytest.mark.parametrize("name", ["get_knowledge", "withdraw_knowledge", "restore_knowledge", "edit_knowledge"])
async def test_a_note_id_copied_wrongly_is_answered_with_the_right_one(world: World, name: str) -> None:
    right = (await run(world, "store_knowledge", {"title": f"For {name}", "body": "Of a kind."}))["id"]
    more = {"body": "Other."} if name == "edit_knowledge" else {}
    error = await miss(world, name, {"id": exchange(right), **more})
    assert isinstance(error, errors.NotFoundError)
    assert error.message.endswith(f"Did you mean {right}?")
    assert error.details == {"didYouMean": [right]}


async def test_either_id_of_a_supersession_is(world: World) -> None:
    old, new = world.own
    for arguments, meant in (
        ({"oldId": exchange(old), "newId": new}, old),
        ({"oldId": old, "newId": exchange(new)}, new),
    ):
        assert (await miss(world, "supersede_knowledge", arguments)).details == {"didYouMean": [meant]}


@pytest.mark.parametrize("spoil", [exchange, cut_off, join, str.upper])
async def test_a_skill_id_copied_wrongly_is_answered_with_the_right_one(
    world: World, spoil: Callable[[str], str]
) -> None:
    right = (await run(world, "create_skill", {"conversation": CONVERSATION}))["skill_id"]
    calls = {
        "get_skill": {},
        "get_skill_history": {},
        "report_outcome": {"outcome": "resolved"},
        "withdraw_outcome": {"report_id": OTHER_ID},
        "update_skill": {"conversation": CONVERSATION},
        "merge_skills": {"other_id": right},
    }
    for name, more in calls.items():
        error = await miss(world, name, {"skill_id": spoil(right), **more})
        assert (name, error.details) == (name, {"didYouMean": [right]})


async def test_words_in_the_place_of_an_id_are_answered_with_what_they_find(world: World) -> None:
    right = (await run(world, "create_skill", {"conversation": CONVERSATION}))["skill_id"]
    title = (await run(world, "get_skill", {"skill_id": right}))["title"]
    assert (await miss(world, "get_skill", {"skill_id": title})).details == {"didYouMean": [right]}
    assert (await miss(world, "get_skill", {"skill_id": "the moons of Jupiter"})).details is None


async def test_other_orgs_ids_and_what_may_not_be_read_are_not_named(world: World) -> None:
    theirs = exchange(world.ids["current"])
    assert (await miss(world, "get_knowledge", {"id": theirs})).details is None
    assert (await miss(world, "get_knowledge", {"id": theirs}, OTHERS)).details == {
        "didYouMean": [world.ids["current"]]
    }
    written = {"oldId": theirs, "newId": OTHER_ID}
    assert (await miss(world, "supersede_knowledge", written, OTHERS, "knowledge:write")).details is None


def test_ids_of_the_same_hour_are_not_taken_for_each_other() -> None:
    known = [f"01a204fc-2c72-7432-b87f-{sha256(bytes([number])).hexdigest()[:12]}" for number in range(64)]
    assert find_alike("01a204fc-2c72-7432-9000-a03e1669e711", known) == []
    assert find_alike("01a204fc-2c72", known) == [], "it begins many"
    assert find_alike(known[7][:-3], known) == [known[7]]


async def test_a_tag_that_nothing_has_is_answered_with_the_nearest(world: World) -> None:
    arguments = {"query": "opening hours", "filters": {"tags": ["offices"]}, "toolsets": ["knowledge", "skills"]}
    coverage = (await run(world, "search_everything", arguments))["coverage"]
    notes = {each["toolset"]: each.get("note", "") for each in coverage}
    assert "Nothing here has the tag “offices”: did you mean “office”?" in notes["knowledge"]
    assert "Nothing here has the tag “offices”: leave it out." in notes["skills"]
    known = await run(world, "search_everything", {**arguments, "filters": {"tags": ["Office"]}})
    assert known["results"]
    assert not any("has the tag" in each.get("note", "") for each in known["coverage"] if each["hits"])


async def test_a_toolset_that_is_not_there_is_answered_with_the_nearest(world: World) -> None:
    error = await miss(world, "search_everything", {"query": "x", "toolsets": ["azure"]})
    assert error.message.endswith("did you mean 'azure-updates'?")
