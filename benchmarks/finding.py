"""Search itself, without embedding: the embedded engine's index beside one put together from kept libraries.

Run with `python -m benchmarks.finding [SIZE …]`; sizes are numbers of documents, 100000 unless given. `--long` means
100000 and 1000000, and takes some minutes and 10 GB of memory. The peer ranks words with Tantivy (BM25 as it is built
in, one segment, numbers of documents told by their place) and vectors with numpy: one bit for each component, centred
on the mean, and exact products for the best of those; filters are a query of terms there and a mask here, and both
lists are joined by reciprocal rank. Both sides are asked in turns, for the first 100 of each list, and return ids and
scores; ours also says how both sides score what either found, and what else ranking needs. Everything is invented from
a seed: words follow Zipf's law, vectors lie near the centres of topics.

Printed is, for words, meaning and both, without a filter, with one that one document in seven passes and with one that
one in 500 passes: the median and 95th percentile of both in milliseconds, the ratio of the medians, and how well ours
agrees with comparing everything: whether the first ten by words are the same, and how many of the ten nearest it finds.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import tantivy
from numpy.typing import NDArray

from refdesk.model import Collection, FindRequest, HasAny, State, TextQuery, Vector, VectorQuery
from refdesk.stores.sqlite.index import (
    CollectionIndex,
    IndexRow,
    Snapshot,
    VectorRow,
    from_content,
    map_content,
    merge_snapshots,
    to_content,
    write_content,
)
from refdesk.stores.sqlite.index.terms import hash_term

SIZE, LONG = 100_000, 1_000_000
VOCABULARY = 100_000
SKIPPED = 20
"""The commonest words are stop words, which no index sees."""

TITLE_WORDS, BODY_WORDS = 6, 60
WIDTH, TOPIC_SIZE, SPREAD = 384, 100, 0.9
DEPTH, TOP = 100, 10
SURVIVORS = 500
QUESTIONS = 60
BATCH = 20_000
START = datetime(2026, 1, 1, tzinfo=UTC)
COLLECTION = Collection("local", "benchmark")
WORDS = tuple(f"w{rank}" for rank in range(VOCABULARY))
NUMBERS = np.array([hash_term(word) for word in WORDS], "<u8")
FILTERS: dict[str, tuple[str, int] | None] = {"": None, "1 in 7": ("kind", 7), "1 in 500": ("team", 500)}

Floats = NDArray[np.float32]
Hit = tuple[str, float]
"""Id and score."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Word ranks of each document, shape `(documents, TITLE_WORDS + BODY_WORDS)`, and a unit vector for each."""

    ranks: NDArray[np.int32]
    vectors: NDArray[np.float16]
    centres: Floats


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: words, and a vector near a topic's centre."""

    words: tuple[str, ...]
    vector: Vector


