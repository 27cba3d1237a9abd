"""How PostgreSQL runs the searches of a store."""

from __future__ import annotations

from dataclasses import replace

import psycopg

from refdesk.model import FindRequest
from refdesk.protocols import Store
from refdesk.stores.postgres.connections import Scope, Statement, Text, spell
from refdesk.stores.postgres.search import Limits, Searcher
from refdesk.stores.postgres.statements import Step
from refdesk.stores.postgres.store import PostgresStore


async def explain(store: Store, request: FindRequest, limits: Limits | None = None) -> str:
    """Return the plans of a search's statements as the store runs them: under the same settings, by the same role."""
    assert isinstance(store, PostgresStore)
    searcher = Searcher(store.connections, limits or Limits())
    await searcher.find(request)
    async with store.connections.pool.lend() as connection:
        cursor = psycopg.AsyncClientCursor(connection)
        both = [each for step in searcher.plan(request).list_steps() for each in (_explain(cursor, step), step)]
    rows = await store.connections.read(Scope(request.collection.org), *(each.statement for each in both))
    return "\n".join(str(line) for explained in rows[::2] for (line,) in explained)


def _explain(cursor: psycopg.AsyncClientCursor[tuple[object, ...]], step: Step) -> Step:
    return replace(step, statement=Statement(Text(f"EXPLAIN {spell(step.statement)}")))
