from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import pytest

from refdesk.core.clock import FixedClock
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.errors import ConflictError, NotFoundError, PermissionDeniedError
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from refdesk.toolsets.knowledge.models import CHAIN_PAGE, SupersedeInput
from refdesk.toolsets.knowledge.operations import supersede_knowledge
from tests.core.fakes import NOW
from tests.toolsets.knowledge.conftest import Desk


def count_pages(path: Path) -> int:
    reader = Connection(path, 0)
    try:
        return int(str(reader.get_pragma("page_count")))
    finally:
        reader.close()


async def test_the_old_entry_names_what_replaced_it_and_the_chain_reads_the_same_from_any_member(desk: Desk) -> None:
    a, b, c = [(await desk.store(f"Version {n}")).id for n in "abc"]
    assert await desk.supersede(a, b) == b
    assert await desk.supersede(b, c) == c
    chains = [[member.id for member in (await desk.get(id)).chain] for id in (a, b, c)]
    assert chains == [[a, b, c]] * 3
    entry = await desk.get(a)
    assert (entry.superseded_by, entry.head_id) == (b, c)


async def test_who_replaces_an_entry_by_one_that_has_expired_is_told_that_neither_is_found(desk: Desk) -> None:
    old, kept = (await desk.store("Old")).id, (await desk.store("Kept")).id
    new = (await desk.store("New", expiresAt=(NOW + timedelta(days=1)).isoformat())).id
    assert (await supersede_knowledge(desk.context, SupersedeInput(old_id=kept, new_id=new))).note is None
    desk.clock.advance(timedelta(days=2))
    done = await supersede_knowledge(desk.context, SupersedeInput(old_id=old, new_id=new))
    assert done.head_id == new
    assert f"expired on {NOW + timedelta(days=1):%Y-%m-%d}" in str(done.note)


async def test_a_chain_is_in_its_own_order_though_the_clock_was_set_back(desk: Desk) -> None:
    ids = list[str]()
    for number in range(4):
        ids.append((await desk.store(f"Version {number}")).id)
        desk.clock.advance(timedelta(hours=-1))
    for old, new in pairwise(ids):
        await desk.supersede(old, new)
    assert [member.id for member in (await desk.get(ids[1])).chain] == ids


async def test_a_long_chain_comes_in_pages_the_newest_first(desk: Desk) -> None:
    ids = [(await desk.store(f"Version {number}")).id for number in range(2 * CHAIN_PAGE + 1)]
    for old, new in pairwise(ids):
        await desk.supersede(old, new)
    pages, offset = list[list[str]](), 0
    while offset is not None:
        entry = await desk.get(ids[0], chainOffset=offset)
        pages.append([member.id for member in entry.chain])
        offset = entry.next_chain_offset
    assert pages == [ids[CHAIN_PAGE + 1 :], ids[1 : CHAIN_PAGE + 1], ids[:1]]


async def test_a_correction_of_a_long_chain_costs_what_the_first_one_did(tmp_path: Path) -> None:
    path, sizes, last = tmp_path / "store.db", list[int](), ""
    body = " ".join(f"word{number}" for number in range(500))
    async with open_store(path) as store:
        desk = Desk(KnowledgeBase(store), FixedClock(NOW))
        for number in range(121):
            # Each has words of its own, as notes that are corrected have.
            new = (await desk.store("A note", f"{number} {body}")).id
            if last:
                await desk.supersede(last, new)
            last = new
            sizes.append(count_pages(path))
    grown = [sizes[end] - sizes[end - 40] for end in (40, 80, 120)]
    assert grown[2] <= 1.2 * grown[0]
    assert sizes[-1] * 4096 < 3 * 121 * len(body)


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
