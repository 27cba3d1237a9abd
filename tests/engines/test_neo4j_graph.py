"""What stands in the graph, for anybody who reads it with Cypher; and that desks which share a database do not meet."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from refdesk.core.clock import FixedClock
from refdesk.errors import ConfigurationError, StoreError
from refdesk.model import Collection, Link, Metadata, MetadataKey, Reference, State
from refdesk.protocols import Store
from refdesk.stores.neo4j import migrations, open_store
from refdesk.stores.neo4j.rows import encode_terms
from tests.conftest import REPOSITORY
from tests.engines.neo4j import get_namespace, get_server, get_store_url
from tests.stores.samples import (
    MODEL,
    NOTES,
    NOW,
    asking,
    embed,
    find_ids,
    get_scores,
    make_document,
    near,
    passage,
    put,
    revise,
)

pytestmark = pytest.mark.engines

EAST = [1.0, 0, 0, 0]
TASK = Reference("", "TASK-7")
UNINDEXABLE = "x" * 40_000
"""Longer than what any index takes."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_store(get_store_url(tmp_path), clock=FixedClock(NOW)) as opened:
        yield opened


async def put_links(store: Store, *links: Link) -> None:
    async with store.transaction() as transaction:
        await transaction.put_links(links)


def note(id: str) -> Reference:
    return Reference(NOTES.toolset, id)


async def test_supersession_and_tasks_are_relationships_that_cypher_follows(tmp_path: Path, store: Store) -> None:
    await put(store, *(make_document(id, title=f"Note {id}") for id in ("new", "old", "older")))
    await put_links(
        store,
        Link("acme", note("new"), "supersedes", note("old"), NOW),
        Link("acme", note("old"), "supersedes", note("older"), NOW),
        Link("acme", note("new"), "produced by", TASK, NOW),
    )
    chain = get_server().query(
        "MATCH (head:Document {space: $space, id: 'new'})-[:SUPERSEDES*]->(old:Document) RETURN old.title",
        space=get_namespace(tmp_path),
    )
    assert chain == [["Note old"], ["Note older"]]
    tasks = get_server().query(
        "MATCH (:Document {space: $space, id: 'new'})-[link:PRODUCED_BY]->(task:Thing) "
        "RETURN task.id, link.kind, task:Document, datetime(link.created_at) < datetime()",
        space=get_namespace(tmp_path),
    )
    assert tasks == [["TASK-7", "produced by", False, True]]


async def test_a_document_takes_the_place_of_what_was_linked_before_it_was_known(tmp_path: Path, store: Store) -> None:
    link = Link("acme", TASK, "affects", note("later"), NOW)
    await put_links(store, link)
    assert await store.get_documents(NOTES, ["later"]) == [None]
    assert await store.get_revisions(NOTES, "later") == []
    assert await store.get_digests(NOTES) == {}
    document = make_document("later", "apple")
    await put(store, document)
    assert await store.get_documents(NOTES, ["later"]) == [document]
    assert await store.get_links("acme", note("later")) == [link]
    things = get_server().query(
        "MATCH (:Thing)-[:AFFECTS]->(d:Document {space: $space}) RETURN d.id", space=get_namespace(tmp_path)
    )
    assert things == [["later"]]


async def test_two_namespaces_of_one_database_do_not_see_each_other(tmp_path: Path, store: Store) -> None:
    document, key = make_document("a", "apple pie", facets={"tags": ("x",)}), MetadataKey("acme", "job", "n")
    await put(store, document)
    await embed(store, document, passage(EAST))
    await put_links(store, Link("acme", note("a"), "affects", TASK, NOW))
    async with store.transaction() as transaction:
        await transaction.put_metadata([Metadata(key, {"n": 1}, NOW)])
    async with open_store(get_store_url(tmp_path / "other"), clock=FixedClock(NOW)) as other:
        for request in (asking(), asking("apple", title_contains=""), asking(vector=near(EAST))):
            found = await other.find(request)
            assert (found.candidates, found.total) == ((), 0)
        assert await other.get_documents(NOTES, ["a"]) == [None]
        assert await other.get_revisions(NOTES, "a") == []
        assert await other.get_digests(NOTES) == {}
        assert await other.get_embedded(NOTES, MODEL.name, ["a"]) == frozenset()
        assert await other.get_links("acme", note("a")) == []
        assert await other.get_metadata(key) is None
        assert await other.list_metadata("job") == []
        assert await other.get_statistics() == []
        # The same names again are other things, and nothing that is done to them reaches the first.
        await put(other, make_document("a", "apple " * 9), make_document("b", "apple"))
        await embed(other, make_document("a", "apple " * 9), passage(EAST))
        async with other.transaction() as transaction:
            await transaction.remove_metadata([key])
            assert await transaction.remove_vectors(MODEL.name) == 1
    assert await store.get_documents(NOTES, ["a"]) == [document]
    assert await store.get_embedded(NOTES, MODEL.name, ["a"]) == {"a"}
    assert await store.get_metadata(key) is not None
    assert await find_ids(store, asking("apple")) == ["a"]


