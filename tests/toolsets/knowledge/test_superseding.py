from __future__ import annotations

from uuid import uuid4

import pytest

from refdesk.errors import ConflictError, NotFoundError, PermissionDeniedError
from tests.toolsets.knowledge.conftest import Desk


async def test_the_old_entry_names_what_replaced_it_and_the_chain_reads_the_same_from_any_member(desk: Desk) -> None:
    a, b, c = [(await desk.store(f"Version {n}")).id for n in "abc"]
    assert await desk.supersede(a, b) == b
    assert await desk.supersede(b, c) == c
    chains = [[member.id for member in (await desk.get(id)).chain] for id in (a, b, c)]
    assert chains == [[a, b, c]] * 3
    entry = await desk.get(a)
    assert (entry.superseded_by, entry.head_id) == (b, c)


async def test_the_same_pair_twice_is_one_supersession(desk: Desk) -> None:
    a, b = [(await desk.store(n)).id for n in "ab"]
    assert await desk.supersede(a, b) == await desk.supersede(a, b) == b


async def test_an_agent_must_have_written_one_of_the_two(desk: Desk) -> None:
    anns, bobs = (await desk.store("ann's")).id, (await desk.as_agent("bob").store("bob's")).id
    with pytest.raises(PermissionDeniedError):
        await desk.as_agent("eve").supersede(anns, bobs)
    assert await desk.as_agent("bob").supersede(anns, bobs) == bobs


async def test_the_scope_for_others_entries_lifts_that(desk: Desk) -> None:
    a, b = [(await desk.store(n)).id for n in "ab"]
    assert await desk.as_agent("eve", "acme", "knowledge:write_others").supersede(a, b) == b


async def test_what_is_superseded_already_names_its_head(desk: Desk) -> None:
    a, b, c = [(await desk.store(n)).id for n in "abc"]
    await desk.supersede(a, b)
    with pytest.raises(ConflictError) as caught:
        await desk.supersede(a, c)
    assert caught.value.details == {"headId": b}


async def test_no_circle_can_be_closed(desk: Desk) -> None:
    a, b = [(await desk.store(n)).id for n in "ab"]
    await desk.supersede(a, b)
    with pytest.raises(ConflictError):
        await desk.supersede(b, a)


async def test_unknown_ids_and_another_orgs_are_not_found(desk: Desk) -> None:
    a = (await desk.store("a")).id
    theirs = (await desk.as_agent("ann", "other").store("b")).id
    for id in (str(uuid4()), theirs):
        with pytest.raises(NotFoundError):
            await desk.supersede(a, id)
        with pytest.raises(NotFoundError):
            await desk.supersede(id, a)
