"""What every engine promises about documents and their versions."""

from __future__ import annotations

from datetime import timedelta

import anyio
import anyio.lowlevel
import pytest

from refdesk.core.clock import FixedClock
from refdesk.errors import ConflictError, InvalidInputError
from refdesk.model import Collection, Metadata, MetadataKey, State
from refdesk.protocols import Store
from tests.stores.samples import MODEL, NOTES, NOW, day, embed, make_document, on, passage, put, revise

FULL = make_document(
    "full",
    body="Body with ünïcode, 漢字, emoji 🧭 and \\u0000 written out.\n\tSecond line.",
    title='A "title"',
    created_at=NOW + timedelta(microseconds=1),
    modified_at=day(1),
    facets={"tags": ("Auth", "auth", "中文"), "empty": ()},
    date_ranges={"available": on(1, -40_000), "none": ()},
    data={"nested": {"list": [1, 2.5, None, True, "x"]}, "big": 2**60, "text": "back\\slash \\u0000"},
)


async def test_to_expect_something_changes_nothing(store: Store) -> None:
    key, other = MetadataKey("acme", "job", "n"), make_document("other")
    async with store.transaction() as transaction:
        await transaction.expect([FULL, other], [key])
        assert await transaction.get_documents(NOTES, ["full", "other"]) == [None, None]
        assert await transaction.get_metadata(key) is None
        await transaction.put_documents([FULL])
        await transaction.put_documents([revise(FULL, body="Another body.")])
        await transaction.put_metadata([Metadata(key, {"a": 1})])
    assert [document and document.version for document in await store.get_documents(NOTES, ["full", "other"])] == [
        2,
        None,
    ]
    async with store.transaction() as transaction:
        await transaction.expect([FULL], [key])
        assert await transaction.get_metadata(key) == Metadata(key, {"a": 1})
        with pytest.raises(ConflictError):
            await transaction.put_documents([FULL])
    elsewhere = make_document("elsewhere", collection=Collection("acme", "skills"))
    async with store.transaction() as transaction:
        await transaction.expect([other, elsewhere], [])
        await transaction.put_documents([other, elsewhere])
    assert [each and each.id for each in await store.get_documents(elsewhere.collection, ["elsewhere"])] == [
        "elsewhere"
    ]


async def test_a_document_comes_back_as_it_was_put(store: Store) -> None:
    await put(store, FULL)
    assert await store.get_documents(NOTES, ["full"]) == [FULL]


async def test_documents_come_in_the_order_asked_with_none_for_those_that_are_not_there(store: Store) -> None:
    a, b = make_document("a"), make_document("b")
    await put(store, a, b)
    assert await store.get_documents(NOTES, ["b", "nobody", "a", "b"]) == [b, None, a, b]
    assert await store.get_documents(NOTES, []) == []


async def test_a_withdrawn_document_can_still_be_read(store: Store) -> None:
    gone = make_document("a", state=State.WITHDRAWN)
    await put(store, gone)
    assert await store.get_documents(NOTES, ["a"]) == [gone]


async def test_every_version_is_kept_with_the_instant_it_was_recorded(store: Store, clock: FixedClock) -> None:
    first = make_document("a", body="one", data={"n": 1})
    second = revise(first, body="two", state=State.SUPERSEDED)
    third = revise(second, title="Three")
    await put(store, first, make_document("other"))
    clock.advance(timedelta(hours=1))
    await put(store, second)
    clock.advance(timedelta(hours=1))
    await put(store, third)
    revisions = await store.get_revisions(NOTES, "a")
    assert [revision.document for revision in revisions] == [first, second, third]
    assert [revision.recorded_at - NOW for revision in revisions] == [timedelta(hours=hour) for hour in range(3)]


async def test_every_version_has_its_body_whether_or_not_the_next_one_shares_it(store: Store) -> None:
    bodies = ["one", "one", "two", "two", "two", "three"]
    versions = [make_document("a", body=body, version=n, data={"n": n}) for n, body in enumerate(bodies, 1)]
    for version in versions[:4]:
        await put(store, version)
    await put(store, *versions[4:])
    assert [each.document for each in await store.get_revisions(NOTES, "a")] == versions
    [history] = await store.get_histories(NOTES, ["a"])
    assert [each.document for each in history] == versions


async def test_what_never_was_has_no_versions(store: Store) -> None:
    await put(store, make_document("a"))
    assert await store.get_revisions(NOTES, "b") == []
    assert await store.get_revisions(Collection("acme", "other"), "a") == []


async def test_several_versions_of_one_document_may_be_put_at_once(store: Store) -> None:
    first = make_document("a", body="one")
    await put(store, first, revise(first, body="two"))
    assert [each.document.body for each in await store.get_revisions(NOTES, "a")] == ["one", "two"]


@pytest.mark.parametrize("version", [1, 2, 4])
async def test_a_version_that_is_not_the_next_is_a_conflict(store: Store, version: int) -> None:
    first = make_document("a", body="one")
    await put(store, first, revise(first, body="two"))
    with pytest.raises(ConflictError):
        await put(store, make_document("a", body="three", version=version))
    assert [each.document.body for each in await store.get_revisions(NOTES, "a")] == ["one", "two"]


async def test_a_new_document_starts_at_version_one(store: Store) -> None:
    with pytest.raises(ConflictError):
        await put(store, make_document("a", version=2))
    assert await store.get_documents(NOTES, ["a"]) == [None]


