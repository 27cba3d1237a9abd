"""What every engine promises about links and records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from string import ascii_letters

import pytest

from refdesk.errors import InvalidInputError
from refdesk.model import Link, Metadata, MetadataKey, Reference
from refdesk.protocols import Store, Transaction
from tests.stores.samples import NOW, day, make_document

A, B, C = (Reference("notes", id) for id in "abc")


def link(source: Reference, kind: str, target: Reference, days: int = 0, org: str = "acme") -> Link:
    return Link(org, source, kind, target, day(days))


def record(name: str, due: int | None = None, *, kind: str = "job", org: str = "acme") -> Metadata:
    return Metadata(MetadataKey(org, kind, name), {"of": name}, None if due is None else NOW + timedelta(seconds=due))


async def put_links(store: Store, *links: Link) -> None:
    async with store.transaction() as transaction:
        await transaction.put_links(links)


async def put_metadata(store: Store, *records: Metadata) -> None:
    async with store.transaction() as transaction:
        await transaction.put_metadata(records)


async def list_names(store: Store, **options: object) -> list[str]:
    records = await store.list_metadata("job", **options)  # pyright: ignore[reportArgumentType]
    return [each.key.name for each in records]


async def test_links_are_found_from_both_ends_oldest_first(store: Store) -> None:
    newer, older, elsewhere = (
        link(A, "references", B, days=2),
        link(C, "supersedes", A, days=1),
        link(B, "references", C),
    )
    await put_links(store, newer, older, elsewhere)
    assert await store.get_links("acme", A) == [older, newer]
    assert await store.get_links("acme", B) == [elsewhere, newer]


async def test_links_of_one_instant_come_by_kind_source_and_target(store: Store) -> None:
    ordered = [link(A, "affects", A), link(A, "references", B), link(A, "references", C), link(B, "references", A)]
    await put_links(store, *reversed(ordered))
    assert await store.get_links("acme", A) == ordered


async def test_a_link_from_a_thing_to_itself_comes_once(store: Store) -> None:
    await put_links(store, link(A, "references", A))
    assert await store.get_links("acme", A) == [link(A, "references", A)]


async def test_a_link_that_is_there_is_left_as_it_was(store: Store) -> None:
    await put_links(store, link(A, "references", B, days=1))
    await put_links(store, link(A, "references", B, days=5), link(A, "affects", B, days=5))
    assert [(each.kind, each.created_at) for each in await store.get_links("acme", B)] == [
        ("references", day(1)),
        ("affects", day(5)),
    ]


async def test_a_link_may_name_things_outside(store: Store) -> None:
    task = Reference("", "task 7 – ü")
    await put_links(store, link(A, "produced", task))
    assert await store.get_links("acme", task) == [link(A, "produced", task)]


async def test_a_record_comes_back_as_it_was_put_and_is_replaced_by_its_key(store: Store) -> None:
    key = MetadataKey("acme", "token", "ünïcode / 1")
    first = Metadata(key, {"list": [1, 2.5, None], "text": "x"}, NOW + timedelta(microseconds=1))
    await put_metadata(store, first)
    assert await store.get_metadata(key) == first
    await put_metadata(store, Metadata(key, {}))
    assert await store.get_metadata(key) == Metadata(key, {})


async def test_many_records_come_in_the_order_asked(store: Store) -> None:
    first, second, other = record("a"), record("b", 5), record("a", kind="lease", org="zenith")
    await put_metadata(store, first, second, other)
    missing = MetadataKey("acme", "job", "c")
    keys = [second.key, missing, other.key, first.key, second.key]
    assert await store.get_many_metadata(keys) == [second, None, other, first, second]
    assert await store.get_many_metadata([]) == []
    many = [MetadataKey(key.org, key.kind, f"{key.name}{number}") for number in range(150) for key in keys[:1]]
    assert await store.get_many_metadata([*many, *keys]) == [*([None] * 150), second, None, other, first, second]


async def test_a_record_that_is_not_there_is_none(store: Store) -> None:
    await put_metadata(store, record("a"))
    for key in (MetadataKey("acme", "job", "b"), MetadataKey("acme", "lease", "a"), MetadataKey("zenith", "job", "a")):
        assert await store.get_metadata(key) is None


async def test_records_are_listed_soonest_due_first_and_never_due_last(store: Store) -> None:
    await put_metadata(store, record("never"), record("late", 9), record("past", -9), record("soon", 1))
    assert await list_names(store) == ["past", "soon", "late", "never"]
    assert await list_names(store, limit=2) == ["past", "soon"]


@pytest.mark.parametrize("org", [None, "acme"])
async def test_only_due_records_are_listed_when_that_is_asked(store: Store, org: str | None) -> None:
    await put_metadata(store, record("never"), record("late", 9), record("now", 0), record("past", -9))
    assert await list_names(store, due_until=NOW, org=org) == ["past", "now"]
    assert await list_names(store, due_until=NOW - timedelta(seconds=10), org=org) == []


async def test_records_due_together_come_by_org_and_name(store: Store) -> None:
    await put_metadata(store, *(record(name, org=org) for org in ("zenith", "acme") for name in ("b", "a")))
    listed = await store.list_metadata("job")
    assert [(each.key.org, each.key.name) for each in listed] == [
        ("acme", "a"),
        ("acme", "b"),
        ("zenith", "a"),
        ("zenith", "b"),
    ]


async def test_records_of_one_org_or_kind_are_listed_alone(store: Store) -> None:
    await put_metadata(store, record("a"), record("b", org="zenith"), record("c", kind="lease"))
    assert await list_names(store) == ["a", "b"]
    assert await list_names(store, org="zenith") == ["b"]
    assert await list_names(store, org="nobody") == []


async def test_removing_records_leaves_the_others_and_may_name_what_is_not_there(store: Store) -> None:
    await put_metadata(store, record("a"), record("b"))
    async with store.transaction() as transaction:
        await transaction.remove_metadata([record("a").key, record("nobody").key])
        assert await transaction.get_metadata(record("a").key) is None
    assert await list_names(store) == ["b"]


async def test_records_and_links_refuse_text_that_no_engine_can_keep(store: Store) -> None:
    for bad in (record("\x00"), record("\ud800"), Metadata(record("a").key, {"x": "\x00"})):
        with pytest.raises(InvalidInputError):
            await put_metadata(store, bad)
    with pytest.raises(InvalidInputError):
        await put_links(store, link(A, "references", Reference("notes", "\ud800")))
    assert await list_names(store) == []


async def test_what_is_too_long_to_be_found_is_refused_with_nothing_written_or_kept_whole(store: Store) -> None:
    # Random letters: an engine that compresses its keys holds many more of the same letter.
    endless = "".join(Random(7).choices(ascii_letters, k=9_000))
    document = make_document(endless, "apple")
    writes: tuple[Callable[[Transaction], Awaitable[None]], ...] = (
        lambda transaction: transaction.put_documents([document]),
        lambda transaction: transaction.put_metadata([record(endless)]),
        lambda transaction: transaction.put_links([link(A, "references", Reference("", endless))]),
    )
    refused = 0
    for number, write in enumerate(writes):
        try:
            async with store.transaction() as transaction:
                await transaction.put_metadata([record(f"beside {number}")])
                await write(transaction)
        except InvalidInputError:
            refused += 1
    kept = [
        await store.get_documents(document.collection, [endless]) == [document],
        await store.get_metadata(record(endless).key) is not None,
        bool(await store.get_links("acme", A)),
    ]
    assert kept == ([True] * 3 if not refused else [False] * 3)
    assert len([name for name in await list_names(store) if name.startswith("beside")]) == 3 - refused