def make_corpus(size: int) -> Corpus:
    """Return a corpus, the same in every run."""
    generator = np.random.default_rng(size)
    edges = np.cumsum(1.0 / np.arange(1 + SKIPPED, VOCABULARY + 1 + SKIPPED))
    ranks = np.empty((size, TITLE_WORDS + BODY_WORDS), np.int32)
    vectors = np.empty((size, WIDTH), np.float16)
    centres = _normalise(generator.standard_normal((max(10, size // TOPIC_SIZE), WIDTH), dtype=np.float32))
    for start in range(0, size, BATCH):
        at = slice(start, min(start + BATCH, size))
        ranks[at] = edges.searchsorted(generator.random(ranks[at].shape) * float(edges[-1]))
        vectors[at] = _draw_vectors(generator, centres, at.stop - at.start)
    return Corpus(ranks, vectors, centres)


def _draw_vectors(generator: np.random.Generator, centres: Floats, count: int) -> Floats:
    topics = generator.integers(0, len(centres), count)
    offsets = _normalise(generator.standard_normal((count, WIDTH), dtype=np.float32))
    return _normalise((centres[topics] + SPREAD * offsets).astype(np.float32))


def _normalise(vectors: Floats) -> Floats:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make_questions(corpus: Corpus) -> list[Question]:
    """Return questions of three to six words, frequent ones more often, each with a vector."""
    generator = np.random.default_rng(3)
    vectors = _draw_vectors(generator, corpus.centres, QUESTIONS)
    questions: list[Question] = []
    for vector in vectors:
        drawn = np.exp(generator.uniform(np.log(10), np.log(VOCABULARY / 4), generator.integers(3, 7))).astype(int)
        numbers: list[int] = drawn.tolist()
        questions.append(Question(tuple(dict.fromkeys(WORDS[number] for number in numbers)), vector))
    return questions


def make_index(corpus: Corpus, folder: Path) -> CollectionIndex:
    """Return an index of the corpus, mapped from a file."""
    parts: list[Snapshot] = []
    for start in range(0, len(corpus.ranks), BATCH):
        index = CollectionIndex()
        rows = list(_make_rows(corpus, start))
        index.apply(rows)
        vectors = [VectorRow(row.key, 0, 1, corpus.vectors[row.key].tobytes()) for row in rows]
        index.set_vectors("m", WIDTH, [row.key for row in rows], vectors)
        parts += index.parts
    write_content(folder / "part", to_content(merge_snapshots(parts), {}))
    del parts
    return CollectionIndex([from_content(map_content(folder / "part"))])


def _make_rows(corpus: Corpus, start: int) -> Iterator[IndexRow]:
    header = np.array([TITLE_WORDS], "<u8").tobytes()
    for key, ranks in enumerate(corpus.ranks[start : start + BATCH], start):
        yield IndexRow(
            key=key,
            seq=1,
            id=f"{key:08}",
            state=State.CURRENT,
            created_at=START,
            modified_at=START + timedelta(seconds=key),
            title=f"document {key}",
            facets={"kind": (f"k{key % 7}",), "team": (f"t{key % 500}",)},
            date_ranges={},
            terms=header + NUMBERS[ranks].tobytes(),
        )


class Peer:
    """Tantivy for words, one bit and exact products for vectors."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("title", tokenizer_name="whitespace")
        schema.add_text_field("body", tokenizer_name="whitespace")
        for name in ("kind", "team"):
            schema.add_text_field(name, tokenizer_name="raw", index_option="basic")
        schema.add_unsigned_field("number", stored=True)
        self._schema = schema.build()
        self._index: Any = tantivy.Index(self._schema, path=str(folder))
        self._fill(corpus)
        self._searcher: Any = self._index.searcher()
        self._vectors = corpus.vectors.astype(np.float32)
        self._mean = self._vectors.mean(axis=0)
        self._codes = self._encode(self._vectors)
        self._values = {name: np.arange(len(corpus.ranks)) % every for name, every in (("kind", 7), ("team", 500))}

    def _fill(self, corpus: Corpus) -> None:
        writer: Any = self._index.writer(heap_size=1 << 30, num_threads=1)
        for number, ranks in enumerate(corpus.ranks):
            numbers: list[int] = ranks.tolist()
            words = [WORDS[rank] for rank in numbers]
            document: Any = tantivy.Document()
            document.add_text("title", " ".join(words[:TITLE_WORDS]))
            document.add_text("body", " ".join(words[TITLE_WORDS:]))
            document.add_text("kind", f"k{number % 7}")
            document.add_text("team", f"t{number % 500}")
            document.add_unsigned("number", number)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        searcher: Any = self._index.searcher()
        hits = searcher.search(tantivy.Query.all_query(), limit=len(corpus.ranks)).hits
        self._ids = [f"{number:08}" for number in range(len(corpus.ranks))]
        self._held: dict[tuple[int, int], str] = {
            (at.segment_ord, at.doc): self._ids[searcher.doc(at)["number"][0]] for _, at in hits
        }

    def _encode(self, vectors: Floats) -> NDArray[np.uint64]:
        pieces = [np.packbits(vectors[at : at + BATCH] > self._mean, axis=1) for at in range(0, len(vectors), BATCH)]
        return np.ascontiguousarray(np.concatenate(pieces).view(np.uint64).T)

    def find_words(self, words: Sequence[str], wanted: tuple[str, int] | None) -> list[Hit]:
        """Return the best by words."""
        query: Any = tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, tantivy.Query.boost_query(self._term("title", word), 2.0)) for word in words]
            + [(tantivy.Occur.Should, self._term("body", word)) for word in words]
        )
        if wanted is not None:
            name, _ = wanted
            passing = tantivy.Query.const_score_query(self._term(name, f"{name[0]}1"), 0.0)
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, passing)])
        hits: Any = self._searcher.search(query, limit=DEPTH, count=False).hits
        return [(self._held[at.segment_ord, at.doc], score) for score, at in hits]

    def _term(self, field: str, word: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, field, word, index_option="freq")

    def find_near(self, vector: Vector, wanted: tuple[str, int] | None) -> list[Hit]:
        """Return the nearest."""
        passing = np.flatnonzero(self._values[wanted[0]] == 1) if wanted else None
        if passing is not None and len(passing) <= 4 * SURVIVORS:
            best = passing
        else:
            asked = np.packbits(vector > self._mean).view(np.uint64)
            words = self._codes if passing is None else self._codes[:, passing]
            differing = np.zeros(words.shape[1], np.uint16)
            for word, one in zip(words, asked, strict=True):
                differing += np.bitwise_count(word ^ one)
            near = np.argpartition(differing, SURVIVORS)[:SURVIVORS]
            best = near if passing is None else passing[near]
        cosines = self._vectors[best] @ vector
        order = np.argsort(-cosines)[:DEPTH]
        numbers: list[int] = best[order].tolist()
        return [(self._ids[number], cosine) for number, cosine in zip(numbers, cosines[order].tolist(), strict=True)]

    def find_both(self, question: Question, wanted: tuple[str, int] | None) -> list[Hit]:
        """Return both lists as one."""
        scores: dict[str, float] = {}
        for found in (self.find_words(question.words, wanted), self.find_near(question.vector, wanted)):
            for rank, (id, _) in enumerate(found, 1):
                scores[id] = scores.get(id, 0.0) + 1.0 / (60 + rank)
        return sorted(scores.items(), key=lambda hit: -hit[1])


def make_request(question: Question, way: str, wanted: tuple[str, int] | None) -> FindRequest:
    """Return the question as the index is asked it."""
    return FindRequest(
        COLLECTION,
        text=TextQuery(question.words) if way != "meaning" else None,
        vector=VectorQuery(question.vector, "m") if way != "words" else None,
        where=HasAny(wanted[0], (f"{wanted[0][0]}1",)) if wanted else None,
        depth=DEPTH,
        counts=False,
    )


def ask_peer(peer: Peer, question: Question, way: str, wanted: tuple[str, int] | None) -> list[Hit]:
    """Return what the peer finds."""
    match way:
        case "words":
            return peer.find_words(question.words, wanted)
        case "meaning":
            return peer.find_near(question.vector, wanted)
        case _:
            return peer.find_both(question, wanted)


def measure(call: Callable[[], object]) -> float:
    """Return the time of a call in milliseconds, the better of two."""
    times: list[float] = []
    for _ in range(2):
        start = perf_counter()
        call()
        times.append((perf_counter() - start) * 1000)
    return min(times)


def compare(index: CollectionIndex, peer: Peer, corpus: Corpus, way: str, name: str) -> None:
    """Print a line."""
    wanted = FILTERS[name]
    ours, theirs, asked, shares = list[float](), list[float](), make_questions(corpus), list[float]()
    for question in asked:
        request = make_request(question, way, wanted)
        ours.append(measure(lambda request=request: index.find(request)))
        theirs.append(measure(lambda question=question: ask_peer(peer, question, way, wanted)))
        shares.append(judge(index, corpus, request, wanted))
    p50, p95, peer50, peer95 = (float(np.percentile(each, at)) for each in (ours, theirs) for at in (50, 95))
    print(
        f"  {way:<8} {name:<9} {p50:8.2f} {p95:8.2f}  peer {peer50:8.2f} {peer95:8.2f}  "
        f"ratio {p50 / peer50:5.2f}  p95/p50 {p95 / p50:4.1f}  as exact {np.mean(shares):.3f}",
        flush=True,
    )


def judge(index: CollectionIndex, corpus: Corpus, request: FindRequest, wanted: tuple[str, int] | None) -> float:
    """Return which share of the first ten are those of comparing everything; with both lists, the nearest."""
    found = index.find(request)
    if request.vector is None:
        exact = index.find(replace(request, counts=True))
        pairs = zip(found.candidates[:TOP], exact.candidates[:TOP], strict=True)
        same = [(one.id, one.lexical) == (other.id, other.lexical) for one, other in pairs]
        return float(np.mean(same)) if same else 1.0
    passing = np.arange(len(corpus.vectors))
    if wanted is not None:
        passing = passing[passing % wanted[1] == 1]
    cosines = compare_all(corpus.vectors, passing, request.vector.vector)
    nearest = {f"{passing[at]:08}" for at in np.argsort(-cosines, kind="stable")[:TOP]}
    best = sorted(found.candidates, key=lambda each: -(each.cosine or 0.0))[:TOP]
    return len(nearest.intersection(each.id for each in best)) / len(nearest)


def compare_all(vectors: NDArray[np.float16], passing: NDArray[np.int64], query: Vector) -> Floats:
    """Return the cosine of each of the passing vectors."""
    pieces = [vectors[passing[at : at + BATCH]].astype(np.float32) @ query for at in range(0, len(passing), BATCH)]
    return np.concatenate(pieces)


def main() -> None:
    """Print a table for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[SIZE], metavar="SIZE")
    parser.add_argument("--long", action="store_true", help=f"{SIZE} and {LONG}")
    options = parser.parse_args()
    for size in (SIZE, LONG) if options.long else options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            print(
                f"{size} documents, p50 and p95 of {QUESTIONS} questions in ms, first {DEPTH} of each list", flush=True
            )
            corpus = make_corpus(size)
            index = make_index(corpus, Path(folder))
            (Path(folder) / "peer").mkdir()
            peer = Peer(corpus, Path(folder) / "peer")
            gc.collect()
            gc.freeze()
            for way in ("words", "meaning", "both"):
                for name in FILTERS:
                    compare(index, peer, corpus, way, name)


if __name__ == "__main__":
    main()
