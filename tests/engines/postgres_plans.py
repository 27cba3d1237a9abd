"""How PostgreSQL runs the searches of a store."""

from __future__ import annotations

from dataclasses import replace

from refdesk.model import FindRequest
from refdesk.protocols import Store
from refdesk.stores.postgres.connections import Scope, Statement, Text, part, spell, to_text
from refdesk.stores.postgres.search import Limits, Searcher
from refdesk.stores.postgres.statements import Step
from refdesk.stores.postgres.store import PostgresStore


async def explain(store: Store, request: FindRequest, limits: Limits | None = None, *, is_generic: bool = False) -> str:
    """Return the plans of a search's statements as the store runs them: under the same settings, by the same role.

    Args:
        store: The store.
        request: The search.
        limits: Other limits than the store's.
        is_generic: Whether to plan as for all values together, which is how prepared statements are planned.
    """
    assert isinstance(store, PostgresStore)
    searcher = Searcher(store.connections, limits or Limits())
    await searcher.find(request)
    both = [each for step in searcher.plan(request).list_steps() for each in (_explain(step, is_generic), step)]
    rows = await store.connections.read(Scope(request.collection.org), *(each.statement for each in both))
    return "\n".join(str(line) for explained in rows[::2] for (line,) in explained)


def _explain(step: Step, is_generic: bool) -> Step:
    text = f"(GENERIC_PLAN) {part(to_text(step.statement))[0]}" if is_generic else spell(step.statement)
    return replace(step, statement=Statement(Text(f"EXPLAIN {text}")))
