from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from refdesk.toolsets.knowledge import listing
from refdesk.toolsets.knowledge.listing_models import AuthorsInput, ListInput, ListOutput, TagsInput
from refdesk.toolsets.knowledge.models import UnknownTag
from tests.core.fakes import NOW
from tests.toolsets.knowledge.conftest import Desk


async def list_entries(desk: Desk, **asked: object) -> ListOutput:
    return await listing.list_knowledge(desk.context, ListInput.model_validate(asked))


def get_titles(page: ListOutput) -> list[str]:
    return [entry.title for entry in page.entries]


async def store_many(desk: Desk, number: int) -> None:
    for count in range(number):
        desk.clock.advance(timedelta(seconds=1))
        await desk.store(f"note {count}", tags=["even" if count % 2 == 0 else "odd", "all"])


async def test_pages_hold_every_entry_once_newest_first_and_say_how_many_there_are(desk: Desk) -> None:
    await store_many(desk, 7)
    pages = [await list_entries(desk, limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [title for page in pages for title in get_titles(page)] == [f"note {count}" for count in range(6, -1, -1)]
    assert [(page.total, page.has_more) for page in pages] == [(7, True), (7, True), (7, False), (7, False)]


async def test_what_is_listed_is_what_holds_unless_more_is_asked_for(desk: Desk) -> None:
    old, new = await desk.store("old"), await desk.store("new")
    await desk.supersede(old.id, new.id)
    await desk.store("short", expiresAt=(NOW + timedelta(hours=1)).isoformat())
    gone = await desk.store("gone")
    await desk.withdraw(gone.id)
    desk.clock.advance(timedelta(hours=2))
    assert get_titles(await list_entries(desk)) == ["new"]
    assert set(get_titles(await list_entries(desk, includeExpired=True))) == {"new", "short"}
    shown = await list_entries(desk, includeSuperseded=True)
    assert {entry.title: entry.is_superseded for entry in shown.entries} == {"new": False, "old": True}


async def test_lists_are_narrowed_by_all_tags_and_by_author_and_never_cross_an_org(desk: Desk) -> None:
    await store_many(desk, 3)
    await desk.as_agent("bob").store("of bob", tags=["all"])
    assert get_titles(await list_entries(desk, tags=["all", "even"])) == ["note 2", "note 0"]
    assert get_titles(await list_entries(desk, author="bob")) == ["of bob"]
    other = desk.as_agent("eve", "other")
    assert (await list_entries(other)).total == 0
    assert (await listing.list_tags(other.context, TagsInput.model_validate({}))).total == 0


async def test_lists_are_narrowed_by_when_entries_were_written_both_ends_included(desk: Desk) -> None:
    for day in range(3):
        await desk.store(f"day {day}")
        desk.clock.advance(timedelta(days=1))
    first, second, third = (NOW + timedelta(days=day) for day in range(3))
    since = await list_entries(desk, since=second.isoformat())
    assert get_titles(since) == ["day 2", "day 1"]
    assert get_titles(await list_entries(desk, until=f"{second:%Y-%m-%d}")) == ["day 1", "day 0"]
    assert get_titles(await list_entries(desk, since=f"{first:%Y-%m-%d}", until=first.isoformat())) == ["day 0"]
    with pytest.raises(ValidationError, match="swap them"):
        await list_entries(desk, since=third.isoformat(), until=first.isoformat())


async def test_authors_are_listed_with_how_many_of_their_entries_hold(desk: Desk) -> None:
    await store_many(desk, 3)
    gone = await desk.as_agent("bob").store("of bob")
    await desk.as_agent("bob").store("also of bob")
    await desk.as_agent("bob").withdraw(gone.id)
    found = await listing.list_authors(desk.context, AuthorsInput.model_validate({}))
    assert [(each.author, each.entries) for each in found.authors] == [(desk.context.principal.agent, 3), ("bob", 1)]
    page = await listing.list_authors(desk.context, AuthorsInput.model_validate({"limit": 1}))
    assert (page.total, page.has_more) == (2, True)
    other = desk.as_agent("eve", "other")
    assert (await listing.list_authors(other.context, AuthorsInput.model_validate({}))).total == 0


async def test_tags_are_listed_with_how_many_entries_carry_each(desk: Desk) -> None:
    await store_many(desk, 3)
    tags = await listing.list_tags(desk.context, TagsInput.model_validate({}))
    assert [(each.tag, each.entries) for each in tags.tags] == [("all", 3), ("even", 2), ("odd", 1)]
    assert (tags.total, tags.has_more) == (3, False)
    page = await listing.list_tags(desk.context, TagsInput.model_validate({"limit": 1, "offset": 1}))
    assert ([each.tag for each in page.tags], page.has_more) == (["even"], True)


async def test_an_unknown_tag_is_named_with_the_nearest_known_one_where_nothing_is_found(desk: Desk) -> None:
    await desk.store("Refund limit", tags=["refunds", "policy"])
    meant = UnknownTag(tag="refund", did_you_mean=["refunds"])
    assert (await desk.ask("refund limit", tags=["policy", "refund"])).unknown_tags == [meant]
    assert (await list_entries(desk, tags=["refund"])).unknown_tags == [meant]
    assert (await desk.ask("refund limit", tags=["refunds"])).unknown_tags is None
    assert (await desk.ask("shipping", tags=["policy"])).unknown_tags is None


@pytest.mark.parametrize("asked", [{"limit": 0}, {"limit": 201}, {"offset": -1}, {"tags": [""]}, {"query": "x"}])
def test_what_cannot_be_listed_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ListInput.model_validate(asked)