async def test_a_conflict_that_is_caught_leaves_nothing_of_its_call_and_all_of_the_others(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("before")])
        with pytest.raises(ConflictError):
            await transaction.put_documents([make_document("with"), make_document("before", body="again")])
        await transaction.put_documents([make_document("after")])
    found = await store.get_documents(NOTES, ["before", "with", "after"])
    assert [document is not None for document in found] == [True, False, True]


async def test_one_of_two_who_change_the_same_version_gets_a_conflict(store: Store) -> None:
    first = make_document("a")
    await put(store, first)
    outcomes: list[str] = []

    async def change(body: str) -> None:
        try:
            await put(store, revise(first, body=body))
            outcomes.append("written")
        except ConflictError:
            outcomes.append("conflict")

    async with anyio.create_task_group() as group:
        group.start_soon(change, "left")
        group.start_soon(change, "right")
    assert sorted(outcomes) == ["conflict", "written"]


async def test_an_exception_undoes_everything_in_its_transaction(store: Store) -> None:
    old = make_document("a", body="old")
    await put(store, old)
    await embed(store, old, passage([1, 0, 0, 0]))
    key = MetadataKey("acme", "count", "n")

    async def write_and_fail() -> None:
        async with store.transaction() as transaction:
            await transaction.put_documents([revise(old, body="new"), make_document("b")])
            await transaction.put_metadata([Metadata(key, {"n": 1})])
            await transaction.remove_vectors(MODEL.name)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await write_and_fail()
    assert await store.get_documents(NOTES, ["a", "b"]) == [old, None]
    assert len(await store.get_revisions(NOTES, "a")) == 1
    assert await store.get_metadata(key) is None
    assert await store.get_embedded(NOTES, MODEL.name, ["a"]) == {"a"}


async def test_a_transaction_sees_its_own_writes_and_nobody_else_does_before_it_ends(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("a")])
        assert await transaction.get_documents(NOTES, ["a"]) == [make_document("a")]
        assert len(await transaction.get_revisions(NOTES, "a")) == 1
        assert set(await transaction.get_digests(NOTES)) == {"a"}
        assert await store.get_documents(NOTES, ["a"]) == [None]
    assert await store.get_documents(NOTES, ["a"]) == [make_document("a")]


async def test_transactions_run_one_after_another(store: Store) -> None:
    key = MetadataKey("acme", "count", "n")

    async def increment() -> None:
        async with store.transaction() as transaction:
            record = await transaction.get_metadata(key)
            await anyio.lowlevel.checkpoint()
            count = record.value["n"] if record else 0
            assert isinstance(count, int)
            await transaction.put_metadata([Metadata(key, {"n": count + 1})])

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(increment)
    assert await store.get_metadata(key) == Metadata(key, {"n": 20})


async def test_digests_name_every_document_that_is_not_withdrawn(store: Store) -> None:
    documents = [make_document("b"), make_document("a", state=State.SUPERSEDED), FULL]
    await put(store, *documents, make_document("gone", state=State.WITHDRAWN))
    assert await store.get_digests(NOTES) == {document.id: document.digest for document in documents}


async def test_a_digest_follows_the_present_version(store: Store) -> None:
    first = make_document("a", body="one")
    second = revise(first, data={"changed": True})
    await put(store, first, second)
    assert await store.get_digests(NOTES) == {"a": second.digest}
    assert second.digest != first.digest


async def test_statistics_count_documents_by_state_and_vectors_by_model(store: Store) -> None:
    a, b, gone = (make_document(id, title=id) for id in ("a", "b", "gone"))
    shared = make_document("s", collection=Collection("*", "feed"), state=State.SUPERSEDED)
    await put(store, a, b, gone, shared)
    for document in (a, gone):
        await embed(store, document, passage([1, 0, 0, 0]), passage([0, 1, 0, 0]))
    await put(store, revise(gone, state=State.WITHDRAWN))
    feed, notes = await store.get_statistics()
    assert (feed.collection, feed.documents) == (
        shared.collection,
        {State.CURRENT: 0, State.SUPERSEDED: 1, State.WITHDRAWN: 0},
    )
    assert (notes.collection, notes.documents) == (
        NOTES,
        {State.CURRENT: 2, State.SUPERSEDED: 0, State.WITHDRAWN: 1},
    )
    assert (feed.embedded, notes.embedded) == ({}, {MODEL.name: 1})


@pytest.mark.parametrize(
    "changes",
    [
        {"body": "nul \x00"},
        {"title": "half \ud83d"},
        {"id": "\udc00"},
        {"facets": {"tags": ("\x00",)}},
        {"facets": {"\ud800": ("x",)}},
        {"data": {"deep": [{"x": "\x00"}]}},
        {"data": {"\udfff": 1}},
        {"data": {"n": float("nan")}},
    ],
)
async def test_text_that_no_engine_can_keep_is_the_callers_mistake(store: Store, changes: dict[str, object]) -> None:
    document = make_document("a")
    values = {"id": document.id, "body": "", "title": ""} | changes
    with pytest.raises(InvalidInputError):
        await put(store, make_document(**values))  # pyright: ignore[reportArgumentType]
    assert await store.get_statistics() == []


async def test_a_store_that_works_says_so_and_keeps_nothing_of_the_probe(store: Store) -> None:
    await store.check()
    await store.check()
    assert await store.get_statistics() == []
    assert store.engine


async def test_putting_nothing_changes_nothing(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([])
        await transaction.put_links([])
        await transaction.put_metadata([])
        await transaction.remove_metadata([])
    assert await store.get_statistics() == []
