"""How well the ranking finds what was judged relevant: nDCG@10 and Recall@100, beside a plain FTS5 in the same run.

Each collection is a folder with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`, as in BEIR, below `retrieval/` in the
folder of real records. Vectors are kept in `.benchmarks/`, so that only the first run embeds.

    python -m benchmarks.quality [--collections NAME …] [--vectors int8 | float | kept] [--no-tool]
                                 [--model NAME]

`--vectors` says which graph of the local model makes them: the one in int8, the packaged file in float32, or, as in a
store filled before, passages in float32 and questions in int8. The last line of each table is what `search_knowledge`
answers over a store in a file, its first 50 results; the others rank outside of any store. `--model` names an installed
embedding model that makes the vectors instead.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import hashlib
import json
import os
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log2
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from refdesk.core.search.analysis import analyse_document, parse_query
from refdesk.core.search.bm25 import TITLE_WEIGHT, idf, term_score
from refdesk.core.search.fusion import convex, reciprocal_rank
from refdesk.core.search.languages import recognise
from refdesk.core.search.passages import embedding_text, split
from refdesk.core.search.semantics import TRUST_OF_UNKNOWN
from refdesk.embedders.local import LocalEmbedder
from refdesk.embedders.local.installed import InstalledEmbedder
from refdesk.model import Candidate
from refdesk.toolsets.knowledge.options import Fusion
from refdesk.toolsets.knowledge.ranking import rank

REPOSITORY = Path(__file__).resolve().parent.parent
CACHE = REPOSITORY / ".benchmarks" / "vectors"
DEPTH = 100
VECTORS = ("int8", "float", "kept")
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

Scores: TypeAlias = Mapping[int, float]
Matrix: TypeAlias = NDArray[float32]
Ranking: TypeAlias = Callable[[int], Sequence[int]]
"""From the number of a query to the numbers of documents, best first."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A collection: (title, body) of each document, its questions, and for each which documents answer it how well."""

    name: str
    documents: list[tuple[str, str]]
    queries: list[str]
    relevant: list[Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over the questions of a collection, in [0, 1]."""

    ndcg: float
    recall: float


def get_data_folder() -> Path:
    """Return the folder of the collections, which need not exist."""
    data = os.environ.get("REFDESK_TEST_DATA") or REPOSITORY.parent / "shared" / "data"
    return Path(data) / "retrieval"


def read_collection(folder: Path) -> Judged:
    """Return a collection; questions without a relevant document are left out."""
    documents = _read_lines(folder / "corpus.jsonl")
    number = {row["_id"]: index for index, row in enumerate(documents)}
    judged: defaultdict[str, dict[int, int]] = defaultdict(dict)
    with (folder / "qrels.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["score"]) > 0 and row["corpus-id"] in number:
                judged[row["query-id"]][number[row["corpus-id"]]] = int(row["score"])
    queries = [row for row in _read_lines(folder / "queries.jsonl") if row["_id"] in judged]
    return Judged(
        folder.name,
        [(row.get("title") or "", row["text"]) for row in documents],
        [row["text"] for row in queries],
        [judged[row["_id"]] for row in queries],
    )


def _read_lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def measure(relevant: Sequence[Mapping[int, int]], ranking: Ranking) -> Quality:
    """Return the quality of a ranking: nDCG@10 with linear gains, and Recall@100."""
    ndcgs: list[float] = []
    recalls: list[float] = []
    for number, judged in enumerate(relevant):
        ranked = list(ranking(number))[:DEPTH]
        ideal = sum(gain / log2(place + 2) for place, gain in enumerate(sorted(judged.values(), reverse=True)[:10]))
        gained = sum(judged.get(found, 0) / log2(place + 2) for place, found in enumerate(ranked[:10]))
        ndcgs.append(gained / ideal)
        recalls.append(len(judged.keys() & set(ranked)) / len(judged))
    return Quality(sum(ndcgs) / len(ndcgs), sum(recalls) / len(recalls))


class LexicalIndex:
    """Exact BM25 by a plain loop over postings, with the analysis and the arithmetic of the core."""

    def __init__(self, documents: Sequence[tuple[str, str]]) -> None:
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        for number, (title, body) in enumerate(documents):
            in_title, in_body = analyse_document(title, body)
            counts = Counter(in_body)
            for term in in_title:
                counts[term] += TITLE_WEIGHT
            for term, count in counts.items():
                self._postings[term].append((number, count))
            self._lengths.append(counts.total())
        self._mean_length = sum(self._lengths) / max(1, len(self._lengths))

    def score(self, query: str) -> dict[int, float]:
        """Return BM25 of every document that holds a term of the query."""
        parsed = parse_query(query)
        terms = dict.fromkeys([*parsed.terms, *(term for phrase in parsed.phrases for term in phrase)])
        scores: defaultdict[int, float] = defaultdict(float)
        for term in terms:
            postings = self._postings.get(term, [])
            weight = idf(len(self._lengths), len(postings))
            for number, count in postings:
                scores[number] += term_score(count, self._lengths[number], self._mean_length, weight)
        return scores


def rank_scores(scores: Scores) -> list[int]:
    """Return the `DEPTH` best, ties as the product breaks them: the later in the collection counts as the newer."""
    return sorted(scores, key=lambda number: (-scores[number], -number))[:DEPTH]


def rank_cosines(cosines: NDArray[float32]) -> list[int]:
    """Return the `DEPTH` nearest, ties likewise."""
    return [int(number) for number in np.lexsort((-np.arange(len(cosines)), -cosines))[:DEPTH]]


def rank_by_fts5(collection: Judged) -> Ranking:
    """Return the peer: SQLite's FTS5 as most set it up, with the porter tokenizer and any word of the question."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE document USING fts5(title, body, tokenize = 'porter unicode61')")
        database.executemany(
            "INSERT INTO document (rowid, title, body) VALUES (?, ?, ?)", _number(collection.documents)
        )
        ranked = [_match(database, query) for query in collection.queries]
    return ranked.__getitem__


def _match(database: sqlite3.Connection, query: str) -> list[int]:
    words = "".join(sign if sign.isalnum() else " " for sign in query).split()
    found = database.execute(
        "SELECT rowid FROM document WHERE document MATCH ? ORDER BY rank, rowid LIMIT ?",
        (" OR ".join(f'"{word}"' for word in words), DEPTH),
    )
    return [rowid for (rowid,) in found]


def _number(documents: Sequence[tuple[str, str]]) -> Iterable[tuple[int, str, str]]:
    return ((number, title, body) for number, (title, body) in enumerate(documents))


def embed(name: str, texts: Sequence[str], pieces: int, *, in_int8: bool = True) -> Matrix:
    """Return the vectors of the texts by the local model, from the cache where they are there."""
    from refdesk.embedders.local.model import INT8_SHA256, MODEL_SHA256, SentenceEncoder

    graph = INT8_SHA256 if in_int8 else MODEL_SHA256
    digest = hashlib.blake2b(json.dumps([graph, pieces, *texts]).encode(), digest_size=8).hexdigest()
    path = CACHE / f"{name}-{digest}.npy"
    if path.exists():
        return np.load(path)
    encoder = SentenceEncoder(in_int8=in_int8)
    vectors: list[NDArray[float32]] = []
    for done, text in enumerate(texts, start=1):
        vectors.append(encoder.encode(text, pieces))
        if done % 50 == 0 or done == len(texts):
            print(f"\r{name}: {done} of {len(texts)} texts embedded", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.stack(vectors))
    return np.stack(vectors)


def find_model(name: str) -> InstalledEmbedder:
    """Return the embedder of an installed model, or end with a word about it."""
    from refdesk.embedders.local.installed.manifest import find_installed
    from refdesk.settings import load_settings

    home = load_settings().home
    manifest = find_installed(home, name)
    if manifest is None:
        sys.exit(f"No model is called {name}: refdesk models list shows those there are.")
    return InstalledEmbedder(home, manifest)


def embed_by_installed(model: str, name: str, texts: Sequence[str], *, as_queries: bool) -> Matrix:
    """Return the vectors of the texts by a model that `refdesk models install` installed, from the cache likewise."""
    embedder = find_model(model)
    said = json.dumps([embedder.model.name, as_queries, *texts])
    path = CACHE / f"{name}-{hashlib.blake2b(said.encode(), digest_size=8).hexdigest()}.npy"
    if path.exists():
        return np.load(path)

    async def run() -> list[NDArray[float32]]:
        async with embedder:
            if not as_queries:
                return await embedder.embed_passages(texts)
            await embedder.load()
            return [await embedder.embed_query(text) for text in texts]

    made = np.stack(asyncio.run(run()))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, made)
    return made


