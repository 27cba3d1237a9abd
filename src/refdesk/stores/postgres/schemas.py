"""The schema that holds a store: the first in the search path, and no other.

PostgreSQL skips a schema in the path that is missing, and also looks for a table in the schemas after the first one.
Another store may be there, so neither is left to PostgreSQL. The other schemas in the path are for the extension, whose
operators may be anywhere.
"""

from __future__ import annotations

import logging
import re

from refdesk.errors import ConfigurationError
from refdesk.stores.postgres.connections import Connections, Scope, Statement

logger = logging.getLogger(__name__)

_NOBODY = Scope("")
_GET = """
    SELECT current_setting('search_path'), current_user::text, current_schema()::text,
        to_regclass(quote_ident(current_schema()) || '.refdesk_migrations') IS NOT NULL,
        to_regclass('refdesk_migrations') IS NOT NULL
"""
_NAME = re.compile(r'"((?:[^"]|"")*)"|([^,\s]+)')
_MISSING = (
    "The schema {} that the search path names is not there, or the role may not use it: have its owner run "
    "`CREATE SCHEMA {} AUTHORIZATION {};`, or name another one in REFDESK_STORE."
)


async def find_schema(connections: Connections) -> tuple[str, bool]:
    """Return the schema that holds the store, or is to hold it, and whether its tables were begun.

    Raises:
        ConfigurationError: The first schema that the search path names does not exist.
    """
    (rows,) = await connections.read(_NOBODY, Statement(_GET))
    path, user, schema, has_tables, are_elsewhere = rows[0]
    wanted = choose(path, user, schema)
    if schema is None or wanted != schema:
        name = wanted or "public"
        raise ConfigurationError(_MISSING.format(name, _quote(name), _quote(user)))
    if are_elsewhere and not has_tables:
        logger.warning("another schema of the search path holds a store, which is left alone", extra={"schema": schema})
    return schema, has_tables


def choose(path: str, user: str, present: str | None) -> str | None:
    """Return which schema a search path means, or `None` if it names none.

    Args:
        path: As the server writes it: names that are not quoted count as lower case, however they are written.
        user: The role, whose own schema `$user` stands for; that one may be missing.
        present: The first schema in the path that exists.
    """
    for quoted, plain in _NAME.findall(path):
        name = quoted.replace('""', '"') if quoted else plain.lower()
        if name == "$user":
            if present == user:
                return user
        elif name:
            return name
    return None


def _quote(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
