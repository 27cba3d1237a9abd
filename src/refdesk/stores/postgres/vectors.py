"""Decides between exhaustive (exact) vector search and the model's HNSW index."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt

from refdesk.stores.postgres.connections import Text, quote
from refdesk.stores.postgres.hnsw import MOST_INDEXED_DIMENSIONS

OVER_FETCH = 2
"""The graph is asked for this many times the passages that documents of mean length would need."""

GRAPH_COST = 5
"""Visiting a node of the graph costs as much as comparing this many passages one by one."""

LEAST_EFFORT = 100
"""How many candidates a search of a small graph keeps (`hnsw.ef_search`)."""

MOST_EFFORT = 1000
"""The highest `hnsw.ef_search` that is allowed."""

SCAN_SLACK = 4
"""A search may visit this many times the nodes that should suffice, and at least pgvector's default of 20,000."""

_LEAST_SCAN = 20_000
_SET = Text(
    "set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true), "
    "set_config('hnsw.ef_search', {}, true), set_config('hnsw.max_scan_tuples', {}, true), "
    "set_config('hnsw.scan_mem_multiplier', '16', true)"
)


@dataclass(frozen=True, slots=True)
class Model:
    """A model whose vectors a collection has.

    Attributes:
        passages: How many there are in all, of every org: the size of the graph.
        own: How many of them are the collection's.
        documents: How many documents the collection has, not counting withdrawn ones.
    """

    key: int
    dimensions: int
    passages: int
    own: int
    documents: int

    def get_passages_of(self, documents: int) -> float:
        """Return how many passages a document has on average, at least 1."""
        return max(1.0, self.own / max(documents, 1))


@dataclass(frozen=True, slots=True)
class Graph:
    """How the graph is queried.

    Attributes:
        fetch: For how many passages it is asked.
        effort: How many candidates the search keeps.
        scan: How many nodes it visits at most.
    """

    fetch: int
    effort: int
    scan: int

    @property
    def settings(self) -> Text:
        """The settings for the transaction. The order is relaxed, as what is found is sorted by exact cosines anyway.

        Sorting is turned off because the planner, which knows little about how many rows pass a filter, would rather
        sort all of them.
        """
        return _SET.format(quote(str(self.effort)), quote(str(self.scan)))


def get_exact_limit(model: Model, documents: int, depth: int, exact_passages: int) -> int | None:
    """Return up to how many documents comparing all is cheaper, or `None` if it is for the whole collection.

    To find `fetch` of `wanted` passages the graph visits about `fetch * passages / wanted` nodes, each as expensive as
    `GRAPH_COST` comparisons: it pays if that is less than `wanted`.

    Args:
        exact_passages: Up to this many passages, all are compared in any case; with 0 the graph is always used.
    """
    fetch = _get_fetch(model, documents, depth)
    limit = max(exact_passages, isqrt(GRAPH_COST * fetch * model.passages)) if exact_passages else 0
    if model.dimensions > MOST_INDEXED_DIMENSIONS or model.own <= limit:
        return None
    return int(limit / model.get_passages_of(documents))


def choose_graph(model: Model, documents: int, depth: int, effort: int | None, wanted: int) -> Graph:
    """Return how to ask the graph for the nearest `depth` of `wanted` documents or more."""
    fetch = _get_fetch(model, documents, depth)
    visited = fetch * model.passages / max(1.0, wanted * model.get_passages_of(documents))
    return Graph(
        fetch,
        min(MOST_EFFORT, max(effort or 0, get_usual_effort(model.passages), depth)),
        min(2**31 - 1, max(_LEAST_SCAN, ceil(SCAN_SLACK * visited))),
    )


def get_usual_effort(passages: int) -> int:
    """Return how many candidates to keep in a graph of this many passages: the same number misses more in a larger one.

    With 10,000 invented passages, 100 candidates find .97 of the ten nearest; with 100,000 they find .70, and 300 find
    .95.
    """
    return min(MOST_EFFORT, max(LEAST_EFFORT, isqrt(passages)))


def _get_fetch(model: Model, documents: int, depth: int) -> int:
    """Return how many passages to fetch: more if documents have several, as some may have several of the best."""
    over = OVER_FETCH if model.own > documents else 1
    return ceil(over * depth * model.get_passages_of(documents))