def get_cosines(collection: Judged, vectors: str = "int8", model: str | None = None) -> Matrix:
    """Return the cosine of each question (row) with the best passage of each document (column).

    Args:
        vectors: Who makes them, one of `VECTORS`.
        model: An installed model that makes them instead.
    """
    from refdesk.embedders.local import PASSAGE_PIECES, QUERY_PIECES

    spans = [split(title, body) for title, body in collection.documents]
    texts = [
        embedding_text(title, body, span)
        for (title, body), passages in zip(collection.documents, spans, strict=True)
        for span in passages
    ]
    if model is None:
        passages = embed(f"{collection.name}-passages", texts, PASSAGE_PIECES, in_int8=vectors == "int8")
        queries = embed(f"{collection.name}-queries", collection.queries, QUERY_PIECES, in_int8=vectors != "float")
    else:
        passages = embed_by_installed(model, f"{collection.name}-passages", texts, as_queries=False)
        queries = embed_by_installed(model, f"{collection.name}-queries", collection.queries, as_queries=True)
    starts = np.cumsum([0, *(len(passages) for passages in spans)])[:-1]
    return np.maximum.reduceat(queries @ passages.T, starts, axis=1)


def fuse(
    lexical: Scores, cosines: NDArray[float32], combine: Callable[[list[int], list[int], list[int]], Scores]
) -> list[int]:
    """Return the ranking that `combine` makes of the lexical list, the dense list and their union."""
    words = rank_scores(lexical)
    dense = rank_cosines(cosines)
    union = list(dict.fromkeys([*words, *dense]))
    return rank_scores(combine(words, dense, union))


