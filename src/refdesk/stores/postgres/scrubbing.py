"""Lets the server reuse the room of removed rows."""

from __future__ import annotations

from psycopg.sql import SQL, Identifier

from refdesk.stores.postgres.connections import Connections, Statement
from refdesk.stores.postgres.unlimited import connect_without_limits

_HOLD_TEXT = (
    "documents",
    "revisions",
    "vectors",
    "entries",
    "spans",
    "links",
    "records",
)


async def vacuum(connections: Connections) -> None:
    """Let the room of removed rows be reused; waits for nobody, and nobody waits for it."""
    async with connect_without_limits(connections) as connection:
        for table in _HOLD_TEXT:
            await connections.send_alone(connection, Statement(SQL("VACUUM {}").format(Identifier(table))))
