"""Withdrawing one's own entry, bringing it back, and taking a supersession back."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from refdesk.core.clock import SystemClock
from refdesk.core.keeping import erasing
from refdesk.core.writing import audit
from refdesk.errors import ConflictError, NotFoundError, PermissionDeniedError
from refdesk.toolsets.knowledge import models
from refdesk.toolsets.knowledge.options import Options
from tests.toolsets.knowledge.conftest import Desk


async def find(desk: Desk, query: str) -> list[str]:
    return [result.id for result in await desk.search(query)]


async def test_a_withdrawn_entry_is_out_of_sight_and_comes_back_as_it_was(desk: Desk) -> None:
    id = (await desk.store("Refund limit", "500 EUR")).id
    assert (await desk.withdraw(id)).state == "withdrawn"
    assert await find(desk, "refund") == []
    with pytest.raises(NotFoundError, match="was withdrawn; restore_knowledge brings it back"):
        await desk.get(id)
    assert (await desk.withdraw(id)).state == "withdrawn"
    assert (await desk.restore(id)).state == "current"
    assert (await desk.restore(id)).state == "current"
    assert await find(desk, "refund") == [id]
    history = await desk.base.get_history(models.get_collection("acme"), id)
    assert [revision.document.version for revision in history] == [1, 2, 3]


async def test_only_its_author_or_who_may_write_for_others_withdraws_and_restores(desk: Desk) -> None:
    id = (await desk.store("Refund limit")).id
    bob, chief = desk.as_agent("bob"), desk.as_agent("eve", "acme", "knowledge:write_others")
    with pytest.raises(PermissionDeniedError):
        await bob.withdraw(id)
    await chief.withdraw(id)
    with pytest.raises(PermissionDeniedError):
        await bob.restore(id)
    await desk.restore(id)
    with pytest.raises(NotFoundError):
        await desk.as_agent("ann", "zenith").withdraw(id)


async def test_taking_a_supersession_back_parts_the_chain_in_two(desk: Desk) -> None:
    ids = [(await desk.store(f"Version {n}", f"wording{n}")).id for n in range(5)]
    for old, new in pairwise(ids):
        await desk.supersede(old, new)
    restored = await desk.restore(ids[2])
    assert (restored.id, restored.state, restored.head_id, restored.note) == (ids[2], "current", ids[2], None)
    chains = {id: [member.id for member in (await desk.get(id)).chain] for id in ids}
    assert chains == {id: (ids[:3] if id in ids[:3] else ids[3:]) for id in ids}
    assert [(await desk.get(id)).head_id for id in ids] == [ids[2]] * 3 + [ids[4]] * 2
    assert await find(desk, "wording0") == [ids[2]]
    assert await find(desk, "wording3") == [ids[4]]
    history = await desk.base.get_history(models.get_collection("acme"), ids[2])
    assert [revision.document.state.value for revision in history] == ["current", "superseded", "current"]
    await desk.supersede(ids[2], ids[4])
    assert (await desk.get(ids[0])).head_id == ids[4]


async def test_whoever_may_supersede_may_take_it_back_and_nobody_else(desk: Desk) -> None:
    old = (await desk.store("Old")).id
    bob = desk.as_agent("bob")
    new = (await bob.store("New")).id
    await bob.supersede(old, new)
    with pytest.raises(PermissionDeniedError):
        await desk.as_agent("eve").restore(old)
    assert (await desk.restore(old)).state == "current"
    await bob.supersede(old, new)
    assert (await bob.restore(old)).state == "current"


@pytest.mark.parametrize("by_scope", [False, True])
async def test_an_author_can_be_protected(desk: Desk, by_scope: bool) -> None:
    mine = (await desk.store("Mine")).id
    bob = desk.as_agent("bob", "acme", *(["knowledge:supersede_own"] if by_scope else []))
    bob = replace(bob, base=replace(desk.base, options={"knowledge": Options(protects_authors=not by_scope)}))
    theirs = (await bob.store("Theirs")).id
    with pytest.raises(PermissionDeniedError):
        await bob.supersede(mine, theirs)
    await replace(bob, scopes=bob.scopes | {"knowledge:write_others"}).supersede(mine, theirs)
    other = (await bob.store("Other")).id
    await bob.supersede(theirs, other)


async def test_what_a_withdrawn_or_erased_entry_superseded_may_be_superseded_anew(desk: Desk) -> None:
    first, second, third = [(await desk.store(f"Version {n}", f"wording{n}")).id for n in range(3)]
    await desk.supersede(first, second)
    with pytest.raises(ConflictError):
        await desk.supersede(first, third)
    actor = audit.Actor("acme", "ann", "test")
    await erasing.erase(desk.base.store, SystemClock(), actor, erasing.Erasable("acme", second))
    assert await find(desk, "wording0") == []
    with pytest.raises(NotFoundError, match="for good"):
        await desk.restore(second)
    assert await desk.supersede(first, third) == third
    assert await find(desk, "wording0") == [third]


async def test_who_withdraws_a_correction_is_told_what_stays_out_of_sight_for_it(desk: Desk) -> None:
    old, new = (await desk.store("Refund limit", "500 EUR")).id, (await desk.store("Refund limit", "5 EUR")).id
    assert (await desk.withdraw(old)).note is None
    await desk.restore(old)
    await desk.supersede(old, new)
    withdrawn = await desk.withdraw(new)
    assert await find(desk, "refund limit") == []
    assert withdrawn.note == f"What it replaced stays out of sight; to let that hold again, restore_knowledge: {old}."
    read = await desk.get(old)
    assert (read.head_id, read.caution) == (
        new,
        f"What replaced it, {new}, was withdrawn or erased, so nothing holds in its place: restore_knowledge lets this "
        "one hold again.",
    )
    with pytest.raises(NotFoundError, match="was withdrawn: restore it first"):
        await desk.supersede(new, old)
    await desk.restore(old)
    assert (await desk.get(old)).caution is None
    assert await find(desk, "refund limit") == [old]
    assert (await desk.withdraw(new)).note is None
    with pytest.raises(NotFoundError) as gone:
        await desk.get(new)
    assert gone.value.details == {"state": "withdrawn"}
