"""One search in one round trip: all of its statements are sent together, with the end of their transaction.

How vectors are searched depends on how many there are. That is known from the previous search, and every answer says it
anew: so the first search of a collection, and one that finds that it has changed much, asks twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from refdesk.core.keeping.encoding import decode_instant, decode_json, is_storable
from refdesk.core.keeping.rows import decode_document
from refdesk.model import Candidate, Collection, Document, FacetCount, FindRequest, Found, State, facet_key
from refdesk.stores.postgres.connections import Connections, Scope, Statement
from refdesk.stores.postgres.filters import is_open, is_selective
from refdesk.stores.postgres.pool import Row
from refdesk.stores.postgres.statements import Search, Step
from refdesk.stores.postgres.texts import unpack
from refdesk.stores.postgres.vectors import Model, choose_graph, get_exact_limit

# The server knows well enough how large the graph of all orgs is; nobody keeps a count, for which all would wait.
_GET_MODEL = """
    SELECT key, dimensions, greatest(passages, coalesce((
        SELECT reltuples FROM pg_class
        WHERE oid = to_regclass(quote_ident(current_schema()) || '.vectors_of_model_' || key)
    ), 0)::bigint), passages, documents
    FROM (
        SELECT key, dimensions, embeddings.passages, documents FROM models JOIN embeddings ON model = key
        JOIN collections ON collections.org = embeddings.org AND collections.toolset = embeddings.toolset
        WHERE name = %s AND embeddings.org = %s AND embeddings.toolset = %s
    ) model
"""

GET_CHANGES = "SELECT coalesce((SELECT changes FROM orgs WHERE org = %s), 0) WHERE current_schema() = %s"
"""How far an org's change sequence has come; no row where the connection leads to another store."""

_STATES = {state.value: state for state in State}
_DOCUMENT = 12
"""Index of the document, if that was sent along, among the columns of a candidate."""

MOST_KNOWN = 10_000
"""Most collections of which it is remembered how many vectors they have."""

GROWTH = 2
"""A collection with more than this many times the vectors that were known is searched again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Up to what sizes searches consider everything.

    Attributes:
        exact_passages: How many passages are still all compared; above, the model's HNSW index is used. With 0 it
            always is.
        ranked_documents: Size of a collection up to which all documents that hold any term of the question are ranked;
            above, frequent terms make no candidates.
    """

    exact_passages: int = 500
    ranked_documents: int = 20_000


@dataclass(slots=True)
class _Answer:
    """The rows that the statements returned, by what they say, and the model that the search needed."""

    search: Search
    model: Model | None
    rows: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])

    @property
    def candidates(self) -> list[Row]:
        return self.rows["choice"]

    @property
    def is_pruned(self) -> bool:
        return any(row[1] for row in self.rows.get("weights", ()))

    @property
    def listed(self) -> int:
        return self.rows["list"][0][1] if "list" in self.rows else 0

    @property
    def changes(self) -> int:
        """How far the org's changes had come, if that was asked; -1 in another store."""
        return self.rows["changes"][0][0] if self.rows.get("changes") else -1

    @property
    def total(self) -> int:
        if "count" in self.rows:
            return self.rows["count"][0][0]
        total = self.rows["list"][0][0] if "list" in self.rows else 0
        return self.listed if total is None else total

    @property
    def is_short(self) -> bool:
        """Whether a list is too short because something was left out for speed."""
        depth = self.search.request.depth
        expected = min(depth, self.total) if self.search.request.counts else depth
        return (self.is_pruned and self.listed < expected) or (
            self.search.graph is not None and sum(row[0] for row in self.candidates) < depth
        )


