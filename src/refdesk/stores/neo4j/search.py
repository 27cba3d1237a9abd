"""One search: the database retrieves the candidates, filters included; exact scores are computed here.

Words: the full-text index over analysed terms returns every document of the collection that holds one of them, whether
or not it passes the filter, since document frequencies count them all. Vectors: more passages than wanted are requested
of the vector index, so that enough of them belong to the collection and pass the filter; if too few do, or the
collection is small, every passage that passes is compared. Titles are found by a text index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import numpy as np

from refdesk.core.keeping.encoding import is_encodable
from refdesk.model import FindRequest, Found, facet_key
from refdesk.stores.neo4j.cache import DocumentCache, Row, Tag
from refdesk.stores.neo4j.filters import Condition, compile_filter
from refdesk.stores.neo4j.lexical import make_queries
from refdesk.stores.neo4j.migrations import FULLTEXT_INDEX, VectorIndexes
from refdesk.stores.neo4j.ranking import Gathered, Ranked, compare, get_nearness, rank
from refdesk.stores.neo4j.reads import LIVING
from refdesk.stores.neo4j.rows import get_scope
from refdesk.stores.neo4j.vectors import find_nearest

if TYPE_CHECKING:
    from refdesk.model import Collection, TextQuery, VectorQuery
    from refdesk.stores.neo4j.connections import Runner

EXACT_BELOW = 500
"""Up to this many documents in a collection, every passage is compared; above, the vector index is faster."""

LEAST_OVERFETCH, MOST_OVERFETCH = 2, 16
"""How many passages are requested of the vector index for each document wanted: a document may have several, and some
are filtered out. The first search uses the least; where that was too few, it grows up to the most."""

OVERFETCH_SLACK = 1.25
"""By how much an overfetch that was too small is raised beyond what the number of documents found calls for."""

MOST_KNOWN = 10_000
"""Most collections whose size is remembered."""

ATTEMPTS = 3
"""How often a search is attempted if a document is written while it is being read."""

THREAD_ABOVE = 200
"""Above this many documents, scores are computed in a thread."""

_PASSES, _DOCUMENTS = "PASSES", "DOCUMENTS"
"""Placeholders in a statement: for the filter's expression, and for how documents are found that pass it."""

_PLACE = "{space: $space, org: $org, toolset: $toolset}"
_BY_STATE = f"(d:Document {_PLACE})"
_BY_ID = f"(d:Thing:Document {_PLACE}) USING INDEX SEEK d:Thing(space, org, toolset, id)"
"""The server would rather look at every document of the collection, however few ids the filter lists."""

_FIND_HOLDERS = (
    "MATCH (c:Collection {space: $space, org: $org, toolset: $toolset}) "
    f"UNWIND $queries AS query CALL db.index.fulltext.queryNodes('{FULLTEXT_INDEX}', query) YIELD node AS d "
    f"WITH DISTINCT c, d WHERE d.space = $space AND d.org = $org AND d.toolset = $toolset AND d.state IN {LIVING} "
    f"RETURN c.living, c.length, collect([d.id, d.written, d.embedded, {_PASSES}])"
)
_MATCH = f"MATCH {_DOCUMENTS} WHERE d.state IN {LIVING} AND {_PASSES} "
_BROWSE = f"{_MATCH} RETURN d.id, d.written, d.embedded"
_FIND_TITLED = (
    "MATCH (d:Document) USING TEXT INDEX d:Document(title_key) WHERE d.title_key CONTAINS $title "
    f"AND d.space = $space AND d.org = $org AND d.toolset = $toolset AND d.state IN {LIVING} AND {_PASSES} "
    "RETURN d.id, d.written, d.embedded ORDER BY d.modified_at DESC, d.id LIMIT $depth"
)
_SIMILARITY = (
    "CASE WHEN p.norm = 0 OR $is_zero THEN 0.0 ELSE (2 * vector.similarity.cosine(p.vector, $vector) - 1) * p.norm END"
)
_BEST = "ORDER BY round(cosine, 6) DESC, d.id LIMIT $depth RETURN collect([d.id, d.written, d.embedded]) AS hits"
_COMPARE_ALL = (
    "MATCH (c:Collection {space: $space, org: $org, toolset: $toolset}) "
    f"CALL () {{ {_MATCH} "
    "MATCH (d)-[:HAS_PASSAGE]->(p:Passage {model: $model}) WHERE p.dimensions = $width "
    f"WITH d, max({_SIMILARITY}) AS cosine {_BEST} }} RETURN c.living, hits"
)
_KEEP_OURS = (
    f" MATCH (d:Document)-[:HAS_PASSAGE]->(p) WHERE d.state IN {LIVING} AND {_PASSES} "
    f"WITH d, max((2 * score - 1) * p.norm) AS cosine {_BEST}"
)


