from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from refdesk.core.background.embedding import BATCH_DOCUMENTS, MAX_ATTEMPTS, Indexer
from refdesk.core.background.leases import Holder, Lease
from refdesk.core.clock import FixedClock
from refdesk.core.keeping import erasing
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing import audit
from refdesk.errors import EmbedderError, NotFoundError
from refdesk.model import Collection, Document, EmbeddingModel, FindRequest, State, Vector
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOTES, NOW, ScriptedEmbedder, make_document


class Bench:
    """A store with documents, an embedder and an indexer over them."""

    def __init__(self, embedder: ScriptedEmbedder | None = None, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.clock = FixedClock(NOW)
        self.embedder = embedder or ScriptedEmbedder()
        self.semantics = Semantics(self.store, self.embedder)
        self.indexer = Indexer(self.store, self.semantics, self.clock)

    async def put(self, *documents: Document) -> None:
        async with self.store.transaction() as transaction:
            await transaction.put_documents(documents)

    async def list_missing(self) -> list[str]:
        return await self.store.get_unembedded(NOTES, self.embedder.name, 100)


async def test_documents_get_vectors_and_can_be_found_by_them() -> None:
    bench = Bench()
    await bench.put(*(make_document(f"{n:03}") for n in range(40)))
    assert await bench.indexer.count_pending() == 40
    assert await bench.indexer.run_once() == 40
    assert await bench.list_missing() == []
    assert await bench.indexer.count_pending() == 0
    query, _ = await bench.semantics.embed_query("anything", "acme")
    found = await bench.store.find(FindRequest(NOTES, vector=query))
    assert len(found.candidates) == 40


class AbsentEmbedder(ScriptedEmbedder):
    """Embeds nothing, and counts how often it is asked for passages: each time a service that hangs is waited for."""

    attempts: int = 0

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        self.attempts += 1
        return await super().embed_passages(texts)


async def test_a_service_that_is_away_is_not_waited_for_once_more_for_a_document() -> None:
    embedder = AbsentEmbedder(is_down=True)
    bench = Bench(embedder)
    await bench.put(*(make_document(f"{n}") for n in range(3)))
    with pytest.raises(EmbedderError):
        await bench.indexer.run_once()
    assert (embedder.attempts, len(embedder.asked)) == (1, 1)
    assert await bench.indexer.list_failures() == []


class WatchedEmbedder(ScriptedEmbedder):
    """Notes how much an indexer says it is working on while it embeds."""

    indexer: Indexer | None = None
    at_work: tuple[int, ...] = ()

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        assert self.indexer is not None
        self.at_work += (self.indexer.at_work,)
        return await super().embed_passages(texts)


async def test_an_indexer_says_that_it_works_while_it_does() -> None:
    embedder = WatchedEmbedder()
    bench = Bench(embedder)
    embedder.indexer = bench.indexer
    await bench.put(make_document("a"))
    await bench.indexer.run_once()
    assert (embedder.at_work, bench.indexer.at_work) == ((1,), 0)


async def test_a_second_round_has_nothing_to_do() -> None:
    bench = Bench()
    await bench.put(make_document("a"))
    await bench.indexer.run_once()
    seen = list(bench.embedder.seen)
    assert await bench.indexer.run_once() == 0
    assert bench.embedder.seen == seen


class WatchedStore(MemoryStore):
    """Counts how often everything is looked through."""

    looks = 0

    async def get_unembedded(self, collection: Collection, model: str, limit: int, since: str = "") -> list[str]:
        self.looks += 1
        return await super().get_unembedded(collection, model, limit, since)


async def test_nothing_is_looked_for_again_until_something_was_written() -> None:
    bench = Bench(store=(store := WatchedStore()))
    await bench.put(make_document("a"))
    await bench.indexer.run_once()
    await bench.indexer.run_once()
    looks = store.looks
    assert await bench.indexer.run_once() == 0
    assert store.looks == looks
    await bench.put(make_document("b"))
    assert await bench.indexer.run_once() == 1
    assert await bench.list_missing() == []


async def test_what_failed_is_looked_for_though_nothing_was_written() -> None:
    bench = Bench(ScriptedEmbedder(poison=frozenset({"venom"})))
    await bench.put(make_document("a", "venom"))
    await bench.indexer.run_once()
    assert await bench.indexer.run_once() == 0
    bench.embedder.poison = frozenset()
    bench.clock.advance(timedelta(days=1))
    assert await bench.indexer.run_once() == 1


async def test_a_changed_text_is_embedded_again_and_an_unchanged_one_is_not() -> None:
    bench = Bench()
    await bench.put(make_document("a"), make_document("b"))
    await bench.indexer.run_once()
    await bench.put(
        make_document("a", "Other words.", version=2), make_document("b", facets={"tags": ("x",)}, version=2)
    )
    assert await bench.list_missing() == ["a"]
    assert await bench.indexer.run_once() == 1


async def test_withdrawn_documents_are_left_alone() -> None:
    bench = Bench()
    await bench.put(make_document("a", state=State.WITHDRAWN))
    assert await bench.indexer.run_once() == 0
    assert await bench.indexer.count_pending() == 0


async def test_one_document_that_fails_does_not_keep_the_others_waiting() -> None:
    bench = Bench(ScriptedEmbedder(poison=frozenset({"venom"})))
    await bench.put(make_document("a", "venom"), *(make_document(f"n{n}") for n in range(20)))
    await bench.indexer.run_once()
    assert await bench.list_missing() == ["a"]
    [failure] = await bench.indexer.list_failures()
    assert (failure.id, failure.attempts, failure.reason) == ("a", 1, "the model chokes on this")
    assert not failure.is_final


class ErasedEmbedder(ScriptedEmbedder):
    """Chokes on a document that is erased while it reads it."""

    bench: Bench | None = None

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        assert self.bench is not None
        if self.poison and any("venom" in text for text in texts) and len(texts) == 1:
            actor = audit.Actor("acme", "ann", "test")
            with suppress(NotFoundError):
                await erasing.erase(self.bench.store, self.bench.clock, actor, erasing.Erasable("acme"))
        return await super().embed_passages(texts)


async def test_of_a_document_that_is_erased_while_it_fails_nothing_is_kept() -> None:
    embedder = ErasedEmbedder(poison=frozenset({"venom"}))
    bench = embedder.bench = Bench(embedder)
    await bench.put(make_document("a", "venom"), make_document("b"))
    await bench.indexer.run_once()
    assert await bench.indexer.list_failures() == []
    assert [each for each in await bench.store.list_all_metadata(None, 10) if each.key.org == "acme"] == []
    assert await bench.indexer.count_pending() == 0


async def test_a_failing_document_is_tried_later_and_later_and_then_set_aside() -> None:
    bench = Bench(ScriptedEmbedder(poison=frozenset({"venom"})))
    await bench.put(make_document("a", "venom"))
    waits: list[timedelta] = []
    while not (failures := await bench.indexer.list_failures()) or not failures[0].is_final:
        if failures and failures[0].retry_at:
            waits.append(failures[0].retry_at - bench.clock.now())
            assert await bench.indexer.run_once() == 0
            bench.clock.advance(waits[-1])
        await bench.indexer.run_once()
    assert failures[0].attempts == MAX_ATTEMPTS
    assert waits == [timedelta(seconds=10 * 4**n) for n in range(MAX_ATTEMPTS - 1)]
    bench.clock.advance(timedelta(days=365))
    assert await bench.indexer.run_once() == 0


async def test_a_document_set_aside_is_tried_again_on_request_or_when_its_text_changes() -> None:
    bench = Bench(ScriptedEmbedder(poison=frozenset({"venom"})))
    await bench.put(make_document("a", "venom"), make_document("b", "more venom"))
    for _ in range(MAX_ATTEMPTS):
        await bench.indexer.run_once()
        bench.clock.advance(timedelta(days=1))
    assert all(failure.is_final for failure in await bench.indexer.list_failures())
    await bench.put(make_document("a", "honey", version=2))
    assert await bench.indexer.run_once() == 1
    assert await bench.list_missing() == ["b"]
    bench.embedder.poison = frozenset()
    assert await bench.indexer.retry_failures() == 1
    await bench.indexer.run_once()
    assert await bench.list_missing() == []


async def test_an_outage_of_the_model_is_nobodys_failure() -> None:
    bench = Bench(ScriptedEmbedder(is_down=True))
    await bench.put(make_document("a"), make_document("b"))
    with pytest.raises(EmbedderError):
        await bench.indexer.run_once()
    assert await bench.indexer.list_failures() == []
    bench.embedder.is_down = False
    assert await bench.indexer.run_once() == 2


async def test_only_one_process_embeds_at_a_time() -> None:
    bench = Bench()
    await bench.put(make_document("a"))
    other = Lease("embedding", bench.store, bench.clock, Holder(host="elsewhere"))
    await other.acquire()
    assert await bench.indexer.run_once() == 0
    await other.release()
    assert await bench.indexer.run_once() == 1


class OvertakenEmbedder(ScriptedEmbedder):
    """Another process takes over the work while this one is embedding."""

    bench: Bench

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        vectors = await ScriptedEmbedder.embed_passages(self, texts)
        self.bench.clock.advance(timedelta(minutes=5))
        assert await Lease("embedding", self.bench.store, self.bench.clock, Holder(host="elsewhere")).acquire()
        return vectors


async def test_a_worker_that_lost_its_lease_writes_nothing() -> None:
    embedder = OvertakenEmbedder()
    bench = embedder.bench = Bench(embedder)
    await bench.put(make_document("a"))
    assert await bench.indexer.run_once() == 0
    assert await bench.list_missing() == ["a"]


async def test_a_new_model_takes_over_only_when_everything_has_its_vectors() -> None:
    bench = Bench(ScriptedEmbedder("old"))
    await bench.put(*(make_document(f"{n}") for n in range(3)))
    await bench.indexer.run_once()
    new = ScriptedEmbedder("new", poison=frozenset({"Note 2"}))
    semantics = Semantics(bench.store, new, reopen=lambda _: bench.embedder)
    indexer = Indexer(bench.store, semantics, bench.clock)
    await indexer.run_once()
    query, _ = await semantics.embed_query("x", "acme")
    assert query is not None
    assert query.model == "old"
    new.poison = frozenset()
    await indexer.retry_failures()
    await indexer.run_once()
    query, _ = await semantics.embed_query("x", "acme")
    assert query is not None
    assert query.model == "new"
    assert await bench.list_missing() == ["0", "1", "2"]


def change_model(bench: Bench, new: ScriptedEmbedder) -> Indexer:
    """Return a process whose settings name another model."""
    return Indexer(bench.store, Semantics(bench.store, new, reopen=lambda _: bench.embedder), bench.clock)


async def read_model(indexer: Indexer) -> str:
    active = await indexer.semantics.get_active()
    return active.model.name if active is not None else ""


async def test_a_document_that_the_new_model_refuses_for_good_does_not_keep_the_others_from_it() -> None:
    bench = Bench(ScriptedEmbedder("old"))
    await bench.put(*(make_document(f"{n}") for n in range(3)))
    await bench.indexer.run_once()
    indexer = change_model(bench, ScriptedEmbedder("new", poison=frozenset({"Note 2"})))
    for _ in range(MAX_ATTEMPTS):
        assert await read_model(indexer) == "old"
        await indexer.run_once()
        bench.clock.advance(timedelta(days=1))
    assert await read_model(indexer) == "new"
    assert [failure.id for failure in await indexer.list_failures()] == ["2"]


async def test_a_model_that_refuses_much_does_not_take_over() -> None:
    bench = Bench(ScriptedEmbedder("old"))
    await bench.put(*(make_document(f"{n}") for n in range(3)))
    await bench.indexer.run_once()
    indexer = change_model(bench, ScriptedEmbedder("new", poison=frozenset({"Note 1", "Note 2"})))
    for _ in range(2 * MAX_ATTEMPTS):
        await indexer.run_once()
        bench.clock.advance(timedelta(days=1))
    assert await read_model(indexer) == "old"


@pytest.mark.parametrize("state", [State.CURRENT, State.WITHDRAWN])
async def test_what_the_former_model_refused_is_tried_with_the_new_one(state: State) -> None:
    bench = Bench(ScriptedEmbedder("old", poison=frozenset({"venom"})))
    await bench.put(make_document("a", "venom"), make_document("b"))
    for _ in range(MAX_ATTEMPTS):
        await bench.indexer.run_once()
        bench.clock.advance(timedelta(days=1))
    await bench.put(make_document("a", "venom", version=2, state=state))
    indexer = change_model(bench, ScriptedEmbedder("new"))
    await indexer.run_once()
    assert await read_model(indexer) == "new"
    assert await bench.store.get_unembedded(NOTES, "new", 10) == []


async def test_processes_whose_settings_differ_do_not_change_the_model_back_and_forth() -> None:
    bench = Bench(ScriptedEmbedder("old"))
    models = {"old": bench.embedder, "new": ScriptedEmbedder("new")}

    def start(name: str) -> Indexer:
        semantics = Semantics(bench.store, models[name], reopen=lambda model: models[model.name])
        return Indexer(bench.store, semantics, bench.clock)

    await bench.put(*(make_document(f"{n}") for n in range(3)))
    first, second = start("old"), start("new")
    for _ in range(3):
        await first.run_once()
        await second.run_once()
    assert [len(models[name].seen) for name in ("old", "new")] == [3, 3]
    await bench.put(make_document("late"))
    await first.run_once()
    assert await read_model(first) == "new"
    assert models["new"].seen[-1].endswith("late.")
    await start("old").run_once()
    assert await read_model(second) == "old"
    await second.run_once()
    assert await bench.store.get_unembedded(NOTES, "old", 10) == []


async def test_a_process_that_cannot_have_the_newer_model_embeds_nothing_and_takes_over_after_its_next_start() -> None:
    bench = Bench(ScriptedEmbedder("old"))
    await bench.put(make_document("a"))
    await bench.indexer.run_once()
    await change_model(bench, ScriptedEmbedder("new")).run_once()
    await bench.put(make_document("b"))
    assert await bench.indexer.run_once() == 0
    assert not await bench.semantics.is_outdated()
    assert await bench.semantics.find_missing() == EmbeddingModel("new", 8)
    again = Indexer(bench.store, Semantics(bench.store, bench.embedder), bench.clock)
    assert await again.run_once() == 2
    assert await bench.semantics.find_missing() is None


async def test_what_is_written_while_the_model_changes_is_found_by_the_former_meanwhile() -> None:
    bench = Bench(ScriptedEmbedder("old", poison=frozenset({"venom"})))
    await bench.put(*(make_document(f"{n}") for n in range(3)))
    await bench.indexer.run_once()
    indexer = change_model(bench, ScriptedEmbedder("new", poison=frozenset({"Note 2"})))
    await indexer.run_once()
    await bench.put(make_document("0", "Another text.", version=2), make_document("late"), make_document("x", "venom"))
    bench.clock.advance(timedelta(seconds=1))
    await indexer.run_once()
    assert await bench.store.get_unembedded(NOTES, "old", 10) == ["x"]
    assert await bench.store.get_unembedded(NOTES, "new", 10) == ["2"]


async def test_vectors_of_a_change_that_was_given_up_are_removed() -> None:
    bench = Bench(ScriptedEmbedder("old"))
    await bench.put(*(make_document(f"{n}") for n in range(3)))
    await bench.indexer.run_once()
    await change_model(bench, ScriptedEmbedder("new", poison=frozenset({"Note 2"}))).run_once()
    assert await bench.store.get_embedded(NOTES, "new", ["0", "1", "2"]) == {"0", "1"}
    back = change_model(bench, bench.embedder)
    other = Lease("embedding", bench.store, bench.clock, Holder(host="elsewhere"))
    await other.acquire()
    await back.run_once()
    assert await bench.store.get_embedded(NOTES, "new", ["0"]) == {"0"}
    await other.release()
    await bench.put(make_document("3"))
    await back.run_once()
    await back.run_once()
    assert await bench.store.get_embedded(NOTES, "new", ["0", "1", "2"]) == frozenset()
    assert await bench.store.get_embedded(NOTES, "old", ["0", "1", "2"]) == {"0", "1", "2"}


async def test_the_loop_goes_on_after_trouble_and_wakes_at_the_bell() -> None:
    bench = Bench(ScriptedEmbedder(is_down=True))
    await bench.put(make_document("a"))
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            group.start_soon(bench.indexer.run)
            await anyio.wait_all_tasks_blocked()
            bench.embedder.is_down = False
            while await bench.list_missing():
                bench.semantics.doorbell.ring()
                await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()


async def test_an_org_that_writes_much_keeps_no_other_waiting() -> None:
    bench = Bench()
    await bench.put(*(make_document(f"{n:03}", f"much {n}") for n in range(100)))
    other = replace(make_document("x", "little"), collection=Collection("other", NOTES.toolset))
    await bench.put(other)
    await bench.indexer.run_once()
    place = next(n for n, text in enumerate(bench.embedder.seen) if "little" in text)
    assert place <= 2 * BATCH_DOCUMENTS
