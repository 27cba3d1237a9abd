from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from refdesk import errors
from refdesk.toolsets.knowledge import editing
from refdesk.toolsets.knowledge.editing import EditInput, EditOutput
from tests.core.fakes import NOW
from tests.toolsets.knowledge.conftest import Desk

TOKEN = "01930000-0000-7000-8000-00000000abcd"


async def edit(desk: Desk, id: str, **asked: object) -> EditOutput:
    return await editing.edit_knowledge(desk.context, EditInput.model_validate({"id": id, **asked}))


async def test_an_edit_keeps_what_is_left_out_and_the_old_version(desk: Desk) -> None:
    task = {"taskId": "T-1", "kind": "produced"}
    expiry = NOW + timedelta(days=9)
    old = await desk.store("Limit", "500 EUR", tags=["refunds"], confidence=90, taskRef=task, expiresAt=expiry)
    done = await edit(desk, old.id, body="200 EUR")
    new = await desk.get(done.id)
    assert (new.title, new.body, new.tags, new.confidence) == ("Limit", "200 EUR", ["refunds"], 90)
    assert (new.expires_at, [each.task_id for each in new.task_refs]) == (expiry, ["T-1"])
    assert (done.old_id, done.head_id, [each.id for each in new.chain]) == (old.id, done.id, [old.id, done.id])
    assert (await desk.get(old.id)).body == "500 EUR"
    assert [hit.id for hit in await desk.search("500 EUR")] == [done.id]


async def test_restoring_the_old_version_undoes_an_edit_and_restoring_the_edit_undoes_that(desk: Desk) -> None:
    old = await desk.store("Limit", "500 EUR")
    done = await edit(desk, old.id, title="Limits", tags=["b"], confidence=5)
    undone = await desk.restore(old.id)
    assert (undone.state, undone.head_id, undone.withdrawn_edit) == ("current", old.id, done.id)
    assert [hit.id for hit in await desk.search("limit")] == [old.id]
    assert (await desk.restore(old.id)).withdrawn_edit is None
    again = await desk.restore(done.id)
    assert (again.state, again.head_id, (await desk.get(old.id)).head_id) == ("current", done.id, done.id)
    assert [hit.id for hit in await desk.search("limit")] == [done.id]


async def test_of_the_versions_that_edits_made_the_one_restored_holds_alone(desk: Desk) -> None:
    ids = [(await desk.store("Limit", "500 EUR")).id]
    for amount in ("200 EUR", "100 EUR", "50 EUR"):
        ids.append((await edit(desk, ids[-1], body=amount)).id)
    for wanted in (0, 3, 1, 3):
        await desk.restore(ids[wanted])
        assert [hit.id for hit in await desk.search("limit")] == [ids[wanted]]


async def test_in_whatever_order_versions_are_restored_one_holds(desk: Desk) -> None:
    ids = [(await desk.store("Limit", "500 EUR")).id]
    for amount in ("200 EUR", "100 EUR"):
        ids.append((await edit(desk, ids[-1], body=amount)).id)
    for wanted in (0, 1, 2, 1, 0, 2):
        await desk.restore(ids[wanted])
        assert [hit.id for hit in await desk.search("limit")] == [ids[wanted]]


async def test_an_edit_and_another_edit_of_the_same_version_never_hold_together(desk: Desk) -> None:
    old = (await desk.store("Limit", "500 EUR")).id
    one = (await edit(desk, old, body="200 EUR")).id
    await desk.restore(old)
    other = (await edit(desk, old, body="100 EUR")).id
    restored = await desk.restore(one)
    assert (restored.state, restored.head_id, restored.withdrawn_edit) == ("current", one, other)
    assert [hit.id for hit in await desk.search("limit")] == [one]
    assert [member.id for member in (await desk.get(old)).chain] == [old, one]
    assert (await desk.restore(other)).withdrawn_edit == one
    assert [hit.id for hit in await desk.search("limit")] == [other]


async def test_a_version_that_was_withdrawn_comes_back_behind_the_one_restored_before_it(desk: Desk) -> None:
    old = (await desk.store("Limit", "500 EUR")).id
    done = (await edit(desk, old, body="200 EUR")).id
    await desk.restore(old)
    await desk.withdraw(old)
    await desk.restore(done)
    assert (await desk.restore(old)).head_id == done
    assert [hit.id for hit in await desk.search("limit")] == [done]


async def test_a_withdrawn_version_leaves_the_chain_of_another_edit_whole(desk: Desk) -> None:
    old = (await desk.store("Limit", "500 EUR")).id
    one = (await edit(desk, old, body="200 EUR")).id
    await desk.restore(old)
    other = (await edit(desk, old, body="100 EUR")).id
    await desk.withdraw(old)
    await desk.restore(one)
    later = (await edit(desk, one, body="50 EUR")).id
    assert (await desk.restore(other)).withdrawn_edit == later
    assert (await desk.restore(later)).withdrawn_edit == other
    assert [member.id for member in (await desk.get(one)).chain] == [one, later]


