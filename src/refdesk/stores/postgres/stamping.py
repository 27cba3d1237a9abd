"""When versions were recorded, where that was elsewhere and each at its own instant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refdesk.core.encoding import encode_instant
from refdesk.stores.postgres.connections import Scope, Statement
from refdesk.stores.postgres.sessions import Session

if TYPE_CHECKING:
    from refdesk.model import Collection, Revision

_STAMP = """
    UPDATE documents SET recorded_at = instant
    FROM unnest(%s::text[], %s::integer[], %s::bigint[]) AS stamped (id, version, instant)
    WHERE org = %s AND toolset = %s AND documents.id = stamped.id AND documents.version = stamped.version
"""
_STAMP_EARLIER = """
    UPDATE revisions SET recorded_at = instant
    FROM unnest(%s::text[], %s::integer[], %s::bigint[]) AS stamped (id, version, instant)
    JOIN documents ON documents.id = stamped.id
    WHERE documents.org = %s AND toolset = %s AND revisions.org = documents.org
        AND document = documents.key AND revisions.version = stamped.version
"""


async def stamp(session: Session, revisions: Sequence[Revision]) -> None:
    """Set when versions were recorded that have just been written."""
    by_collection: defaultdict[Collection, list[Revision]] = defaultdict(list)
    for revision in revisions:
        by_collection[revision.document.collection].append(revision)
    for collection, each in by_collection.items():
        columns = (
            [revision.document.id for revision in each],
            [revision.document.version for revision in each],
            [encode_instant(revision.recorded_at) for revision in each],
        )
        values = (*columns, collection.org, collection.toolset)
        await session.send(Scope(collection.org), Statement(_STAMP, values), Statement(_STAMP_EARLIER, values))
