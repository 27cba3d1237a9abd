from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import pytest
from pydantic import ValidationError

from refdesk.errors import InvalidInputError
from refdesk.toolsets.knowledge import listing, operations
from refdesk.toolsets.knowledge.listing_models import AuthorsInput, ListInput, ListOutput, TagsInput
from refdesk.toolsets.knowledge.models import GetInput, UnknownTag
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


async def walk(
    desk: Desk, limit: int, between: Sequence[Callable[[], Awaitable[object]]], **asked: object
) -> list[str]:
    """Return the titles that all pages show, while others write between them."""
    page = await list_entries(desk, limit=limit, **asked)
    titles = get_titles(page)
    for write in [*between, *[None] * 20]:
        if page.next_cursor is None:
            break
        if write is not None:
            await write()
        page = await list_entries(desk, limit=limit, cursor=page.next_cursor, **asked)
        titles += get_titles(page)
    assert not page.has_more
    return titles


@pytest.mark.parametrize("is_one_instant", [False, True])
async def test_what_is_written_between_two_pages_shows_nothing_twice_and_leaves_nothing_out(
    desk: Desk, is_one_instant: bool
) -> None:
    ids: list[str] = []
    for count in range(9):
        desk.clock.advance(timedelta(seconds=0 if is_one_instant else 1))
        ids.append((await desk.store(f"note {count}", tags=["all"])).id)
    first = get_titles(await list_entries(desk, limit=2))

    async def withdraw_what_was_shown() -> None:
        for title in first:
            await desk.withdraw(ids[int(title.removeprefix("note "))])

    async def store_more() -> None:
        for count in range(5):
            desk.clock.advance(timedelta(seconds=1))
            await desk.store(f"new {count}", tags=["all"])

    titles = await walk(desk, 2, [withdraw_what_was_shown, store_more], tags=["all"])
    assert sorted(titles) == [f"note {count}" for count in range(9)]


async def test_a_cursor_is_of_its_list_and_stands_alone(desk: Desk) -> None:
    await store_many(desk, 3)
    cursor = (await list_entries(desk, limit=1)).next_cursor
    assert cursor is not None
    assert (await list_entries(desk, limit=1, cursor=cursor)).offset == 1
    with pytest.raises(InvalidInputError, match="leave `offset` out"):
        await list_entries(desk, cursor=cursor, offset=1)
    for wrong in ("nonsense", "é", cursor[:-8], "W10", "MQ", "bnVsbA"):
        with pytest.raises(InvalidInputError, match="does not belong to this list"):
            await list_entries(desk, cursor=wrong)
    with pytest.raises(InvalidInputError, match="does not belong to this list"):
        await listing.list_tags(desk.context, TagsInput.model_validate({"cursor": cursor}))


async def test_a_page_behind_the_end_says_where_the_list_ends(desk: Desk) -> None:
    assert (await list_entries(desk, offset=5)).notice is None  # for there is nothing at all
    await store_many(desk, 1)
    assert (await list_entries(desk)).notice is None
    page = await list_entries(desk, offset=5)
    assert page.notice == "The list ends before this page: it has 1 entry, and the first 5 are skipped."
    tags = await listing.list_tags(desk.context, TagsInput.model_validate({"offset": 9}))
    assert tags.notice == "The list ends before this page: it has 2 tags, and the first 9 are skipped."


async def test_tags_are_gone_on_with_behind_the_last_one_shown(desk: Desk) -> None:
    await store_many(desk, 3)
    first = await listing.list_tags(desk.context, TagsInput.model_validate({"limit": 1}))
    await desk.store("first of all", tags=["all", "all-new"])
    rest = await listing.list_tags(desk.context, TagsInput.model_validate({"cursor": first.next_cursor}))
    assert [each.tag for each in (*first.tags, *rest.tags)] == ["all", "even", "all-new", "odd"]


async def test_reading_on_behind_the_end_of_a_body_says_where_it_ends(desk: Desk) -> None:
    id = (await desk.store("note", "Some text.")).id
    for offset, notice in (
        (0, None),
        (9, None),
        (10, "The body ends at character 10: nothing is left from 10 on."),
        (5000, "The body ends at character 10: nothing is left from 5,000 on."),
    ):
        entry = await operations.get_knowledge(desk.context, GetInput.model_validate({"id": id, "offset": offset}))
        assert (entry.body, entry.notice) == ("Some text."[offset:], notice)
