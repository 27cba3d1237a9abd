"""Two engines on the same collections in one run: do they find the same, as well, and how fast.

Run with `python -m benchmarks.engines postgresql://…`; the database must be refdesk's, and empty. Each collection is
loaded into it and into SQLite, then every question is put to both as `search_knowledge` puts it. Printed are the mean
overlap of the first ten, nDCG@10 of both, and the median and the 95th percentile of their times in milliseconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

import anyio
import numpy as np

from benchmarks.quality import (
    Judged,
    embed,
    embed_by_installed,
    find_model,
    get_data_folder,
    measure,
    read_collection,
)
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.passages import embedding_text, split
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.model import (
    Collection,
    Document,
    EmbeddedPassage,
    EmbeddingModel,
    FindRequest,
    Vector,
    VectorQuery,
)
from refdesk.protocols import Store
from refdesk.stores import sqlite
from refdesk.toolsets.knowledge.ranking import rank
from refdesk.toolsets.knowledge.search import DEPTH

BATCH = 500
TOP = 10


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of a collection: of each document's passages, and of each question."""

    model: EmbeddingModel
    passages: Sequence[Sequence[EmbeddedPassage]]
    queries: Sequence[Vector]


@dataclass(slots=True)
class Answers:
    """What an engine answered to each question, best first, and in how many seconds."""

    rankings: list[list[int]] = field(default_factory=list[list[int]])
    seconds: list[float] = field(default_factory=list[float])


async def embed_by_hashing(judged: Judged, queries: int) -> Vectors:
    """Return vectors that need no model, of the documents and the first so many questions."""
    embedder = HashingEmbedder()
    spans = [split(title, body) for title, body in judged.documents]
    texts = [
        [embedding_text(title, body, span) for span in passages]
        for (title, body), passages in zip(judged.documents, spans, strict=True)
    ]
    vectors = [await embedder.embed_passages(each) for each in texts]
    return Vectors(
        embedder.model,
        [_join(passages, of_one) for passages, of_one in zip(spans, vectors, strict=True)],
        [await embedder.embed_query(query) for query in judged.queries[:queries]],
    )


def embed_locally(judged: Judged, model: str | None = None) -> Vectors:
    """Return the vectors of the packaged model or of an installed one, from the cache of `benchmarks.quality`."""
    from refdesk.embedders.local import PASSAGE_PIECES, QUERY_PIECES, LocalEmbedder

    spans = [split(title, body) for title, body in judged.documents]
    texts = [
        embedding_text(title, body, span)
        for (title, body), passages in zip(judged.documents, spans, strict=True)
        for span in passages
    ]
    if model is None:
        made = embed(f"{judged.name}-passages", texts, PASSAGE_PIECES)
        queries = embed(f"{judged.name}-queries", judged.queries, QUERY_PIECES)
    else:
        made = embed_by_installed(model, f"{judged.name}-passages", texts, as_queries=False)
        queries = embed_by_installed(model, f"{judged.name}-queries", judged.queries, as_queries=True)
    vectors = iter(made)
    passages = [_join(each, [next(vectors) for _ in each]) for each in spans]
    return Vectors((find_model(model) if model else LocalEmbedder()).model, passages, list(queries))


def _join(spans: Sequence[tuple[int, int]], vectors: Sequence[Vector]) -> list[EmbeddedPassage]:
    return [EmbeddedPassage(start, end, vector) for (start, end), vector in zip(spans, vectors, strict=True)]


async def load(store: Store, place: Collection, judged: Judged, vectors: Vectors) -> None:
    """Store the collection; a document's id is its number."""
    documents = [make_document(place, number, *texts) for number, texts in enumerate(judged.documents)]
    for start in range(0, len(documents), BATCH):
        async with store.transaction() as transaction:
            await transaction.put_documents(documents[start : start + BATCH])
            for number, document in enumerate(documents[start : start + BATCH], start):
                passages = vectors.passages[number]
                await transaction.put_vectors(place, document.id, vectors.model, document.text_digest, passages)