async def test_a_transaction_of_one_namespace_does_not_wait_for_another(tmp_path: Path, store: Store) -> None:
    async with open_store(get_store_url(tmp_path / "other")) as other, store.transaction() as transaction:
        await transaction.put_documents([make_document("a")])
        await put(other, make_document("b"))
        assert list(await other.get_digests(NOTES)) == ["b"]


async def test_orgs_hold_links_and_documents_of_the_same_name_apart(store: Store) -> None:
    zenith = Collection("zenith", NOTES.toolset)
    await put(store, make_document("a", "mine"), make_document("a", "theirs", collection=zenith))
    await put_links(store, Link("acme", note("a"), "affects", TASK, NOW))
    assert await store.get_links("zenith", note("a")) == []
    assert await store.get_links("zenith", TASK) == []


async def test_text_of_an_older_analysis_is_analysed_anew_when_the_store_is_opened(tmp_path: Path) -> None:
    url, space = get_store_url(tmp_path), get_namespace(tmp_path)
    documents = [make_document("a", "apple pie", title="Pie"), make_document("b", "a pear"), make_document("c", "plum")]
    async with open_store(url) as store:
        await put(store, *documents, make_document("gone", "apple apple"))
        await put(store, revise(make_document("gone", "apple apple"), state=State.WITHDRAWN))
        before = get_scores(await store.find(asking("apple pear")))
    get_server().query("MATCH (d:Document {space: $space}) SET d.terms = 'old\nterms', d.length = 7", space=space)
    get_server().query("MATCH (c:Collection {space: $space}) SET c.length = 1", space=space)
    get_server().query("MATCH (r:Refdesk {name: $name}) SET r.analysis = 0", name=f"space {space}")
    async with open_store(url) as store:
        assert get_scores(await store.find(asking("apple pear"))) == pytest.approx(before, rel=1e-9)
        assert await find_ids(store, asking("terms")) == []


async def test_an_analysis_that_was_interrupted_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, space = get_store_url(tmp_path), get_namespace(tmp_path)
    async with open_store(url) as store:
        await put(store, *(make_document(f"d{number}", "apple") for number in range(6)))
    get_server().query("MATCH (d:Document {space: $space}) SET d.terms = 'old\nterms', d.length = 7", space=space)
    get_server().query("MATCH (r:Refdesk {name: $name}) SET r.analysis = 0", name=f"space {space}")
    monkeypatch.setattr(migrations, "BATCH", 2)
    texts = iter([("", "apple")] * 3)

    def encode_some(_title: str, _body: str) -> str:
        return encode_terms(*next(texts))

    monkeypatch.setattr(migrations, "encode_terms", encode_some)
    with pytest.raises(RuntimeError):
        async with open_store(url):
            pass
    monkeypatch.setattr(migrations, "encode_terms", encode_terms)
    left = get_server().query("MATCH (d:Document {space: $space, terms: 'old\nterms'}) RETURN count(d)", space=space)
    assert left == [[4]]
    async with open_store(url) as store:
        assert len(await find_ids(store, asking("apple"))) == 6
        assert await find_ids(store, asking("terms")) == []


async def test_an_index_of_others_that_cannot_be_built_keeps_nobody_out(tmp_path: Path) -> None:
    query = get_server().query
    query("CREATE (:Foreign {text: $text})", text=UNINDEXABLE)
    query("CREATE TEXT INDEX foreign_text FOR (f:Foreign) ON (f.text)")
    try:
        while query("SHOW INDEXES YIELD name, state WHERE name = 'foreign_text' RETURN state") != [["FAILED"]]:
            pass
        # As when refdesk first comes to a database that others use.
        query("MATCH (r:Refdesk {name: 'schema'}) SET r.version = 0")
        async with open_store(get_store_url(tmp_path)) as store:
            await put(store, make_document("a", "apple"))
            assert await find_ids(store, asking("apple")) == ["a"]
    finally:
        query("DROP INDEX foreign_text")
        query("MATCH (f:Foreign) DELETE f")