def get_rankings(collection: Judged, vectors: str = "int8", model: str | None = None) -> dict[str, Ranking]:
    """Return the ways of ranking that are compared, by name."""
    index = LexicalIndex(collection.documents)
    lexical = [index.score(query) for query in collection.queries]
    cosines = get_cosines(collection, vectors, model)
    embedder = LocalEmbedder() if model is None else find_model(model)

    def by_convex(number: int) -> list[int]:
        scores, row = lexical[number], cosines[number]

        def combine(_words: list[int], _dense: list[int], union: list[int]) -> Scores:
            fused = convex([scores.get(entry, 0.0) for entry in union], [float(row[entry]) for entry in union])
            return dict(zip(union, fused, strict=True))

        return fuse(scores, row, combine)

    def by_knowledge(number: int, how: Fusion = "rrf") -> list[int]:
        scores, row, query = lexical[number], cosines[number], collection.queries[number]
        is_read = embedder.reads(query)
        trust = 1.0 if embedder.knows(recognise(query)) else TRUST_OF_UNKNOWN

        words, dense = rank_scores(scores), rank_cosines(row) if is_read else []
        candidates = [
            # The later in the collection the newer: ties are broken as the product does.
            Candidate(
                str(entry),
                NEVER + timedelta(seconds=entry),
                scores.get(entry, 0.0),
                float(row[entry]) if is_read else None,
            )
            for entry in dict.fromkeys([*words, *dense])
        ]
        return [int(candidate.id) for candidate, _ in rank(candidates, parse_query(query), how, trust)]

    return {
        "FTS5 porter (peer)": rank_by_fts5(collection),
        "lexical": lambda number: rank_scores(lexical[number]),
        "dense": lambda number: rank_cosines(cosines[number]),
        "reciprocal rank": lambda number: fuse(
            lexical[number], cosines[number], lambda words, dense, _: reciprocal_rank([words, dense])
        ),
        "convex": by_convex,
        "as knowledge ranks": by_knowledge,
        "… fused as convex": lambda number: by_knowledge(number, "convex"),
    }


def main() -> None:
    """Print one table for the collections asked for."""
    folder = get_data_folder()
    known = sorted(path.parent.name for path in folder.glob("*/qrels.tsv"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", nargs="+", choices=known, default=known, metavar="NAME")
    parser.add_argument("--vectors", choices=VECTORS, default="int8")
    parser.add_argument("--no-tool", action="store_true", help="do not ask the tool itself")
    parser.add_argument("--model", metavar="NAME", help="an installed model instead of the packaged one")
    options = parser.parse_args()
    names: list[str] = options.collections
    if not names:
        sys.exit(f"No collections in {folder}: set REFDESK_TEST_DATA to the folder of real records.")
    print(f"{'collection':<12}{'ranking':<22}{'nDCG@10':>8}{'Recall@100':>12}")
    for name in names:
        collection = read_collection(folder / name)
        rankings = get_rankings(collection, options.vectors, options.model)
        if not options.no_tool:
            from benchmarks.asking import ask_search_knowledge

            answered = asyncio.run(ask_search_knowledge(collection, model=options.model))
            rankings["search_knowledge"] = answered.__getitem__
        for title, ranking in rankings.items():
            quality = measure(collection.relevant, ranking)
            print(f"{name:<12}{title:<22}{quality.ndcg:>8.3f}{quality.recall:>12.3f}", flush=True)


if __name__ == "__main__":
    main()
