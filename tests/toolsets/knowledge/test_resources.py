from __future__ import annotations

from datetime import timedelta

from refdesk.toolsets.knowledge.resources import MOST_COMPLETIONS, complete_id
from tests.toolsets.knowledge.conftest import Desk


async def complete(desk: Desk, written: str) -> tuple[str, ...]:
    return (await complete_id(desk.context, written)).values


async def test_an_id_is_completed_by_how_it_begins_newest_first(desk: Desk) -> None:
    ids: list[str] = []
    for n in range(3):
        ids.append((await desk.store(f"Entry {n}")).id)
        desk.clock.advance(timedelta(seconds=1))
    assert await complete(desk, "") == tuple(reversed(ids))
    assert await complete(desk, ids[1].upper()) == (ids[1],)
    assert await complete(desk, ids[0][:8]) == tuple(reversed(ids))
    assert await complete(desk, "zzz") == ()


async def test_an_id_is_completed_by_a_part_of_its_title(desk: Desk) -> None:
    wanted = (await desk.store("Refund limit is 500 EUR")).id
    await desk.store("Something else", "with a refund limit in its body")
    assert await complete(desk, "fund LIMIT") == (wanted,)


async def test_what_does_not_hold_or_is_another_orgs_is_not_completed(desk: Desk) -> None:
    old, new = (await desk.store("Limit old")).id, (await desk.store("Limit new")).id
    await desk.store("Limit soon over", expiresAt=(desk.clock.now() + timedelta(hours=1)).isoformat())
    await desk.as_agent("bob", "other").store("Limit of others")
    await desk.supersede(old, new)
    desk.clock.advance(timedelta(hours=1))
    assert await complete(desk, "") == (new,)
    assert await complete(desk, "limit") == (new,)


async def test_no_more_are_completed_than_the_protocol_allows(desk: Desk) -> None:
    for n in range(MOST_COMPLETIONS + 1):
        await desk.store(f"Entry {n}")
    completions = await complete_id(desk.context, "")
    assert (len(completions.values), completions.has_more) == (MOST_COMPLETIONS, True)