async def test_an_index_of_ours_that_cannot_be_built_is_named_with_what_to_do(tmp_path: Path, store: Store) -> None:
    query = get_server().query
    query("DROP INDEX refdesk_title")
    query("CREATE (:Document {title_key: $text, foreign: true})", text=UNINDEXABLE)
    query("CREATE TEXT INDEX refdesk_title FOR (d:Document) ON (d.title_key)")
    try:
        with pytest.raises(StoreError, match="refdesk_title") as caught:
            async with open_store(get_store_url(tmp_path)):
                pass
    finally:
        query("MATCH (d:Document {foreign: true}) DELETE d")
    query("DROP INDEX refdesk_title")
    (renew,) = re.findall(r"MATCH .*? = 0", caught.value.message)
    query(renew)
    async with open_store(get_store_url(tmp_path)) as again:
        await put(again, make_document("a", title="Apple pie"))
        assert await find_ids(again, asking("apple", title_contains="apple")) == ["a"]


async def test_a_title_of_any_length_is_kept_whole_and_found_by_its_beginning(store: Store) -> None:
    title = "Apple " + "漢" * 20_000
    await put(store, make_document("a", title=title))
    (document,) = await store.get_documents(NOTES, ["a"])
    assert document is not None
    assert document.title == title
    assert await find_ids(store, asking("pear", title_contains="apple 漢")) == ["a"]


async def test_a_schema_of_a_newer_refdesk_is_refused(tmp_path: Path, store: Store) -> None:
    assert await store.get_digests(NOTES) == {}
    set_version = "MATCH (r:Refdesk {name: 'schema'}) WITH r, r.version AS old SET r.version = $new RETURN old"
    ((version,),) = get_server().query(set_version, new=999)
    try:
        with pytest.raises(ConfigurationError, match="newer refdesk"):
            async with open_store(get_store_url(tmp_path)):
                pass
    finally:
        get_server().query(set_version, new=version)


async def test_text_of_a_newer_analysis_is_neither_read_nor_added_to(tmp_path: Path, store: Store) -> None:
    name = f"space {get_namespace(tmp_path)}"
    get_server().query("MATCH (r:Refdesk {name: $name}) SET r.analysis = 999", name=name)
    with pytest.raises(ConfigurationError, match="newer refdesk"):
        async with open_store(get_store_url(tmp_path)):
            pass
    with pytest.raises(StoreError, match="newer refdesk"):
        await put(store, make_document("b"))


async def test_a_users_own_nodes_beside_ours_are_left_alone(tmp_path: Path, store: Store) -> None:
    names = ("Document", "Thing", "Record", "Collection", "Passage")
    for name in names:
        get_server().query(
            f"CREATE (:{name} {{own: $space}}), (:{name} {{own: $space}})", space=get_namespace(tmp_path)
        )  # pyright: ignore[reportArgumentType]
    await put(store, make_document("a", "apple"))
    assert await find_ids(store, asking()) == ["a"]
    (statistics,) = await store.get_statistics()
    assert statistics.documents[State.CURRENT] == 1
    own = get_server().query("MATCH (n {own: $space}) RETURN count(n)", space=get_namespace(tmp_path))
    assert own == [[2 * len(names)]]


async def test_the_queries_of_the_guide_find_what_they_say() -> None:
    guide = (REPOSITORY / "docs" / "how-to" / "run-on-neo4j.md").read_text("utf-8")
    listing, chains, history = re.findall(r"```cypher\n(.*?)```", guide, re.DOTALL)
    skills = Collection("acme", "skills")
    new, old = (make_document(id, title=id.title(), collection=skills) for id in ("new", "old"))
    async with open_store(get_server().get_url("support")) as support:
        await put(support, new, replace(old, state=State.SUPERSEDED))
        await put(support, revise(new, title="Newer"))
        source = Reference("skills", "new")
        await put_links(
            support,
            Link("acme", source, "supersedes", Reference("skills", "old"), NOW),
            Link("acme", source, "produced", TASK, NOW),
        )
    assert [row[:3] for row in get_server().query(listing)] == [["new", "Newer", 2]]
    assert get_server().query(chains) == [[["Newer", "Old"], "PRODUCED", "", "TASK-7"]]
    assert [row[::2] for row in get_server().query(history, id="new")] == [[1, "New"]]


async def test_the_engine_names_itself(store: Store) -> None:
    assert store.engine.startswith("Neo4j 5.26.")
