"""Everything can be read, piece by piece, and moved from any engine to any other."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import numpy as np
import pytest

from refdesk.core import keys
from refdesk.core.background import leases
from refdesk.core.clock import FixedClock
from refdesk.core.keeping import erasing, migrating, store_id
from refdesk.core.writing import audit
from refdesk.core.writing.tombstones import make_barrier
from refdesk.errors import ConflictError
from refdesk.model import (
    SHARED_ORG,
    Collection,
    EmbeddedPassage,
    EmbeddingModel,
    Link,
    Metadata,
    MetadataKey,
    Reference,
    Revision,
    State,
)
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore
from tests.stores.conftest import ENGINE_NAMES, ENGINES
from tests.stores.samples import (
    MODEL,
    NOTES,
    NOW,
    asking,
    day,
    embed,
    find_ids,
    make_document,
    near,
    passage,
    put,
    revise,
)
from tests.stores.walks import COLLECTIONS, MODELS, Walk, assert_agree

OTHERS = Collection("zenith", "notes")
LINKS = [
    Link(org, Reference("notes", source), kind, Reference("notes", "z"), day(number))
    for number, (org, source, kind) in enumerate(
        [
            ("acme", "a", "supersedes"),
            ("acme", "a", "references"),
            ("acme", "b", "produced"),
            ("zenith", "a", "produced"),
        ]
    )
]
RECORDS = [
    Metadata(MetadataKey("acme", "quota", "stored:org"), {"used": 2}),
    Metadata(MetadataKey("acme", "token", "x"), {"deep": [1, 2.5, None, True, {"a": "\u6f22"}], "big": 2**60}, day(1)),
    Metadata(MetadataKey("zenith", "quota", "stored:org"), {}),
]


async def fill(store: Store) -> None:
    first = make_document("a", "First words.", facets={"tags": ("One", "one")})
    await put(store, first, make_document("b", state=State.WITHDRAWN), make_document("a", collection=OTHERS))
    await put(store, revise(first, title="Second", modified_at=day(1)))
    await embed(store, first, passage((1, 2, 3, 4)), passage((0, 1, 0, 0), 2, 5))
    async with store.transaction() as transaction:
        await transaction.put_links(LINKS)
        await transaction.put_metadata(RECORDS)
        await transaction.put_metadata([Metadata(MetadataKey("*", leases.KIND, "embedding"), {"holder": "gone"})])


async def test_every_document_is_listed_whatever_its_state(store: Store) -> None:
    await fill(store)
    whole = await store.list_documents(None, 10)
    assert sorted(whole) == [(NOTES, "a"), (NOTES, "b"), (OTHERS, "a")]
    assert await store.list_documents(whole[0], 1) == whole[1:2]
    assert await store.list_documents(whole[-1], 10) == []


async def test_vectors_are_read_as_they_are_kept(store: Store) -> None:
    await fill(store)
    await embed(store, make_document("a", collection=OTHERS), passage((1, 0, 0, 0)), model=MODELS[0])
    [[(model, passages)]] = await store.get_vectors(OTHERS, ["a"])
    assert (model, len(passages)) == (MODELS[0], 1)
    assert (passages[0].start, passages[0].end, passages[0].vector.tolist()) == (0, 1, [1, 0, 0, 0])
    assert await store.get_vectors(NOTES, ["a", "nowhere"]) == [[], []], "the text has changed"
    assert MODEL.dimensions == MODELS[0].dimensions


async def test_every_number_of_half_precision_is_read_as_it_was_written(store: Store) -> None:
    document, model = make_document("a"), EmbeddingModel("wide", 1024)
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(64, 1024)
    vectors = halves[np.isfinite(halves).all(axis=1)].astype(np.float32)
    passages = [EmbeddedPassage(number, number + 1, vector) for number, vector in enumerate(vectors)]
    await put(store, document)
    assert await embed(store, document, *passages, model=model)
    [[(_, kept)]] = await store.get_vectors(NOTES, ["a"])
    assert len(vectors) > 60
    assert np.array_equal(np.stack([each.vector for each in kept]), vectors)


async def test_vectors_and_versions_of_many_documents_come_in_the_order_asked(store: Store) -> None:
    await fill(store)
    await embed(store, make_document("b", state=State.WITHDRAWN), passage((1, 0, 0, 0)))
    for number in range(3):
        await put(store, make_document(f"m{number}"))
        for model in MODELS:
            assert await embed(store, make_document(f"m{number}"), passage((1, number, 0, 0)), model=model)
    asked = ["m2", "a", "nowhere", "m0", "b"]
    found = await store.get_vectors(NOTES, asked)
    assert [[model for model, _ in each] for each in found] == [[*MODELS], [], [], [*MODELS], []]
    assert found[0] != found[3]
    assert await store.get_histories(NOTES, asked) == [await store.get_revisions(NOTES, id) for id in asked]
    assert [len(each) for each in await store.get_histories(NOTES, asked)] == [1, 2, 0, 1, 1]


async def test_links_and_records_of_all_orgs_are_listed(store: Store) -> None:
    await fill(store)
    links = await store.list_links(None, 10)
    assert sorted(links, key=str) == sorted(LINKS, key=str)
    assert await store.list_links(links[1], 1) == links[2:3]
    records = await store.list_all_metadata(None, 10)
    assert {record.key: record for record in RECORDS}.items() <= {record.key: record for record in records}.items()
    assert await store.list_all_metadata(records[0].key, 2) == records[1:3]
    assert await store.list_all_metadata(records[-1].key, 2) == []


async def test_vectors_of_many_documents_are_set_as_those_of_one(store: Store) -> None:
    kept, other, gone = make_document("a", "apple"), make_document("b", collection=OTHERS), make_document("gone")
    reworded, withdrawn = make_document("c", "plum"), make_document("d", state=State.WITHDRAWN)
    await put(store, kept, other, reworded, withdrawn)
    await embed(store, kept, passage((0, 0, 1, 0)), passage((0, 0, 0, 1), 1, 2))
    vectors = [(model, [passage((1, 2, 0, 0)), passage((1, 3, 0, 0), 1, 2)]) for model in (MODEL, *MODELS)]
    asked = (kept, other, gone, replace(reworded, body="pear"), withdrawn)
    async with store.transaction() as transaction:
        await transaction.put_all_vectors([])
        await transaction.put_all_vectors([(document, vectors) for document in asked])
    found = await store.get_vectors(NOTES, ["a", "gone", "c", "d"])
    assert [[model for model, _ in each] for each in found] == [
        sorted((MODEL, *MODELS), key=lambda model: model.name),
        [],
        [],
        [],
    ]
    [other_vectors] = await store.get_vectors(OTHERS, ["b"])
    for model, passages in [*found[0], *other_vectors]:
        expected = [(each.start, each.end) for each in vectors[0][1]]
        assert [(each.start, each.end) for each in passages] == expected
        assert await find_ids(store, asking(vector=near((1, 2, 0, 0), model.name))) == ["a"]


async def test_versions_from_elsewhere_keep_the_instants_at_which_they_were_recorded(store: Store) -> None:
    first, other = make_document("a", "apple"), make_document("a", collection=OTHERS)
    second, alone = revise(first, title="Second"), make_document("b", "apple")
    written = [Revision(first, day(1)), Revision(other, day(2)), Revision(second, day(3)), Revision(alone, day(2))]
    async with store.transaction() as transaction:
        await transaction.put_revisions([])
        await transaction.put_revisions(written)
    await put(store, revise(alone, title="Now"))
    assert await store.get_revisions(NOTES, "a") == [written[0], written[2]]
    assert await store.get_revisions(OTHERS, "a") == [written[1]]
    assert [each.recorded_at for each in await store.get_revisions(NOTES, "b")] == [day(2), NOW]
    assert await find_ids(store, asking("apple")) == ["a", "b"]


async def test_a_version_from_elsewhere_that_does_not_follow_the_one_before_it_is_refused(store: Store) -> None:
    first = make_document("a")
    await put(store, first)
    with pytest.raises(ConflictError):
        async with store.transaction() as transaction:
            await transaction.put_revisions([Revision(make_document("b"), day(1)), Revision(first, day(2))])
    assert await store.get_revisions(NOTES, "b") == []


@pytest.fixture(params=ENGINE_NAMES)
async def target(request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock) -> AsyncGenerator[Store]:
    folder = tmp_path / "target"
    folder.mkdir()
    async with ENGINES[request.param](folder, clock) as opened:
        yield opened


@pytest.fixture
def source(clock: FixedClock) -> MemoryStore:
    return MemoryStore(clock)


async def test_a_walk_moves_from_engine_to_engine(store: Store, clock: FixedClock) -> None:
    walk, reference = Walk(Random(7)), MemoryStore(clock)
    for _ in range(40):
        await walk.write([store, reference])
        clock.advance(timedelta(microseconds=1))
    copy = MemoryStore()
    assert await migrating.migrate(store, copy, "here") == await migrating.summarise(reference)


async def test_what_was_erased_moves_as_erased_at_whatever_time(
    source: MemoryStore, target: Store, clock: FixedClock
) -> None:
    await put(source, make_document("a", "one"), make_document("b", "two"))
    clock.advance(timedelta(hours=1))
    actor = audit.Actor(NOTES.org, "ann", "test")
    await erasing.erase(source, clock, actor, erasing.Erasable(NOTES.org, "a"))
    clock.advance(timedelta(hours=1))
    assert (await migrating.migrate(source, target, "here")).documents == 2
    assert list(await target.get_digests(NOTES)) == ["b"]
    assert [place async for place in erasing.list_tombstones(target)] == [(NOTES, "a")]


async def test_a_walk_moves_into_every_engine(source: MemoryStore, target: Store, clock: FixedClock) -> None:
    walk = Walk(Random(8))
    for _ in range(40):
        await walk.write([source])
        clock.advance(timedelta(hours=1))
    await fill_links(source)
    contents = await migrating.migrate(source, target, "here")
    assert (contents.links, contents.records) == (len(LINKS), len(RECORDS))
    await assert_agree([source, target], walk)
    for collection in COLLECTIONS:
        for id in await source.get_digests(collection):
            assert await target.get_revisions(collection, id) == await source.get_revisions(collection, id)


async def fill_links(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.put_links(LINKS)
        await transaction.put_metadata(RECORDS)


class Stopped(Exception):
    """Whoever moves or loads is killed."""


async def load(store: Store) -> None:
    """Write documents with vectors of a known and of a new model, in transactions of their own."""
    for number in range(3):
        document = make_document(f"l{number}", "loaded")
        await put(store, document)
        for model in MODELS:
            assert await embed(store, document, passage((1, number, 0, 0)), model=model)


async def assert_loaded(store: Store) -> None:
    assert await find_ids(store, asking("loaded")) == ["l0", "l1", "l2"]
    for model in MODELS:
        assert await find_ids(store, asking(vector=near((1, 2, 0, 0), model.name), depth=2)) == ["l2", "l1"]


async def test_what_is_loaded_is_there_at_once_and_stays(store: Store) -> None:
    await put(store, make_document("before"))
    for model in MODELS:
        await embed(store, make_document("before"), passage((0, 0, 0, 1)), model=model)
    async with store.loading():
        await load(store)
        await assert_loaded(store)
    await assert_loaded(store)
    assert await embed(store, make_document("before"), passage((1, 2, 0, 0)), model=MODELS[0])
    assert await find_ids(store, asking(vector=near((1, 2, 0, 0), MODELS[0].name), depth=2)) == ["before", "l2"]


async def test_a_load_that_fails_keeps_what_was_committed(store: Store) -> None:
    async def load_and_fail() -> None:
        async with store.loading():
            await load(store)
            async with store.transaction() as transaction:
                await transaction.put_documents([make_document("undone", "loaded")])
                raise Stopped

    with pytest.raises(Stopped):
        await load_and_fail()
    await assert_loaded(store)


async def test_a_migration_that_was_stopped_goes_on(source: MemoryStore, target: Store) -> None:
    documents = [make_document(f"d{number:04}") for number in range(2 * migrating.PIECE + 10)]
    await put(source, *documents)
    await fill_links(source)
    written: list[int] = []

    def stop(more: int) -> None:
        written.append(more)
        if len(written) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        await migrating.migrate(source, target, "here", stop)
    assert len(await target.get_digests(NOTES)) == 2 * migrating.PIECE
    rest: list[int] = []
    contents = await migrating.migrate(source, target, "here", rest.append)
    assert (rest[0], contents.documents) == (10, len(documents))
    assert await migrating.migrate(source, target, "here") == contents, "once more finds nothing to do"


async def test_one_org_moves_beside_others_and_goes_on_where_it_was_stopped(source: MemoryStore, target: Store) -> None:
    mine = [make_document(f"d{number:04}") for number in range(migrating.PIECE + 10)]
    await put(source, *mine, make_document("theirs", collection=OTHERS))
    await fill_links(source)
    there = [
        make_document("b", "two", collection=OTHERS),
        make_document("own", collection=Collection("third", "notes")),
    ]
    await put(target, *there)
    part = migrating.Part(org=NOTES.org)
    before = [await migrating.summarise(target, part=migrating.Part(org=org)) for org in ("zenith", "third")]

    def stop(_: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        await migrating.migrate(source, target, "here", stop, part=part)
    contents = await migrating.migrate(source, target, "here", part=part)
    own = [record for record in RECORDS if record.key.org == NOTES.org]
    assert (contents.documents, contents.links, contents.records) == (len(mine), 3, len(own))
    assert await migrating.migrate(source, target, "here", part=part) == contents
    assert [await migrating.summarise(target, part=migrating.Part(org=org)) for org in ("zenith", "third")] == before
    with pytest.raises(ConflictError, match="another source"):
        await migrating.migrate(source, target, "elsewhere", part=part)
    with pytest.raises(ConflictError, match="org zenith already"):
        await migrating.migrate(source, target, "here", part=migrating.Part(org="zenith"))


@pytest.mark.parametrize("kind", ["document", "link", "record", "act", "key"])
async def test_an_org_of_which_anything_is_there_is_refused(source: MemoryStore, target: Store, kind: str) -> None:
    await put(source, make_document("a"))
    async with target.transaction() as transaction:
        if kind == "document":
            await transaction.erase_documents([make_barrier(NOTES, "a", NOW)])
        elif kind == "link":
            await transaction.put_links(LINKS[:1])
        elif kind == "act":
            await audit.append(transaction, NOTES.org, NOW, audit.make_act(audit.Actor(NOTES.org, "ann", "test"), "x"))
        else:
            place = MetadataKey(NOTES.org, "x", "y") if kind == "record" else MetadataKey(SHARED_ORG, keys.KIND, "hash")
            await transaction.put_metadata([Metadata(place, {"org": NOTES.org})])
    with pytest.raises(ConflictError, match="something of the org acme already"):
        await migrating.migrate(source, target, "here", part=migrating.Part(org=NOTES.org))


async def test_whoever_watches_is_told_what_is_done_and_how_far_it_is(source: MemoryStore, target: Store) -> None:
    await put(source, *[make_document(f"d{number:04}") for number in range(migrating.PIECE + 5)])
    told: list[object] = []
    await migrating.migrate(source, target, "here", told.append, told.append)
    pieces = [migrating.PIECE, 5]
    assert told == ["moving", *pieces, "building", "comparing", *pieces, *pieces]


async def test_a_target_that_holds_something_is_refused(source: MemoryStore, target: Store) -> None:
    await fill(source)
    await put(target, make_document("own"))
    with pytest.raises(ConflictError, match="not empty"):
        await migrating.migrate(source, target, "here")


@pytest.mark.parametrize("has_id", [False, True])
async def test_a_target_that_was_only_served_takes_the_id_of_its_source(
    source: MemoryStore, target: Store, has_id: bool
) -> None:
    await fill(source)
    await store_id.get_store_id(target)
    known = await store_id.get_store_id(source) if has_id else ""
    await migrating.migrate(source, target, "here")
    assert await store_id.read_store_id(target) == known


async def test_a_target_of_another_source_is_refused(source: MemoryStore, target: Store) -> None:
    await fill(source)
    await migrating.migrate(source, target, "here")
    with pytest.raises(ConflictError, match="another source"):
        await migrating.migrate(source, target, "elsewhere")


@pytest.mark.parametrize("change", ["document", "vector", "link", "record"])
async def test_whatever_differs_in_the_end_is_noticed(source: MemoryStore, target: Store, change: str) -> None:
    await fill(source)
    await migrating.migrate(source, target, "here")
    other = make_document("a", collection=OTHERS)
    async with target.transaction() as transaction:
        if change == "document":
            await transaction.put_documents([revise(other, author="bob")])
        elif change == "vector":
            await transaction.put_vectors(OTHERS, "a", MODEL, other.text_digest, [passage((1, 0, 0, 0))])
        elif change == "link":
            await transaction.put_links([Link("acme", Reference("x", "y"), "produced", Reference("x", "z"), NOW)])
        else:
            await transaction.put_metadata([Metadata(RECORDS[0].key, {"used": 3})])
    with pytest.raises(ConflictError, match="The target holds"):
        await migrating.migrate(source, target, "here")