def make_document(place: Collection, number: int, title: str, body: str) -> Document:
    """Return a document of a collection; each is newer than the one before."""
    instant = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
    return Document(
        collection=place,
        id=str(number),
        title=title,
        body=body,
        author="benchmark",
        created_at=instant,
        modified_at=instant,
        data={"confidence": 50},
    )


def make_request(place: Collection, query: str, vector: Vector, model: EmbeddingModel) -> FindRequest:
    """Return what `search_knowledge` asks the store."""
    return FindRequest(
        place,
        parse_query(query),
        VectorQuery(vector, model.name),
        depth=DEPTH,
        title_contains=query.strip(),
        as_written=query,
        counts=False,
    )


async def answer(store: Store, place: Collection, judged: Judged, vectors: Vectors) -> Answers:
    """Return the answers to every question that has a vector."""
    answers = Answers()
    for query, vector in zip(judged.queries, vectors.queries, strict=False):
        started = perf_counter()
        found = await store.find(make_request(place, query, vector, vectors.model))
        answers.seconds.append(perf_counter() - started)
        answers.rankings.append([int(candidate.id) for candidate, _ in rank(found.candidates, parse_query(query))])
    return answers


def get_overlap(one: Answers, other: Answers) -> float:
    """Return the mean share of the first `TOP` that both have."""
    shares = [
        len(set(mine[:TOP]) & set(yours[:TOP])) / max(1, len(mine[:TOP]), len(yours[:TOP]))
        for mine, yours in zip(one.rankings, other.rankings, strict=True)
    ]
    return sum(shares) / len(shares)


def get_ndcg(judged: Judged, answers: Answers) -> float:
    """Return nDCG@10 over the questions that were answered."""
    return measure(judged.relevant[: len(answers.rankings)], answers.rankings.__getitem__).ndcg


async def compare(url: str, names: Sequence[str], *, hashing: bool) -> None:
    """Print a line for each collection."""
    from refdesk.stores import postgres

    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stores = [
            await stack.enter_async_context(sqlite.open_store(folder / "store.sqlite3")),
            await stack.enter_async_context(postgres.open_store(url)),
        ]
        for name in names:
            judged = read_collection(get_data_folder() / name)
            vectors = await embed_by_hashing(judged, len(judged.queries)) if hashing else embed_locally(judged)
            answers = [await _load_and_answer(store, judged, vectors) for store in stores]
            _print_line(judged, *answers)


async def _load_and_answer(store: Store, judged: Judged, vectors: Vectors) -> Answers:
    place = Collection("benchmark", judged.name)
    await load(store, place, judged, vectors)
    await answer(store, place, judged, Vectors(vectors.model, vectors.passages, vectors.queries[:5]))
    return await answer(store, place, judged, vectors)


def _print_line(judged: Judged, embedded: Answers, other: Answers) -> None:
    numbers = [get_overlap(embedded, other), get_ndcg(judged, embedded), get_ndcg(judged, other)]
    times = [1000 * np.percentile(answers.seconds, share) for answers in (embedded, other) for share in (50, 95)]
    print(f"{judged.name:<12}" + "".join(f"{n:>9.3f}" for n in numbers) + "".join(f"{t:>8.1f}" for t in times))


def main() -> None:
    """Print one table for the collections asked for."""
    known = sorted(path.parent.name for path in get_data_folder().glob("*/qrels.tsv"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="the URL of an empty database")
    parser.add_argument("--collections", nargs="+", choices=known, default=known, metavar="NAME")
    parser.add_argument("--hashing", action="store_true", help="vectors without a model")
    options = parser.parse_args()
    if not options.collections:
        sys.exit("No collections: set REFDESK_TEST_DATA to the folder of real records.")
    titles = ("overlap", "nDCG em.", "nDCG PG")
    percentiles = ("em. p50", "p95", "PG p50", "p95")
    print(f"{'collection':<12}" + "".join(f"{t:>9}" for t in titles) + "".join(f"{t:>8}" for t in percentiles))
    anyio.run(lambda: compare(options.url, options.collections, hashing=options.hashing))


if __name__ == "__main__":
    main()