async def test_an_entry_that_another_one_corrected_stands_beside_it_once_it_is_restored(desk: Desk) -> None:
    old = await desk.store("Limit", "500 EUR")
    edited = (await edit(desk, old.id, body="200 EUR")).id
    other = (await desk.store("Limit of Plus", "300 EUR")).id
    await desk.supersede(edited, other)
    assert (await desk.restore(old.id)).withdrawn_edit is None
    assert {hit.id for hit in await desk.search("limit")} == {old.id, other}


async def test_who_may_not_replace_what_holds_does_not_bring_an_edit_back(desk: Desk) -> None:
    old = await desk.store("Limit", "500 EUR")
    bob = desk.as_agent("bob")
    done = await edit(bob, old.id, body="200 EUR")
    await desk.restore(old.id)
    with pytest.raises(errors.PermissionDeniedError):
        await desk.as_agent("bob", "acme", "knowledge:supersede_own").restore(done.id)
    assert [hit.id for hit in await desk.search("limit")] == [old.id]
    await bob.restore(done.id)
    assert [hit.id for hit in await desk.search("limit")] == [done.id]


async def test_each_part_can_be_edited_alone_and_an_expiry_taken_away(desk: Desk) -> None:
    first = await desk.store("Limit", "500 EUR", tags=["a"], expiresAt=NOW + timedelta(hours=1))
    desk.clock.advance(timedelta(hours=2))
    with pytest.raises(errors.InvalidInputError, match="neverExpires"):
        await edit(desk, first.id, confidence=5)
    second = await edit(desk, first.id, neverExpires=True)
    assert (await desk.get(second.id)).expires_at is None
    assert second.duplicate_of is None
    third = await edit(desk, second.id, tags=[])
    assert (await desk.get(third.id)).tags == []


@pytest.mark.parametrize("asked", [{}, {"title": "Limit"}, {"neverExpires": True, "expiresAt": "2999-01-01"}])
async def test_an_edit_that_says_nothing_new_is_refused(desk: Desk, asked: dict[str, Any]) -> None:
    old = await desk.store("Limit", "500 EUR")
    with pytest.raises(errors.InvalidInputError):
        await edit(desk, old.id, **asked)


async def test_what_does_not_hold_is_not_edited_and_the_error_names_what_does(desk: Desk) -> None:
    old = await desk.store("Limit", "500 EUR")
    done = await edit(desk, old.id, body="200 EUR")
    with pytest.raises(errors.ConflictError) as caught:
        await edit(desk, old.id, body="100 EUR")
    assert caught.value.details == {"headId": done.id}
    await desk.withdraw(done.id)
    with pytest.raises(errors.ConflictError, match="restore_knowledge"):
        await edit(desk, done.id, body="100 EUR")
    with pytest.raises(errors.NotFoundError):
        await edit(desk.as_agent("eve", "other"), old.id, body="mine")


async def test_who_protects_authors_lets_nobody_else_edit(desk: Desk) -> None:
    old = await desk.store("Limit", "500 EUR")
    other = desk.as_agent("bob")
    narrow = desk.as_agent("bob", "acme", "knowledge:supersede_own")
    with pytest.raises(errors.PermissionDeniedError):
        await edit(narrow, old.id, body="200 EUR")
    assert (await desk.get((await edit(other, old.id, body="200 EUR")).id)).author == "bob"


async def test_an_edit_counts_against_the_quota_and_then_changes_nothing(desk: Desk) -> None:
    old = await desk.store("Limit", "500 EUR")
    with pytest.raises(errors.QuotaExceededError):
        await edit(desk.limit(per_org=1), old.id, body="200 EUR")
    assert (await desk.get(old.id)).head_id == old.id


async def test_a_repeated_edit_with_the_same_token_edits_once(desk: Desk) -> None:
    old = await desk.store("Limit", "500 EUR")
    first = await edit(desk, old.id, body="200 EUR", clientToken=TOKEN)
    again = await edit(desk, old.id, body="200 EUR", clientToken=TOKEN)
    assert (again.id, first.replayed, again.replayed) == (first.id, False, True)
    with pytest.raises(errors.ConflictError, match="clientToken"):
        await edit(desk, old.id, body="100 EUR", clientToken=TOKEN)


async def test_an_edit_says_who_else_says_the_same(desk: Desk) -> None:
    other = await desk.store("Limit", "200 EUR")
    old = await desk.store("Limit", "500 EUR")
    assert (await edit(desk, old.id, body="200 EUR")).duplicate_of == other.id
