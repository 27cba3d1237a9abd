"""Finds what is to be embedded, at a cost that depends on what was written since the last look, not on the whole store.

Each collection is looked at completely once. From then on it is known that everything written up to a mark has its
vectors, except for documents that are passed over because they failed, and only what was written since is queried. Now
and then everything is looked at again, so that anything missed is found after all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from refdesk.model import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from refdesk.model import Collection
    from refdesk.protocols import Clock, Store

SURE_FOR = timedelta(minutes=10)
"""How long what was seen of a collection is relied on; looking at all of 100,000 documents takes some 30 ms."""

Blocked: TypeAlias = "Mapping[Collection, frozenset[str]]"
"""The ids that are passed over, by collection: those that failed and are not due to be tried again yet."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen of a collection: everything written up to `mark` has vectors, except `passed`, which had none."""

    mark: str = ""
    passed: frozenset[str] = frozenset()


@dataclass(slots=True)
class Lookout:
    """Looks for what has no vectors yet, and remembers up to where everything has; used by one task at a time."""

    store: Store
    clock: Clock
    _model: str = ""
    _since: datetime | None = None
    _seen: dict[Collection, _Seen] = field(default_factory=dict["Collection", _Seen])

    def forget(self) -> None:
        """Look at everything again next time."""
        self._since = None

    async def has_any(self, model: str, blocked: Blocked) -> bool:
        """Return whether any document lacks vectors of the model."""
        for collection, mark in (await self._list_collections(model)).items():
            if await self._look_at(collection, mark, blocked, 1):
                return True
        return False

    async def find(self, model: str, blocked: Blocked, limit: int) -> dict[Collection, list[str]]:
        """Return, by collection, up to `limit` ids of documents without vectors of the model; no list is empty."""
        marks = await self._list_collections(model)
        found = {each: await self._look_at(each, mark, blocked, limit) for each, mark in marks.items()}
        return {collection: ids for collection, ids in found.items() if ids}

    async def _list_collections(self, model: str) -> Mapping[Collection, str]:
        now = self.clock.now()
        if model != self._model or self._since is None or not self._since <= now < self._since + SURE_FOR:
            self._model, self._since = model, now
            self._seen.clear()
        # Read before the documents, so that what is written meanwhile is looked for next time.
        return await self.store.list_collections()

    async def _look_at(self, collection: Collection, mark: str, blocked: Blocked, limit: int) -> list[str]:
        seen, own = self._seen.get(collection, _Seen()), blocked.get(collection, frozenset[str]())
        free = seen.passed - own
        if seen.mark == mark and not free:
            return []
        new, most = list[str](), limit + len(own)
        if seen.mark != mark:
            new = await self.store.get_unembedded(collection, self._model, most, seen.mark)
        due = sorted({*new, *await self._get_lacking(collection, free)} - own)
        if not due and len(new) < most:
            self._seen[collection] = _Seen(mark, (seen.passed & own).union(new))
        return due[:limit]

    async def _get_lacking(self, collection: Collection, ids: Iterable[str]) -> list[str]:
        """Return those of the passed-over documents that still have no vectors."""
        asked = sorted(ids)
        if not asked:
            return []
        embedded = await self.store.get_embedded(collection, self._model, asked)
        documents = await self.store.get_documents(collection, asked)
        return [
            each.id
            for each in documents
            if each is not None and each.state is not State.WITHDRAWN and each.id not in embedded
        ]
