"""Backfill: rebuilds the search tables from the documents when the text analysis has changed."""

from __future__ import annotations

import anyio.to_thread

from refdesk.core.keeping.rows import decode_revision
from refdesk.errors import ConfigurationError
from refdesk.model import Collection
from refdesk.stores.postgres.connections import ALL_ORGS, Connections, Scope, Statement
from refdesk.stores.postgres.indexing import ANALYSIS_VERSION
from refdesk.stores.postgres.lexical import count_terms
from refdesk.stores.postgres.texts import unpack
from refdesk.stores.postgres.transactions import Session
from refdesk.stores.postgres.writes import index_anew, prepare_revisions

BATCH = 500
"""Documents read, analysed and written at a time."""

_GET_VERSION = "SELECT value FROM counters WHERE name = 'analysis'"
_SET_VERSION = "UPDATE counters SET value = %s WHERE name = 'analysis'"
_CLEAR = (
    "DELETE FROM entries WHERE org = %(org)s AND toolset = %(toolset)s",
    "DELETE FROM term_counts WHERE org = %(org)s AND toolset = %(toolset)s",
    "DELETE FROM term_changes WHERE org = %(org)s AND toolset = %(toolset)s",
    """
    UPDATE collections SET documents = 0, words = 0, counted = 0, uncounted = 0
    WHERE org = %(org)s AND toolset = %(toolset)s
    """,
)
_CLEAR_SPANS = "DELETE FROM spans"
_GET_COLLECTIONS = "SELECT org, toolset FROM collections ORDER BY org, toolset"
_GET_DOCUMENTS = """
    SELECT key, id, recorded_at, version, state, created_at, modified_at, author, facets, spans, data, texts
    FROM documents WHERE org = %s AND toolset = %s AND key > %s ORDER BY key LIMIT %s
"""


async def is_outdated(connections: Connections) -> bool:
    """Return whether what searches read was made by an older analysis.

    Raises:
        ConfigurationError: It was made by a newer one.
    """
    (rows,) = await connections.read(Scope(""), Statement(_GET_VERSION))
    version = rows[0][0]
    if version > ANALYSIS_VERSION:
        raise ConfigurationError("The store was written by a newer refdesk: upgrade this one.")
    return version < ANALYSIS_VERSION


async def rebuild(session: Session) -> None:
    """Rebuild the search tables, unless another process has just done so; documents stay as they are."""
    (rows,) = await session.send(ALL_ORGS, Statement(_GET_VERSION))
    if rows[0][0] == ANALYSIS_VERSION:
        return
    await session.take_time(ALL_ORGS)
    *_, places, _ = await session.send(
        ALL_ORGS,
        Statement(_CLEAR_SPANS),
        Statement(_GET_COLLECTIONS),
        Statement(_SET_VERSION, (ANALYSIS_VERSION,)),
    )
    for org, toolset in places:
        await _rebuild_collection(session, Collection(org, toolset))


async def _rebuild_collection(session: Session, collection: Collection) -> None:
    scope, last = Scope(collection.org), 0
    place: dict[str, object] = {"org": collection.org, "toolset": collection.toolset}
    await session.post(scope, *(Statement(text, place) for text in _CLEAR))
    while True:
        values = (collection.org, collection.toolset, last, BATCH)
        (rows,) = await session.send(scope, Statement(_GET_DOCUMENTS, values))
        if not rows:
            break
        present = [decode_revision(collection, row[1], unpack(row[2:])) for row in rows]
        prepared = await anyio.to_thread.run_sync(prepare_revisions, present)
        last = rows[-1][0]
        await session.post(scope, *index_anew(collection, prepared, [row[0] for row in rows]))
    await session.post(scope, *count_terms(collection.org, collection.toolset))
