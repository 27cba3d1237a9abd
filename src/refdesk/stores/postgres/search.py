"""One search: planned by the collection's statistics, then executed as one statement.

Two round trips: the first begins a snapshot and reads what scores depend on (counts, document frequencies, the model),
the second finds, counts facets and ends. A filter over many vectors takes a third, which counts whom it lets pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from refdesk.core.keeping.encoding import decode_instant, is_storable
from refdesk.model import Candidate, FacetCount, FindRequest, Found, State
from refdesk.stores.postgres.connections import Connections, Scope, Snapshot, Statement
from refdesk.stores.postgres.indexing import Tokens
from refdesk.stores.postgres.lexical import Corpus, Term
from refdesk.stores.postgres.pool import Row
from refdesk.stores.postgres.statements import Search
from refdesk.stores.postgres.vectors import Graph, Model, choose_graph, get_exact_limit

_GET_COLLECTION = "SELECT documents, words, secret FROM collections WHERE org = %s AND toolset = %s"
_GET_TERMS = "SELECT term, number, documents FROM terms WHERE org = %s AND toolset = %s AND term = ANY(%s::text[])"
_GET_WORDS = "SELECT unnest(tsvector_to_array(to_tsvector('simple', %s)))"
# How large the graph of all orgs is, the server knows well enough; nobody keeps a count that all would wait for.
_GET_MODEL = """
    SELECT key, dimensions, greatest(passages, coalesce((
        SELECT reltuples FROM pg_class WHERE oid = to_regclass('vectors_of_model_' || key)
    ), 0)::bigint), passages
    FROM (
        SELECT key, dimensions, embeddings.passages FROM models
        JOIN embeddings ON model = key WHERE name = %s AND org = %s AND toolset = %s
    ) model
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Up to what size searches do everything.

    Attributes:
        exact_passages: Passages that are all compared; above, the model's HNSW index is asked. With 0 it always is.
        ranked_documents: Documents of a collection that are ranked if they hold any term of the question; above,
            frequent terms make no candidates.
    """

    exact_passages: int = 10_000
    ranked_documents: int = 20_000


class Searcher:
    """Answers searches; see `refdesk.protocols.Store.find`."""

    def __init__(self, connections: Connections, limits: Limits) -> None:
        self._connections = connections
        self._limits = limits

    async def find(self, request: FindRequest) -> Found:
        """Return what matches."""
        async with self._connections.snapshot(Scope(request.collection.org)) as snapshot:
            search = await plan_search(snapshot, request, self._limits)
            if search is None or not search.corpus.documents:
                return Found((), 0, dict.fromkeys(request.facets, ()))
            graph, are_few = await self._choose_graph(snapshot, search)
            rare = None if are_few else search.get_rare_terms()
            found, *facets = await _run(snapshot, search, graph, rare)
            if _is_short(request, found, graph, rare):
                # What was left out to be fast would have filled the list.
                found, *facets = await _run(snapshot, search, None, None)
        return _make_found(request, found, facets[0] if facets else [])

    async def _choose_graph(self, snapshot: Snapshot, search: Search) -> tuple[Graph | None, bool]:
        """Return how the graph is asked, if it is, and whether so few pass the filter that none need be pruned."""
        model, documents, request = search.model, search.corpus.documents, search.request
        limit = get_exact_limit(model, documents, request.depth, self._limits.exact_passages) if model else None
        if model is None or limit is None:
            return None, False
        wanted = documents
        if request.where is not None:
            ((passing,),) = await snapshot.send(search.count_passing(limit + 1))
            wanted = passing[0]
        if wanted <= limit:
            return None, wanted <= self._limits.ranked_documents
        return choose_graph(model, documents, request.depth, request.effort, wanted), False


async def plan_search(snapshot: Snapshot, request: FindRequest, limits: Limits) -> Search | None:
    """Return the search that a request is, or `None` in a collection that was never written to."""
    place = (request.collection.org, request.collection.toolset)
    text, vector = request.text, request.vector
    asked = {*text.terms, *(term for phrase in text.phrases for term in phrase)} if text else set[str]()
    model = vector.model if vector and is_storable(vector.model) else ""
    written = request.as_written if request.as_written and is_storable(request.as_written) else ""
    collections, terms, words, models = await snapshot.send(
        Statement(_GET_COLLECTION, place),
        Statement(_GET_TERMS, (*place, sorted(filter(is_storable, asked)))),
        Statement(_GET_WORDS, (written,)),
        Statement(_GET_MODEL, (model, *place)),
    )
    if not collections:
        return None
    documents, length, secret = collections[0]
    known = {term: Term(number, count) for term, number, count in terms}
    tokens = Tokens(secret)
    as_written = [tokens.of_word(word) for (word,) in words]
    corpus = Corpus(documents, length, known, tokens, limits.ranked_documents, as_written)
    return Search(request, corpus, Model(*models[0]) if models else None)


async def _run(snapshot: Snapshot, search: Search, graph: Graph | None, rare: Sequence[str] | None) -> list[list[Row]]:
    """Return the rows of the candidates and, where requested, of facet values."""
    settings = graph.settings if graph else ()
    statements = (*settings, search.find(graph, rare), *search.count_facets())
    is_final = graph is None and rare is None
    found = await (snapshot.send_last(*statements) if is_final else snapshot.send(*statements))
    return found[len(settings) :]


def _is_short(request: FindRequest, found: Sequence[Row], graph: Graph | None, rare: Sequence[str] | None) -> bool:
    total, listed, near, *_ = found[0]
    expected = min(request.depth, total) if request.counts else request.depth
    return (rare is not None and listed < expected) or (graph is not None and near < request.depth)


def _make_found(request: FindRequest, found: Sequence[Row], facets: Sequence[Row]) -> Found:
    candidates = tuple(_make_candidate(row[3:-1]) for row in found if row[3] is not None)
    return Found(candidates, found[0][0], {name: _count_facet(name, facets) for name in request.facets})


def _make_candidate(row: Row) -> Candidate:
    id, modified_at, lexical, all_terms, as_written, title_contains, cosine, start, end, state, head_id = row
    return Candidate(
        id=id,
        modified_at=decode_instant(modified_at),
        lexical=lexical,
        cosine=cosine,
        passage=None if cosine is None else (start, end),
        all_terms=all_terms,
        title_contains=title_contains,
        as_written=as_written,
        state=State(state),
        head_id=head_id,
    )


def _count_facet(name: str, rows: Sequence[Row]) -> tuple[FacetCount, ...]:
    """Return the counts of a facet from (name, key, spelling, its uses, documents that count by it)."""
    holders: Counter[str] = Counter()
    spellings: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for facet, key, value, uses, documents in rows:
        if facet == name:
            holders[key] += documents
            spellings[key].append((-uses, value))
    counts = [FacetCount(min(spellings[key])[1], count) for key, count in holders.items()]
    return tuple(sorted(counts, key=lambda each: (-each.count, each.value)))
