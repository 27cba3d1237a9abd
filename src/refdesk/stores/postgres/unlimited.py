"""A connection for what takes minutes and cannot be part of a transaction, whose settings would end with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from refdesk.stores.postgres.connections import Connections, Statement
from refdesk.stores.postgres.pool import Connection

# The limits of the role or the database are for ordinary statements. Behind a pooler the settings would be somebody
# else's, too. A server before PostgreSQL 17 lacks the last one.
_LIFT = """
    SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('lock_timeout', 'statement_timeout', 'transaction_timeout') AND pg_backend_pid() = %s
"""


@asynccontextmanager
async def connect_without_limits(connections: Connections) -> AsyncGenerator[Connection]:
    """Yield a connection of the caller's own, on which the server ends nothing because it takes long.

    Raises:
        StoreError: None can be made.
    """
    async with connections.pool.connect() as connection:
        await connections.send(connection, Statement(_LIFT, [connection.info.backend_pid]))
        yield connection