class Searcher:
    """Answers searches; see `refdesk.protocols.Store.find`."""

    def __init__(self, connections: Connections, limits: Limits) -> None:
        self._connections = connections
        self._limits = limits
        self._models: dict[tuple[Collection, str], Model] = {}
        self._crowded: set[tuple[Collection, str]] = set()

    async def find(self, request: FindRequest) -> Found:
        """Return what matches."""
        return _make_found(request, await self._search(request))

    async def find_in(self, schema: str, request: FindRequest, changes: int) -> Found | None:
        """Return what matches, or `None` where what answered lacks some of the org's changes, or another store.

        The answer itself says so: behind one address there may be several servers, and what another of them said
        before says nothing about this one.
        """
        step = Step(Statement(GET_CHANGES, (request.collection.org, schema)), "changes")
        answer = await self._search(request, step)
        return _make_found(request, answer) if answer.changes >= changes else None

    async def _search(self, request: FindRequest, *more: Step) -> _Answer:
        answer = await self._ask(self.plan(request), *more)
        if _is_outdated(answer):
            answer = await self._ask(self.plan(request), *more)
        if answer.is_short and answer.search.is_open and not answer.is_pruned:
            # Withdrawn documents may have vectors, which crowd out others in the graph.
            self._crowded.add((request.collection, request.vector.model if request.vector else ""))
            answer = await self._ask(self.plan(request), *more)
        if answer.is_short:
            answer = await self._ask(Search(request, answer.model, None, None, None), *more)
        return answer

    def plan(self, request: FindRequest) -> Search:
        """Return the search for a request, planned by what is known."""
        prune_above, vector = self._limits.ranked_documents, request.vector
        model = self._models.get((request.collection, vector.model)) if vector else None
        if model is None:
            return Search(request, None, None, None, prune_above)
        documents = model.documents
        limit = get_exact_limit(model, documents, request.depth, self._limits.exact_passages)
        if limit is None:
            return Search(request, model, None, None, prune_above)
        graph = choose_graph(model, documents, request.depth, request.effort, documents)
        if is_open(request.where) and vector and (request.collection, vector.model) not in self._crowded:
            return Search(request, model, graph, None, prune_above, is_open=True)
        return Search(request, model, graph, limit if is_selective(request.where) else None, prune_above)

    async def _ask(self, search: Search, *more: Step) -> _Answer:
        request, steps = search.request, [*search.list_steps(), *more]
        if request.vector is not None:
            name = request.vector.model if is_storable(request.vector.model) else ""
            place = (request.collection.org, request.collection.toolset)
            steps.insert(0, Step(Statement(_GET_MODEL, (name, *place)), "model"))
        every = await self._connections.read(Scope(request.collection.org), *(step.statement for step in steps))
        rows = {step.tells: each for step, each in zip(steps, every, strict=True) if step.tells}
        found = rows.get("model")
        return _Answer(search, self._note(request, Model(*found[0]) if found else None), rows)

    def _note(self, request: FindRequest, model: Model | None) -> Model | None:
        if request.vector is not None:
            key = (request.collection, request.vector.model)
            if len(self._models) >= MOST_KNOWN:
                self._models.clear()
                self._crowded.clear()
            if model is None:
                self._models.pop(key, None)
            else:
                self._models[key] = model
        return model


def _is_outdated(answer: _Answer) -> bool:
    """Return whether the search was planned by what no longer holds."""
    used, present = answer.search.model, answer.model
    if used is None or present is None:
        return used is not present
    if (used.key, used.dimensions) != (present.key, present.dimensions):
        return True
    return answer.search.graph is None and present.own > GROWTH * used.own


def _make_found(request: FindRequest, answer: _Answer) -> Found:
    candidates = tuple(map(_make_candidate, answer.candidates))
    facets = {name: _count_facet(name, answer.rows.get("facets", [])) for name in request.facets}
    documents = {row[1]: _decode_document(request, row) for row in answer.candidates if row[_DOCUMENT] is not None}
    return Found(candidates, answer.total, facets, documents)


def _decode_document(request: FindRequest, row: Row) -> Document:
    return decode_document(request.collection, row[1], unpack(decode_json(row[_DOCUMENT])))


def _make_candidate(row: Row) -> Candidate:
    _, id, modified_at, lexical, all_terms, as_written, title_contains, cosine, start, end, state, head_id, _ = row
    return Candidate(
        id=id,
        modified_at=decode_instant(modified_at),
        lexical=lexical,
        cosine=cosine,
        passage=None if cosine is None else (start, end),
        all_terms=all_terms,
        title_contains=title_contains,
        as_written=as_written,
        state=_STATES[state],
        head_id=head_id,
    )


def _count_facet(name: str, rows: Sequence[Row]) -> tuple[FacetCount, ...]:
    """Return the counts of a facet from rows of (name, a document's values, how many documents have exactly these)."""
    holders: Counter[str] = Counter()
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for values, documents in ((decode_json(row[1]), row[2]) for row in rows if row[0] == name):
        for value in values:
            spellings[facet_key(value)][value] += documents
        for key in {facet_key(value) for value in values}:
            holders[key] += documents
    counts = [
        FacetCount(min((-uses, value) for value, uses in spellings[key].items())[1], count)
        for key, count in holders.items()
    ]
    return tuple(sorted(counts, key=lambda each: (-each.count, each.value)))
