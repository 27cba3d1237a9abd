"""Searches on standbys of the primary server: a standby is asked only if it has all that was written for the org.

Before a search the primary says how far the org's change sequence has come, which takes a fraction of a search, and a
standby how far it is. Where that one is behind, or does not answer, all others are asked at once, so that a search
waits no longer the more there are, and in the end the primary searches itself. A standby says how far it is once more
together with what it found: at one address there may be a balancer before several. So a search finds what anybody
stored before it, in whatever process. While the primary does not answer, what this process saw of the sequence last
has to do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import anyio

from refdesk.errors import StoreError
from refdesk.model import StoreNode
from refdesk.stores.postgres.connections import Connections, Scope, Statement
from refdesk.stores.postgres.schemas import find_schema
from refdesk.stores.postgres.search import GET_CHANGES, Limits, Searcher

if TYPE_CHECKING:
    from refdesk.model import FindRequest, Found

REST_SECONDS = 5.0
"""How long a standby that did not answer is left alone."""

PATIENCE_SECONDS = 5.0
"""How long to wait for a standby: the primary, which is asked next, needs time too."""

MOST_KNOWN = 10_000
"""Most orgs whose last seen position in the change sequence is remembered."""

_GET_PRIMARY = "SELECT pg_is_in_recovery(), CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_lsn() - '0/0' END"
_GET_STANDBY = """
    SELECT pg_is_in_recovery(), current_schema()::text, pg_last_wal_replay_lsn() - '0/0',
        extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8
"""


@dataclass(slots=True)
class Replica:
    """A standby."""

    name: str
    connections: Connections
    searcher: Searcher
    rests_until: float = 0.0

    def rest(self) -> None:
        """Leave it alone for a while."""
        self.rests_until = anyio.current_time() + REST_SECONDS


@dataclass(slots=True)
class Replicas:
    """The standbys of a primary, which take turns."""

    primary: Connections
    replicas: Sequence[Replica]
    schema: str
    _known: dict[str, int] = field(default_factory=dict[str, int])
    _turns: count[int] = field(default_factory=count)

    async def find(self, request: FindRequest) -> Found | None:
        """Return what a standby finds, or `None` if none that answers has all that was written for the org.

        Raises:
            StoreError: None does, and the primary has just been found silent: asking it again would take as long again.
        """
        awake = [each for each in self.replicas if each.rests_until <= anyio.current_time()]
        if not awake:
            return None
        org, first, since = request.collection.org, next(self._turns) % len(awake), anyio.current_time()
        [chosen, *others] = [*awake[first:], *awake[:first]]
        needed, reached = 0, list[tuple[Replica, int]]()

        async def ask_primary() -> None:
            nonlocal needed
            needed = await self._get_needed(org)

        # How far a standby is never shrinks, so that it may be asked before the primary says what is needed.
        async with anyio.create_task_group() as group:
            group.start_soon(ask_primary)
            reached = await self._ask(org, [chosen])
        found = await self._find_level(request, needed, reached)
        if found is None and others:
            found = await self._find_level(request, needed, await self._ask(org, others))
        if found is None:
            self.primary.pool.silence.check(since)
        return found

    async def _ask(self, org: str, replicas: Sequence[Replica]) -> list[tuple[Replica, int]]:
        """Return how far the org is on each standby that answers, all asked at once; the others rest for a while."""
        reached: dict[int, int] = {}

        async def ask(place: int, replica: Replica) -> None:
            try:
                reached[place] = await self._get_changes(replica.connections, org)
            except StoreError:
                replica.rest()

        async with anyio.create_task_group() as group:
            for place, each in enumerate(replicas):
                group.start_soon(ask, place, each)
        return [(each, reached[place]) for place, each in enumerate(replicas) if place in reached]

    async def _find_level(
        self, request: FindRequest, needed: int, reached: Sequence[tuple[Replica, int]]
    ) -> Found | None:
        for replica, changes in reached:
            if changes >= needed:
                try:
                    found = await replica.searcher.find_in(self.schema, request, needed)
                except StoreError:
                    replica.rest()
                else:
                    if found is not None:
                        return found
        return None

    async def list_nodes(self) -> list[StoreNode]:
        """Return the standbys, and how far behind each is."""
        try:
            ((_, written),) = (await self.primary.read(Scope(""), Statement(_GET_PRIMARY)))[0]
        except StoreError:
            written = None
        return [await _describe(replica, written, self.schema) for replica in self.replicas]

    async def _get_needed(self, org: str) -> int:
        try:
            needed = max(0, await self._get_changes(self.primary, org))
        except StoreError:
            return self._known.get(org, 0)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[org] = needed
        return needed

    async def _get_changes(self, connections: Connections, org: str) -> int:
        """Return how far the org's changes have got there; -1 if the connection leads to another schema."""
        (rows,) = await connections.read(Scope(org), Statement(GET_CHANGES, (org, self.schema)))
        return rows[0][0] if rows else -1


@asynccontextmanager
async def open_replicas(primary: Connections, urls: Sequence[str], limits: Limits) -> AsyncGenerator[Replicas | None]:
    """Yield the standbys at these URLs, which need not be up yet; `None` if there are no URLs."""
    if not urls:
        yield None
        return
    async with AsyncExitStack() as stack:
        replicas: list[Replica] = []
        for url in urls:
            connections = Connections(url, min(PATIENCE_SECONDS, primary.patience_seconds))
            stack.push_async_callback(connections.pool.close)
            replicas.append(Replica(_name(url), connections, Searcher(connections, limits)))
        schema, _ = await find_schema(primary)
        yield Replicas(primary, replicas, schema)


async def _describe(replica: Replica, written: object, schema: str) -> StoreNode:
    try:
        (((is_standby, there, replayed, age),),) = await replica.connections.read(Scope(""), Statement(_GET_STANDBY))
    except StoreError:
        reason = f"The replica {replica.name} does not answer: the primary searches instead. Look whether it runs."
        return StoreNode(replica.name, "replica", reason)
    if there != schema:
        reason = (
            f"The replica {replica.name} looks for the store in another schema than {schema}, and is not asked: "
            "give its URL in REFDESK_STORE_READ the search path that REFDESK_STORE has."
        )
        return StoreNode(replica.name, "replica", reason)
    if not is_standby:
        return StoreNode(replica.name, "replica that is a primary now")
    if written is None:
        return StoreNode(replica.name, "replica; the primary does not say how far it is")
    behind = max(0, int(str(written)) - int(replayed or 0))
    late = f", {age:.0f} s after its last change" if behind and age is not None else ""
    return StoreNode(replica.name, f"replica: {behind} bytes behind{late}")


def _name(url: str) -> str:
    """Return the host and port of a URL, without anything secret."""
    place = url.partition("://")[2].partition("/")[0].partition("?")[0]
    return place.rpartition("@")[2]
