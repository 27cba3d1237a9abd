"""Speed of the in-memory search index, as ratios to the plain way of doing the same in the same run.

Run with `python -m benchmarks.index [SIZE …]`; sizes are numbers of documents, 1000, 10000 and 100000 unless given.
Lexical search is compared with SQLite's FTS5 and its bm25() on the same text, vectors with one product of a float32
matrix in numpy. Documents are made of words whose frequencies follow Zipf's law. A ratio above 1 says that the index
is faster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from refdesk.model import And, Collection, DateRange, FindRequest, HasAny, Overlaps, State, TextQuery, VectorQuery
from refdesk.stores.sqlite.index import CollectionIndex, IndexRow, VectorRow
from refdesk.stores.sqlite.index.terms import hash_term

SIZES = (1_000, 10_000, 100_000)
VOCABULARY = 50_000
TITLE_WORDS, BODY_WORDS = 8, 130
WIDTH = 384
DEPTH = 50
ROUNDS = 60
BATCH = 1_000
START = datetime(2026, 1, 1, tzinfo=UTC)
COLLECTION = Collection("local", "benchmark")
WORDS = tuple(f"w{rank}" for rank in range(VOCABULARY))
NUMBERS = np.array([hash_term(word) for word in WORDS], "<u8")
FILTER = And((HasAny("kind", ("k1", "k2")), Overlaps(("open",), START, START + timedelta(days=200))))


@dataclass(frozen=True, slots=True)
class Corpus:
    """Word ranks of each document, shape `(documents, TITLE_WORDS + BODY_WORDS)`, and a unit vector for each."""

    ranks: NDArray[np.int64]
    vectors: NDArray[np.float32]


def make_corpus(size: int) -> Corpus:
    """Return a corpus, the same in every run."""
    generator = np.random.default_rng(size)
    edges = np.cumsum(1.0 / np.arange(1, VOCABULARY + 1), dtype=np.float64)
    draws = generator.random((size, TITLE_WORDS + BODY_WORDS)) * float(edges[-1])
    ranks: NDArray[np.int64] = edges.searchsorted(draws)
    vectors = generator.standard_normal((size, WIDTH), dtype=np.float32)
    return Corpus(ranks, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def make_rows(corpus: Corpus) -> Iterator[IndexRow]:
    """Yield the documents of a corpus as the index is given them."""
    header = np.array([TITLE_WORDS], "<u8").tobytes()
    for key, ranks in enumerate(corpus.ranks):
        opened = START + timedelta(days=key % 500)
        yield IndexRow(
            key=key,
            seq=1,
            id=f"{key:08}",
            state=State.CURRENT,
            created_at=START,
            modified_at=START + timedelta(minutes=key),
            title=f"document {key}",
            facets={"kind": (f"k{key % 7}",), "tag": (f"t{key % 50}", f"u{key % 51}")},
            date_ranges={"open": (DateRange(opened, opened + timedelta(days=5)),)},
            terms=header + NUMBERS[ranks].tobytes(),
        )


class FullText:
    """The corpus in an FTS5 table in memory, with its filter columns in a table beside it."""

    def __init__(self, corpus: Corpus) -> None:
        self._connection: Any = apsw.Connection(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE texts USING fts5(title, body, content='')")
        self._connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, kind INTEGER, opened INTEGER)")
        with self._connection:
            for key, ranks in enumerate(corpus.ranks):
                words = get_words(ranks)
                texts = (" ".join(words[:TITLE_WORDS]), " ".join(words[TITLE_WORDS:]))
                self._connection.execute("INSERT INTO texts (rowid, title, body) VALUES (?, ?, ?)", (key, *texts))
                self._connection.execute("INSERT INTO rows VALUES (?, ?, ?)", (key, key % 7, key % 500))

    def find(self, terms: tuple[str, ...]) -> list[object]:
        """Return the best documents that hold any of the terms."""
        ranked = "SELECT rowid, bm25(texts, 2.0, 1.0) AS score FROM texts WHERE texts MATCH ? ORDER BY score LIMIT ?"
        return self._connection.execute(ranked, (_match_any(terms), DEPTH)).fetchall()

    def find_filtered(self, terms: tuple[str, ...]) -> list[object]:
        """Return those of them that pass `FILTER`."""
        ranked = """
            SELECT texts.rowid, bm25(texts, 2.0, 1.0) AS score FROM texts JOIN rows ON rows.id = texts.rowid
            WHERE texts MATCH ? AND kind IN (1, 2) AND opened <= 200 ORDER BY score LIMIT ?
        """
        return self._connection.execute(ranked, (_match_any(terms), DEPTH)).fetchall()


def _match_any(terms: tuple[str, ...]) -> str:
    return " OR ".join(f'"{term}"' for term in terms)


def get_words(ranks: NDArray[np.int64]) -> list[str]:
    """Return the words of these ranks."""
    numbers: list[int] = ranks.tolist()
    return [WORDS[number] for number in numbers]


def measure(call: Callable[[], object]) -> float:
    """Return the time of a call in milliseconds, after one to warm up."""
    call()
    start = perf_counter()
    call()
    return (perf_counter() - start) * 1000


def compare(
    name: str, calls: Iterable[Callable[[], object]], other: str, other_calls: Iterable[Callable[[], object]]
) -> None:
    """Print the median times of two ways to do the same, measured in turns, so that both meet the same load."""
    pairs = [(measure(call), measure(other_call)) for call, other_call in zip(calls, other_calls, strict=True)]
    ours, theirs = (median(times) for times in zip(*pairs, strict=True))
    print(f"  {name:<32} {ours:9.3f} ms   {other} {theirs:9.3f} ms   ratio {theirs / ours:7.1f}")


def draw_questions(low: int, high: int, terms: int) -> list[tuple[str, ...]]:
    """Return questions of words of these ranks, frequent ones more often, as in the texts."""
    generator = np.random.default_rng(low)
    ranks = np.exp(generator.uniform(np.log(low + 1), np.log(high + 1), (ROUNDS, terms))).astype(np.int64) - 1
    return [tuple(dict.fromkeys(get_words(row))) for row in ranks]


def compare_words(index: CollectionIndex, full_text: FullText) -> None:
    """Print how long questions in words take."""
    for name, low, high, terms in (
        ("3 rare words", 2_000, 40_000, 3),
        ("3 words", 50, 5_000, 3),
        ("8 words", 50, 5_000, 8),
        ("3 of the 30 commonest words", 0, 30, 3),
    ):
        questions = draw_questions(low, high, terms)
        requests = [FindRequest(COLLECTION, text=TextQuery(each), depth=DEPTH) for each in questions]
        finds = (partial(full_text.find, each) for each in questions)
        compare(name, (partial(index.find, each) for each in requests), "FTS5", finds)
        requests = [replace(each, where=FILTER, facets=("kind", "tag")) for each in requests]
        finds = (partial(full_text.find_filtered, each) for each in questions)
        compare("  2 filters; ours counts 2 facets", (partial(index.find, each) for each in requests), "FTS5", finds)


def compare_vectors(index: CollectionIndex, corpus: Corpus) -> None:
    """Print how long questions by vector take; the plain way names the nearest and does no more."""
    queries = corpus.vectors[np.random.default_rng(1).integers(0, len(corpus.vectors), ROUNDS)]
    count = min(DEPTH, len(corpus.vectors) - 1)

    def scan(query: NDArray[np.float32]) -> NDArray[np.intp]:
        return np.argpartition(-(corpus.vectors @ query), count)[:count]

    for name, where in (("nearest by vector", None), ("  2 filters", FILTER)):
        vectors = (VectorQuery(query, "m") for query in queries)
        requests = [FindRequest(COLLECTION, vector=vector, where=where, depth=DEPTH) for vector in vectors]
        scans = (partial(scan, query) for query in queries)
        compare(name, (partial(index.find, each) for each in requests), "plain", scans)


def fill_index(corpus: Corpus) -> CollectionIndex:
    """Return an index of the corpus, and print what filling and changing it takes."""
    index, rows = CollectionIndex(), list(make_rows(corpus))
    start = perf_counter()
    for first in range(0, len(rows), BATCH):
        index.apply(rows[first : first + BATCH])
    loaded = perf_counter()
    vectors = corpus.vectors.astype("<f2")
    for first in range(0, len(rows), BATCH):
        keys = range(first, min(first + BATCH, len(rows)))
        index.set_vectors("m", WIDTH, keys, [VectorRow(key, 0, 1, vectors[key].tobytes()) for key in keys])
    print(f"  filled in batches of {BATCH}: text {loaded - start:.2f} s, vectors {perf_counter() - loaded:.2f} s")
    keys = np.random.default_rng(2).integers(0, len(rows), ROUNDS)
    print(f"  one document changed: {median(measure(partial(index.apply, [rows[key]])) for key in keys):.3f} ms")
    return index


def main(sizes: Sequence[int]) -> None:
    """Print the comparison for each size."""
    for size in sizes:
        print(f"{size} documents of {TITLE_WORDS} + {BODY_WORDS} words, p50 of {ROUNDS} questions, first {DEPTH}")
        corpus = make_corpus(size)
        index = fill_index(corpus)
        compare_words(index, FullText(corpus))
        compare_vectors(index, corpus)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or SIZES)
