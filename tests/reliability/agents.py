"""A process full of agents on one file: `python -m tests.reliability.agents PATH MANNER`.

It takes one order a line, as JSON, carries out all of its calls at once, and says what each of them answered. Manner
`honest` is the store as it is; `racy` one whose transactions read before they begin.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.writing.quotas import Quota
from refdesk.errors import RefdeskError
from refdesk.model import Principal
from refdesk.protocols import Store, Transaction
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from refdesk.toolsets.knowledge.models import SearchInput, StoreInput, SupersedeInput
from refdesk.toolsets.knowledge.operations import (
    search_knowledge,
    store_knowledge,
    supersede_knowledge,
)
from tests.reliability.delegates import DelegatingStore, DelegatingTransaction

ORG = "acme"
SCOPES = frozenset({"knowledge:read", "knowledge:write", "knowledge:write_others"})

Answer = dict[str, Any]
Write = Callable[[Transaction], Awaitable[object]]


class RacyStore(DelegatingStore):
    """Checks first and writes later: nothing keeps another writer out in between."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._open_late()

    @asynccontextmanager
    async def _open_late(self) -> AsyncGenerator[Transaction]:
        late = _LateTransaction(self.inner)
        yield late
        async with self.inner.transaction() as transaction:
            for write in late.writes:
                await write(transaction)


class _LateTransaction(DelegatingTransaction):
    def __init__(self, store: Store) -> None:
        # It only reads through the store, and a store has every read that a transaction has.
        super().__init__(store)  # pyright: ignore[reportArgumentType]
        self.writes: list[Write] = []

    async def expect(self, documents: Sequence[Any], keys: Sequence[Any]) -> None:
        """Changes nothing, as it may."""

    async def put_documents(self, documents: Sequence[Any]) -> None:
        self.writes.append(lambda transaction: transaction.put_documents(documents))

    async def put_links(self, links: Sequence[Any]) -> None:
        self.writes.append(lambda transaction: transaction.put_links(links))

    async def put_metadata(self, records: Sequence[Any]) -> None:
        self.writes.append(lambda transaction: transaction.put_metadata(records))

    async def remove_metadata(self, keys: Sequence[Any]) -> None:
        self.writes.append(lambda transaction: transaction.remove_metadata(keys))


def make_context(base: KnowledgeBase, agent: str) -> Context:
    return Context(Principal(ORG, agent, SCOPES), base)


async def store(base: KnowledgeBase, agent: str, title: str, token: str | None = None) -> Answer:
    entry = {"title": title, "body": f"What {agent} learned: {title}.", "clientToken": token}
    stored = await store_knowledge(make_context(base, agent), StoreInput.model_validate(entry))
    return {"title": title, "id": stored.id, "replayed": stored.replayed}


async def supersede(base: KnowledgeBase, agent: str, old: str, new: str) -> Answer:
    done = await supersede_knowledge(make_context(base, agent), SupersedeInput(old_id=old, new_id=new))
    return {"head": done.head_id}


async def search(base: KnowledgeBase, agent: str, query: str) -> Answer:
    found = await search_knowledge(make_context(base, agent), SearchInput.model_validate({"query": query}))
    return {"ids": [result.id for result in found.results]}


CALLS: dict[str, Callable[..., Awaitable[Answer]]] = {"store": store, "supersede": supersede, "search": search}


async def make_all(base: KnowledgeBase, agents: Sequence[Sequence[Answer]]) -> list[list[Answer]]:
    """Let every agent make its calls one after another, all agents at once; return what each call answered."""
    answers: list[list[Answer]] = [[] for _ in agents]

    async def make(calls: Sequence[Answer], own: list[Answer]) -> None:
        for call in calls:
            arguments = dict(call)
            try:
                own.append(await CALLS[arguments.pop("do")](base, **arguments))
            except RefdeskError as error:
                own.append({"error": error.code, "message": error.message})

    async with anyio.create_task_group() as group:
        for calls, own in zip(agents, answers, strict=True):
            group.start_soon(make, calls, own)
    return answers


async def obey(path: str, manner: str) -> None:
    async with open_store(Path(path)) as real:
        sys.stdout.write('"ready"\n')
        sys.stdout.flush()
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            order = json.loads(line)
            quota = Quota(QUOTA_NAME, per_org=order["quota"])
            base = KnowledgeBase(RacyStore(real) if manner == "racy" else real, quotas={quota.name: quota})
            sys.stdout.write(json.dumps(await make_all(base, order["agents"])) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(obey, sys.argv[1], sys.argv[2])
