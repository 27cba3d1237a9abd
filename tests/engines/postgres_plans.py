"""How PostgreSQL runs the searches of a store."""

from __future__ import annotations

from psycopg import sql

from refdesk.model import FindRequest
from refdesk.protocols import Store
from refdesk.stores.postgres.connections import Scope, Statement
from refdesk.stores.postgres.search import Limits, plan_search
from refdesk.stores.postgres.store import PostgresStore
from refdesk.stores.postgres.vectors import Graph


async def explain(store: Store, request: FindRequest, graph: Graph | None = None) -> str:
    """Return the plan of a search as the store runs it: under the same settings, by the same role."""
    assert isinstance(store, PostgresStore)
    async with store.connections.snapshot(Scope(request.collection.org)) as snapshot:
        search = await plan_search(snapshot, request, Limits())
        assert search is not None
        statement = search.find(graph, None)
        assert isinstance(statement.text, sql.Composed)
        explained = Statement(sql.SQL("EXPLAIN {}").format(statement.text), statement.values)
        *_, rows = await snapshot.send(*(graph.settings if graph else ()), explained)
    return "\n".join(str(line) for (line,) in rows)
