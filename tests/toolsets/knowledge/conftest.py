"""A knowledge base on each engine, with a clock that tests move and two agents of one org and one of another."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import FixedClock
from refdesk.core.context import Context
from refdesk.core.identifiers import SequentialIdentifiers
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing.quotas import Quota
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.model import Principal
from refdesk.toolsets.knowledge import models, operations
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from tests.core.fakes import NOW
from tests.stores.conftest import ENGINE_NAMES, ENGINES

SCOPES = frozenset({"knowledge:read", "knowledge:write"})


@dataclass(slots=True)
class Desk:
    """What an agent can do, in one line each."""

    base: KnowledgeBase
    clock: FixedClock
    org: str = "acme"
    agent: str = "ann"
    scopes: frozenset[str] = field(default=SCOPES)

    def as_agent(self, agent: str, org: str = "acme", *scopes: str) -> Desk:
        return replace(self, agent=agent, org=org, scopes=self.scopes | set(scopes))

    def limit(self, *, per_org: int | None = None, per_agent: int | None = None) -> Desk:
        quota = Quota(QUOTA_NAME, per_org, per_agent)
        return replace(self, base=replace(self.base, quotas={quota.name: quota}))

    @property
    def context(self) -> Context:
        return Context(Principal(self.org, self.agent, self.scopes), self.base)

    async def store(self, title: str, body: str = "Some text.", **more: object) -> models.StoreOutput:
        entry = models.StoreInput.model_validate({"title": title, "body": body, **more})
        return await operations.store_knowledge(self.context, entry)

    async def search(self, query: str, **more: object) -> list[models.KnowledgeResult]:
        return (await self.ask(query, **more)).results

    async def ask(self, query: str, **more: object) -> models.SearchOutput:
        asked = models.SearchInput.model_validate({"query": query, **more})
        return await operations.search_knowledge(self.context, asked)

    async def supersede(self, old: str, new: str) -> str:
        pair = models.SupersedeInput.model_validate({"oldId": old, "newId": new})
        return (await operations.supersede_knowledge(self.context, pair)).head_id

    async def withdraw(self, id: str) -> models.LifeOutput:
        return await operations.withdraw_knowledge(self.context, models.LifeInput(id=id))

    async def restore(self, id: str) -> models.LifeOutput:
        return await operations.restore_knowledge(self.context, models.LifeInput(id=id))

    async def get(self, id: str, **more: object) -> models.KnowledgeEntry:
        asked = models.GetInput.model_validate({"id": id, **more})
        return await operations.get_knowledge(self.context, asked)

    async def embed(self) -> None:
        assert self.base.semantics is not None
        await Indexer(self.base.store, self.base.semantics, self.clock).run_once()


@pytest.fixture(params=ENGINE_NAMES)
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Desk]:
    clock = FixedClock(NOW)
    async with ENGINES[request.param](tmp_path, clock) as store:
        base = KnowledgeBase(store, Semantics(store, HashingEmbedder()), clock, SequentialIdentifiers())
        yield Desk(base, clock)
