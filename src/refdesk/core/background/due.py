"""Finds what is to be embedded, at a cost that depends on what was written since the last look, not on the whole store.

To begin with, a collection is taken to be embedded up to its mark if the counts of the store say so. From then on it is
known that everything written up to a mark has its vectors, except for documents that are passed over because they
failed, and only what was written since is queried. Now and then some collections are looked at completely, in turns, so
that anything missed is found after all, and counts that are wrong are put right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from refdesk.model import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from refdesk.model import Collection, EmbeddedCount
    from refdesk.protocols import Clock, Store

SURE_FOR = timedelta(minutes=10)
"""How long it is until some collections are looked at completely again."""

MOST_LOOKED_AT = 100
"""About how many collections that is: of 100,000 documents one takes some 30 ms."""

MOST_COLLECTIONS = 64
"""Most collections of which documents are found at a time."""

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
    _doubted: dict[Collection, EmbeddedCount] = field(default_factory=dict["Collection", "EmbeddedCount"])

    def forget(self) -> None:
        """Look at everything again next time."""
        self._since = None

    async def has_any(self, model: str, blocked: Blocked) -> bool:
        """Return whether any document lacks vectors of the model."""
        for collection, mark in (await self._list_collections(model)).items():
            if await self._look_at(collection, mark, blocked, 1):
                return True
        return False

    async def find(
        self, model: str, blocked: Blocked, limit: int, get_turn: Callable[[Collection], int] = lambda _: 0
    ) -> dict[Collection, list[str]]:
        """Return, by collection, ids of documents without vectors of the model; no list is empty.

        Args:
            model: Whose vectors they lack.
            blocked: What is passed over.
            limit: Most ids of a collection.
            get_turn: Returns a number; if more than `MOST_COLLECTIONS` have such documents, those with the lowest are
                returned.
        """
        marks = await self._list_collections(model)
        found: dict[Collection, list[str]] = {}
        for collection in sorted(marks, key=get_turn):
            if ids := await self._look_at(collection, marks[collection], blocked, limit):
                found[collection] = ids
                if len(found) == MOST_COLLECTIONS:
                    break
        return found

    async def _list_collections(self, model: str) -> Mapping[Collection, str]:
        """Return the marks of all collections, read before the documents, so that what is written meanwhile is looked
        for next time."""
        now = self.clock.now()
        if model == self._model and self._since is not None and self._since <= now < self._since + SURE_FOR:
            return await self.store.list_collections()
        counts = await self.store.count_embedded(model)
        if model != self._model or self._since is None:
            self._seen = {each.collection: _Seen(each.mark) for each in counts if each.embedded >= each.documents}
        self._model, self._since = model, now
        self._doubted = {each.collection: each for each in _choose(counts, now)}
        for collection in self._doubted:
            self._seen.pop(collection, None)
        return {each.collection: each.mark for each in counts}

    async def _look_at(self, collection: Collection, mark: str, blocked: Blocked, limit: int) -> list[str]:
        seen, own = self._seen.get(collection, _Seen()), blocked.get(collection, frozenset[str]())
        free = seen.passed - own
        if seen.mark == mark and not free:
            return []
        new, most = list[str](), limit + len(own)
        if seen.mark != mark:
            new = await self.store.get_unembedded(collection, self._model, most, seen.mark)
            await self._check_count(collection, mark, len(new), most)
        due = sorted({*new, *await self._get_lacking(collection, free)} - own)
        if not due and len(new) < most:
            self._seen[collection] = _Seen(mark, (seen.passed & own).union(new))
        return due[:limit]

    async def _check_count(self, collection: Collection, mark: str, lacking: int, most: int) -> None:
        """Have a collection counted again whose count is not what was found when all of it was looked at."""
        counted = self._doubted.get(collection)
        if counted is None or lacking == most:
            return
        del self._doubted[collection]
        if counted.mark == mark and counted.documents - counted.embedded != lacking:
            await self.store.recount_embedded(collection, self._model)

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


def _choose(counts: Sequence[EmbeddedCount], now: datetime) -> list[EmbeddedCount]:
    """Return about `MOST_LOOKED_AT` collections; as time goes on, each comes once before the first comes again."""
    parts = max(1, -(-len(counts) // MOST_LOOKED_AT))
    return list(counts[int(now.timestamp() // SURE_FOR.total_seconds()) % parts :: parts])