@dataclass(slots=True)
class _Hits:
    """The lists that were found for a request, and the tags of all documents in them."""

    tags: dict[str, Tag] = field(default_factory=dict[str, Tag])
    gathered: Gathered = field(default_factory=Gathered)

    def note(self, hits: Iterable[list[Any]]) -> list[str]:
        """Remember the documents' tags and return their ids, in order."""
        tags = {hit[0]: (hit[1], hit[2]) for hit in hits}
        self.tags |= tags
        return list(tags)


class Searcher:
    """Answers `Store.find`."""

    def __init__(
        self,
        runner: Runner,
        namespace: str,
        version: tuple[int, int],
        indexes: VectorIndexes,
        *,
        exact_below: int = EXACT_BELOW,
    ) -> None:
        """Make a searcher.

        Args:
            runner: Where statements run.
            namespace: The namespace to search.
            version: The server's version.
            indexes: The vector indexes.
            exact_below: See `EXACT_BELOW`.
        """
        self._runner = runner
        self._namespace = namespace
        self._version = version
        self._indexes = indexes
        self._exact_below = exact_below
        self._cache = DocumentCache(runner, namespace)
        self._living: dict[Collection, int] = {}
        self._overfetch: dict[tuple[Collection, str], int] = {}

    async def find(self, request: FindRequest) -> Found:
        """See `Store.find`."""
        hits, rows = await self._read(request)
        if len(rows) > THREAD_ABOVE:
            ranked = await anyio.to_thread.run_sync(rank, request, rows, hits.gathered)
        else:
            ranked = rank(request, rows, hits.gathered)
        if request.vector is not None:
            ranked = await self._compare(request.collection, request.vector, ranked, hits.tags)
        candidates = (*ranked.listed, *sorted(ranked.joining, key=get_nearness))
        return Found(candidates, ranked.total, ranked.facets)

    async def _read(self, request: FindRequest) -> tuple[_Hits, dict[str, Row]]:
        """Return what the database found and the documents at that time; after `ATTEMPTS`, some may be newer."""
        for _ in range(ATTEMPTS):
            hits = await self._gather(request)
            rows = await self._cache.get_rows(request.collection, hits.tags)
            if all(id in rows and rows[id].written == tag[0] for id, tag in hits.tags.items()):
                return hits, rows
        hits = await self._gather(request)
        return hits, await self._cache.get_rows(request.collection, hits.tags)

    async def _gather(self, request: FindRequest) -> _Hits:
        """Return what was found for each list of the request; all are queried concurrently."""
        hits, condition = _Hits(), compile_filter(request.where)
        try:
            async with anyio.create_task_group() as group:
                if request.text is not None:
                    group.start_soon(self._gather_holders, request.collection, request.text, condition, hits)
                elif request.vector is None:
                    group.start_soon(self._gather_all, request.collection, condition, hits)
                if request.title_contains is not None and is_encodable(request.title_contains):
                    group.start_soon(self._gather_titled, request, request.title_contains, condition, hits)
                if request.vector is not None:
                    group.start_soon(self._gather_nearest, request, request.vector, condition, hits)
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        return hits

    async def _gather_all(self, collection: Collection, condition: Condition, hits: _Hits) -> None:
        rows = await self._run(_BROWSE, collection, condition)
        hits.gathered = replace(hits.gathered, passing=hits.note(rows))

    async def _gather_titled(self, request: FindRequest, title: str, condition: Condition, hits: _Hits) -> None:
        key = facet_key(title)
        rows = await self._run(_FIND_TITLED, request.collection, condition, title=key, depth=request.depth)
        hits.gathered = replace(hits.gathered, titled=hits.note(rows))

    async def _gather_nearest(
        self, request: FindRequest, query: VectorQuery, condition: Condition, hits: _Hits
    ) -> None:
        nearest = await self._find_nearest(request, query, condition)
        hits.gathered = replace(hits.gathered, nearest=hits.note(nearest))

    async def _gather_holders(self, collection: Collection, text: TextQuery, condition: Condition, hits: _Hits) -> None:
        terms = dict.fromkeys([*text.terms, *(term for phrase in text.phrases for term in phrase)])
        queries = make_queries(get_scope(self._namespace, collection), terms)
        if not queries:
            return
        for living, length, found in await self._run(_FIND_HOLDERS, collection, condition, queries=queries):
            self._note_living(collection, living)
            passing = [id for id, _, _, passes in found if passes]
            holders = hits.note(found)
            hits.gathered = replace(hits.gathered, holders=holders, passing=passing, living=living, length=length)

    async def _find_nearest(self, request: FindRequest, query: VectorQuery, condition: Condition) -> list[list[Any]]:
        width = len(query.vector)
        asked: dict[str, Any] = {
            "model": query.model,
            "width": width,
            "vector": query.vector.tolist(),
            "is_zero": not np.any(query.vector),
            "depth": request.depth,
        }
        if self._living.get(request.collection, 0) > self._exact_below and await self._indexes.has(width):
            found = await self._ask_index(request, condition, asked)
            if len(found) >= request.depth:
                return found
        for living, hits in await self._run(_COMPARE_ALL, request.collection, condition, **asked):
            self._note_living(request.collection, living)
            return hits
        return []

    async def _ask_index(self, request: FindRequest, condition: Condition, asked: dict[str, Any]) -> list[list[Any]]:
        """Return the nearest documents that the vector index finds in the collection; they may be too few."""
        statement, place = find_nearest(asked["width"], self._version, _KEEP_OURS), request.collection
        wanted, key = max(request.depth, request.effort or 0), (place, condition.expression)
        times = self._overfetch.get(key, LEAST_OVERFETCH)
        ((found,),) = await self._run(statement, place, condition, **asked, fetched=wanted * times)
        if found and len(found) < request.depth:
            times = math.ceil(OVERFETCH_SLACK * times * request.depth / len(found))
            if times <= MOST_OVERFETCH:
                self._overfetch[key] = times
                ((found,),) = await self._run(statement, place, condition, **asked, fetched=wanted * times)
        return found

    def _note_living(self, collection: Collection, living: int) -> None:
        if len(self._living) >= MOST_KNOWN:
            self._living.clear()
            self._overfetch.clear()
        self._living[collection] = living

    async def _compare(
        self, collection: Collection, query: VectorQuery, ranked: Ranked, tags: dict[str, Tag]
    ) -> Ranked:
        wanted = {each.id: tags[each.id] for each in (*ranked.listed, *ranked.joining)}
        vectors = await self._cache.get_vectors(collection, wanted, query.model, len(query.vector))
        return replace(
            ranked,
            listed=compare(ranked.listed, vectors, query.vector),
            joining=compare(ranked.joining, vectors, query.vector),
        )

    async def _run(
        self, statement: str, collection: Collection, condition: Condition, **parameters: object
    ) -> list[list[Any]]:
        place = {"space": self._namespace, "org": collection.org, "toolset": collection.toolset}
        documents = _BY_ID if condition.names_ids else _BY_STATE
        text = statement.replace(_DOCUMENTS, documents).replace(_PASSES, condition.expression)
        return await self._runner.run(text, **place, **condition.parameters, **parameters)
