"""No read or write of one org reaches another's."""

from __future__ import annotations

from refdesk.model import Collection, Link, Metadata, MetadataKey, Reference
from refdesk.protocols import Store
from tests.stores.samples import MODEL, NOTES, NOW, asking, embed, get_ids, make_document, near, passage, put, revise

OTHERS = (Collection("zenith", "notes"), Collection("acme", "skills"), Collection("*", "notes"))
EAST = [1.0, 0, 0, 0]


async def fill(store: Store) -> None:
    secret = make_document("secret", "apple pie", title="Plans", facets={"tags": ("x",)})
    await put(store, secret)
    await embed(store, secret, passage(EAST))
    async with store.transaction() as transaction:
        await transaction.put_links([Link("acme", Reference("notes", "secret"), "affects", Reference("", "t"), NOW)])
        await transaction.put_metadata([Metadata(MetadataKey("acme", "job", "n"), {"secret": True})])


async def test_reads_in_another_collection_see_nothing(store: Store) -> None:
    await fill(store)
    for other in OTHERS:
        assert await store.get_documents(other, ["secret"]) == [None]
        assert await store.get_revisions(other, "secret") == []
        assert await store.get_digests(other) == {}
        assert await store.get_unembedded(other, "any", 10) == []
        assert await store.get_embedded(other, MODEL.name, ["secret"]) == frozenset()


async def test_searches_in_another_collection_find_and_count_nothing(store: Store) -> None:
    await fill(store)
    for other in OTHERS:
        for request in (
            asking(collection=other, facets=("tags",)),
            asking("apple", collection=other, facets=("tags",)),
            asking('"apple pie"', collection=other, vector=near(EAST), facets=("tags",), title_contains="plans"),
            asking(vector=near(EAST), collection=other, facets=("tags",)),
        ):
            found = await store.find(request)
            assert (get_ids(found), found.total, found.facets) == ([], 0, {"tags": ()})


async def test_links_and_records_of_another_org_are_not_there(store: Store) -> None:
    await fill(store)
    assert await store.get_links("zenith", Reference("notes", "secret")) == []
    assert await store.get_metadata(MetadataKey("zenith", "job", "n")) is None
    assert await store.list_metadata("job", org="zenith") == []


async def test_writes_under_another_orgs_id_leave_its_document_alone(store: Store) -> None:
    await fill(store)
    (before,) = await store.get_documents(NOTES, ["secret"])
    for other in OTHERS:
        mine = make_document("secret", "mine", collection=other)
        await put(store, mine, revise(mine, body="mine again"))
        assert await embed(store, mine, passage(EAST)) is False
        async with store.transaction() as transaction:
            await transaction.remove_metadata([MetadataKey(other.org if other.org != "acme" else "x", "job", "n")])
    assert await store.get_documents(NOTES, ["secret"]) == [before]
    assert len(await store.get_revisions(NOTES, "secret")) == 1
    assert await store.get_embedded(NOTES, MODEL.name, ["secret"]) == {"secret"}
    assert await store.get_metadata(MetadataKey("acme", "job", "n")) is not None


async def test_another_orgs_documents_do_not_move_a_score(store: Store) -> None:
    await fill(store)
    await put(store, make_document("plain", "apple"))
    before = await store.find(asking("apple"))
    await put(store, *(make_document(f"d{n}", "apple " * n, collection=other) for other in OTHERS for n in range(9)))
    assert await store.find(asking("apple")) == before
