"""What is to be embedded is found at the cost of what was written since, and nothing of it escapes for long."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from refdesk.core.background.due import SURE_FOR
from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import FixedClock
from refdesk.core.search.semantics import Semantics
from refdesk.model import Collection, Document, State
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.freezing import Sizes
from tests.core.fakes import NOTES, NOW, ScriptedEmbedder, make_document
from tests.stores.sqlite.steps import counting_steps

SOON = timedelta(seconds=30)


class Process:
    """A process that embeds what is in a store that others write to as well."""

    def __init__(self, store: Store, clock: FixedClock, embedder: ScriptedEmbedder | None = None) -> None:
        self.store, self.clock = store, clock
        self.embedder = embedder or ScriptedEmbedder()
        self.indexer = Indexer(store, Semantics(store, self.embedder), clock)

    async def embed(self) -> list[str]:
        """Embed what is due; return the titles of it, in order."""
        before = len(self.embedder.seen)
        await self.indexer.run_once()
        return sorted(text.splitlines()[0] for text in self.embedder.seen[before:])

    async def list_missing(self, collection: Collection = NOTES) -> list[str]:
        return await self.store.get_unembedded(collection, self.embedder.name, 1000)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


async def put(store: Store, *documents: Document) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)


async def count_steps_of_a_wake(path: Path, documents: int) -> int:
    """Return how many steps it takes SQLite until one more document is embedded, beside so many that are."""
    with counting_steps() as steps:
        # What searches read is kept level beside it, once for many.
        async with open_store(path, index_sizes=Sizes(catch_up_above=2 * documents + 100)) as store:
            process = Process(store, FixedClock(NOW))
            await put(store, *(make_document(f"{number:04}") for number in range(documents)))
            await process.indexer.run_once()
            # It knows by now that nothing else is left, and has nothing to write that comes once.
            await put(store, make_document("first"))
            await process.indexer.run_once()
            await put(store, make_document("second"))
            steps.clear()
            assert await process.indexer.run_once() == 1
            return sum(steps)


async def test_what_it_takes_to_embed_a_document_does_not_grow_with_the_collection(tmp_path: Path) -> None:
    few = await count_steps_of_a_wake(tmp_path / "few.sqlite3", 10)
    many = await count_steps_of_a_wake(tmp_path / "many.sqlite3", 1000)
    assert many < few + 500


async def test_what_another_process_writes_is_found(store: MemoryStore, clock: FixedClock) -> None:
    process = Process(store, clock)
    await put(store, make_document("a"))
    await process.indexer.run_once()
    await put(store, make_document("b"), replace(make_document("c"), collection=Collection("other", "notes")))
    assert await process.embed() == ["Note b", "Note c"]
    await put(store, make_document("a", "Other words.", version=2))
    assert await process.embed() == ["Note a"]
    await put(store, make_document("d", state=State.WITHDRAWN))
    assert await process.embed() == []
    await put(store, make_document("d", version=2))
    assert await process.embed() == ["Note d"]


async def test_what_failed_is_tried_again_though_all_after_it_was_seen(store: MemoryStore, clock: FixedClock) -> None:
    process = Process(store, clock, ScriptedEmbedder(poison=frozenset({"venom"})))
    await put(store, make_document("bad", "venom"), make_document("worse", "venom"))
    await process.indexer.run_once()
    await put(store, make_document("good"))
    assert await process.embed() == ["Note good"]
    process.embedder.poison = frozenset()
    assert await process.embed() == []
    clock.advance(SOON)
    await put(store, make_document("worse", version=2, state=State.WITHDRAWN))
    assert await process.embed() == ["Note bad"]
    assert await process.list_missing() == []


async def test_what_another_process_lets_be_tried_again_is(store: MemoryStore, clock: FixedClock) -> None:
    process = Process(store, clock, ScriptedEmbedder(poison=frozenset({"venom"})))
    await put(store, make_document("bad", "venom"))
    await process.indexer.run_once()
    await put(store, make_document("good"))
    await process.indexer.run_once()
    process.embedder.poison = frozenset()
    assert await Process(store, clock).indexer.retry_failures() == 1
    assert await process.embed() == ["Note bad"]


async def test_vectors_that_another_process_removed_are_made_anew_before_their_model_is_adopted(
    store: MemoryStore, clock: FixedClock
) -> None:
    process, other = Process(store, clock), Process(store, clock, ScriptedEmbedder("other"))
    await put(store, make_document("a"), make_document("b"), make_document("bad", "venom"))
    await other.indexer.run_once()
    process.embedder.poison = frozenset({"venom"})
    await process.indexer.run_once()
    assert await process.list_missing() == ["bad"]
    await other.indexer.run_once()
    assert await process.list_missing() == ["a", "b", "bad"]
    process.embedder.poison = frozenset()
    await process.indexer.retry_failures()
    while await process.indexer.semantics.is_outdated():
        await process.indexer.run_once()
    assert await process.list_missing() == []


async def test_what_escaped_is_found_in_the_end(store: MemoryStore, clock: FixedClock) -> None:
    process = Process(store, clock)
    await put(store, make_document("a"))
    await process.indexer.run_once()
    async with store.transaction() as transaction:
        await transaction.remove_vectors(process.embedder.name)
    await put(store, make_document("b"))
    assert await process.embed() == ["Note b"]
    clock.advance(SURE_FOR)
    await put(store, make_document("c"))
    assert await process.embed() == ["Note a", "Note c"]
