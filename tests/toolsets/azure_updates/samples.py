"""Records, desks and questions in one line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from refdesk.core.background.embedding import Indexer
from refdesk.core.background.syncing import Syncer
from refdesk.core.clock import FixedClock
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.model import JsonObject, Principal
from refdesk.sources import SourcePage
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.azure_updates.models import SearchInput
from refdesk.toolsets.azure_updates.records import to_document
from refdesk.toolsets.azure_updates.search import search_updates
from sample_world.azure_updates.world import load_world
from tests.core.fakes import ScriptedEmbedder

CALLER = Principal("local", "tester", frozenset({"updates:read"}))


@dataclass(frozen=True, slots=True)
class Desk:
    """What a test asks, syncs and whose time it moves."""

    knowledge_base: KnowledgeBase
    syncer: Syncer
    clock: FixedClock

    @property
    def context(self) -> Context:
        return Context(CALLER, self.knowledge_base)

    async def ask(self, **arguments: object) -> dict[str, Any]:
        return await ask(self.context, **arguments)


class WorldSource:
    """The sample world's first day without a wire."""

    is_complete = True

    async def read(self, since: str | None) -> AsyncIterator[SourcePage]:
        assert since is None
        yield SourcePage(tuple(cast("list[JsonObject]", load_world())))


async def ask(context: Context, **arguments: object) -> dict[str, Any]:
    """Return the answer as a transport writes it."""
    answer = await search_updates(context, SearchInput.model_validate(arguments))
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


async def make_context(records: Iterable[JsonObject]) -> Context:
    """Return the context of a knowledge base that holds these records and was never synced."""
    clock = FixedClock(datetime(2026, 11, 7, 12, tzinfo=UTC))
    store = MemoryStore(clock)
    async with store.transaction() as transaction:
        await transaction.put_documents([to_document(record) for record in records])
    return Context(CALLER, KnowledgeBase(store, None, clock))


def make_record(id: object = "1", **changes: object) -> JsonObject:
    record: dict[str, object] = {
        "id": id,
        "title": f"Generally Available: Thing {id}",
        "description": "<p>It is here.</p>",
        "status": "Launched",
        "tags": ["Features"],
        "productCategories": ["Compute"],
        "products": ["Virtual Machines"],
        "availabilities": [{"ring": "General Availability", "year": 2026, "month": "March"}],
        "created": "2026-02-27T15:00:00.1234567Z",
        "modified": "2026-02-28T15:00:00.1234567Z",
        "locale": None,
    }
    return cast("JsonObject", record | changes)


def get_ids(answer: Mapping[str, Any]) -> list[str]:
    return [result["id"] for result in answer["results"]]


async def make_semantic(
    embedder: ScriptedEmbedder, *, embedded: bool = False, records: Sequence[JsonObject] = ()
) -> Context:
    """Return the context of a knowledge base with an embedder, which has embedded these records, or two, or not yet."""
    usual = [make_record("1", title="Keys in a vault"), make_record("2", title="Other thing")]
    plain = await make_context(records or usual)
    store = plain.knowledge_base.store
    assert isinstance(store, MemoryStore)
    semantics = Semantics(store, embedder)
    if embedded:
        await Indexer(store, semantics, plain.knowledge_base.clock).run_once()
    return Context(CALLER, KnowledgeBase(store, semantics, plain.knowledge_base.clock))
