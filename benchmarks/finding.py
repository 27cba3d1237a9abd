"""Search itself, without embedding: the embedded engine's index beside one put together from kept libraries.

Run with `python -m benchmarks.finding [SIZE …]`; sizes are numbers of documents, 100000 unless given. `--long` means
100000 and 1000000, and takes some minutes and 8 GB of disk; what is invented is mapped from files. `--ways words` asks
by words alone. `--cpu` counts the CPU time of the thread that asks, not the clock: by words, where neither side has
others, that tells on a busy machine what the clock would on a quiet one.

The peer ranks words with Tantivy (BM25 as it is built in, one segment, numbers of documents told by their place) and
vectors with numpy: one bit for each component, centred on the mean, and exact products for the best of those; filters
are a query of terms there and a mask here, and both lists are joined by reciprocal rank. Both sides are asked in turns,
for the first 100 of each list, and return ids and scores; ours also says how both sides score what either found, and
what else ranking needs. Everything is invented from a seed: words follow Zipf's law, vectors lie near the centres of
topics.

Printed is, for words, meaning and both, without a filter, with one that one document in seven passes and with one that
one in 500 passes: the median and 95th percentile of both in milliseconds, the ratio of the medians, and how well ours
agrees with comparing everything: whether the first ten by words are the same, and how many of the ten nearest it finds.
Before it, what making the index took: CPU, and private memory at most beside what the benchmark had before. After
several sizes, the exponent with which each median has grown: 1 is linear.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any, TypeVar

import numpy as np
import tantivy
from numpy.typing import NDArray

from benchmarks.memory import Peak, get_private_bytes
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
WAYS = ("words", "meaning", "both")
BATCH = 20_000
START = datetime(2026, 1, 1, tzinfo=UTC)
COLLECTION = Collection("local", "benchmark")
WORDS = tuple(f"w{rank}" for rank in range(VOCABULARY))
NUMBERS = np.array([hash_term(word) for word in WORDS], "<u8")
FILTERS: dict[str, tuple[str, int] | None] = {"": None, "1 in 7": ("kind", 7), "1 in 500": ("team", 500)}

Scalar = TypeVar("Scalar", bound=np.generic)
Floats = NDArray[np.float32]
Hit = tuple[str, float]
"""Id and score."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Word ranks of each document, shape `(documents, TITLE_WORDS + BODY_WORDS)`, and a unit vector for each, which has
    no components where only words are asked for."""

    ranks: NDArray[np.int32]
    vectors: NDArray[np.float16]
    centres: Floats

    @property
    def has_vectors(self) -> bool:
        """Whether they have components."""
        return self.vectors.shape[1] > 0


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: words, and a vector near a topic's centre."""

    words: tuple[str, ...]
    vector: Vector


def make_corpus(size: int, folder: Path | None = None, width: int = WIDTH) -> Corpus:
    """Return a corpus, the same in every run; mapped from files in a folder, if one is given.

    Args:
        width: Of the vectors; 0 for none, with the same words.
    """
    words, meaning = np.random.default_rng(size).spawn(2)
    edges = np.cumsum(1.0 / np.arange(1 + SKIPPED, VOCABULARY + 1 + SKIPPED))
    ranks = _allocate(folder, "ranks", (size, TITLE_WORDS + BODY_WORDS), np.int32)
    vectors = _allocate(folder, "vectors", (size, width), np.float16)
    centres = _normalise(meaning.standard_normal((max(10, size // TOPIC_SIZE), width), dtype=np.float32))
    for start in range(0, size, BATCH):
        at = slice(start, min(start + BATCH, size))
        ranks[at] = edges.searchsorted(words.random(ranks[at].shape) * float(edges[-1]))
        vectors[at] = _draw_vectors(meaning, centres, at.stop - at.start)
    return Corpus(ranks, vectors, centres)


def _allocate(folder: Path | None, name: str, shape: tuple[int, int], dtype: type[Scalar]) -> NDArray[Scalar]:
    if folder is None or not shape[1]:
        return np.empty(shape, dtype)
    return np.memmap(folder / name, dtype, "w+", shape=shape)


def _draw_vectors(generator: np.random.Generator, centres: Floats, count: int) -> Floats:
    topics = generator.integers(0, len(centres), count)
    offsets = _normalise(generator.standard_normal((count, centres.shape[1]), dtype=np.float32))
    return _normalise((centres[topics] + SPREAD * offsets).astype(np.float32))


def _normalise(vectors: Floats) -> Floats:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make_questions(corpus: Corpus, count: int = QUESTIONS) -> list[Question]:
    """Return so many questions, of three to six words, frequent ones more often, each with a vector."""
    generator = np.random.default_rng(3)
    vectors = _draw_vectors(generator, corpus.centres, count)
    questions: list[Question] = []
    for vector in vectors:
        drawn = np.exp(generator.uniform(np.log(10), np.log(VOCABULARY / 4), generator.integers(3, 7))).astype(int)
        numbers: list[int] = drawn.tolist()
        questions.append(Question(tuple(dict.fromkeys(WORDS[number] for number in numbers)), vector))
    return questions


def make_index(corpus: Corpus, folder: Path) -> CollectionIndex:
    """Return an index of the corpus, mapped from a file that was merged from several."""
    parts: list[Snapshot] = []
    for start in range(0, len(corpus.ranks), BATCH):
        index = CollectionIndex()
        rows = list(_make_rows(corpus, start))
        index.apply(rows)
        if corpus.has_vectors:
            vectors = [VectorRow(row.key, 0, 1, corpus.vectors[row.key].tobytes()) for row in rows]
            index.set_vectors("m", WIDTH, [row.key for row in rows], vectors)
            del vectors
        parts.append(_freeze(index.parts, folder / f"part-{start}"))
        del index, rows
    whole = _freeze(parts, folder / "part")
    for start in range(0, len(corpus.ranks), BATCH):
        (folder / f"part-{start}").unlink()
    return CollectionIndex([whole])


def _freeze(parts: Sequence[Snapshot], path: Path) -> Snapshot:
    write_content(path, to_content(merge_snapshots(parts), {}))
    return from_content(map_content(path))


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
        self._values = {name: np.arange(len(corpus.ranks)) % every for name, every in (("kind", 7), ("team", 500))}
        if corpus.has_vectors:
            self._take_vectors(corpus, folder)

    def _take_vectors(self, corpus: Corpus, folder: Path) -> None:
        self._vectors = np.memmap(folder / "vectors", np.float32, "w+", shape=corpus.vectors.shape)
        for start in range(0, len(self._vectors), BATCH):
            self._vectors[start : start + BATCH] = corpus.vectors[start : start + BATCH]
        self._mean = self._vectors.mean(axis=0)
        self._codes = self._encode(self._vectors)

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


def measure(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the time of a call in milliseconds, the best of five: others use the machine, too."""
    times: list[float] = []
    for _ in range(5):
        start = clock()
        call()
        times.append((clock() - start) * 1000)
    return min(times)


def compare(
    index: CollectionIndex,
    peer: Peer,
    asked: Sequence[Question],
    nearest: Sequence[frozenset[str]],
    way: str,
    name: str,
    clock: Callable[[], float],
) -> tuple[float, float]:
    """Print a line, and return both medians.

    Args:
        nearest: To each question, see `find_nearest`.
    """
    wanted = FILTERS[name]
    ours, theirs, shares = list[float](), list[float](), list[float]()
    for question, near in zip(asked, nearest, strict=True):
        request = make_request(question, way, wanted)
        ours.append(measure(lambda request=request: index.find(request), clock))
        theirs.append(measure(lambda question=question: ask_peer(peer, question, way, wanted), clock))
        shares.append(judge(index, request, near))
    p50, p95, peer50, peer95 = (float(np.percentile(each, at)) for each in (ours, theirs) for at in (50, 95))
    print(
        f"  {way:<8} {name:<9} {p50:8.2f} {p95:8.2f}  peer {peer50:8.2f} {peer95:8.2f}  "
        f"ratio {p50 / peer50:5.2f}  p95/p50 {p95 / p50:5.2f}  as exact {np.mean(shares):.3f}",
        flush=True,
    )
    return p50, peer50


def judge(index: CollectionIndex, request: FindRequest, nearest: frozenset[str]) -> float:
    """Return which share of the first ten are those of comparing everything; with both lists, the nearest."""
    found = index.find(request)
    if request.vector is None:
        exact = index.find(replace(request, counts=True))
        pairs = zip(found.candidates[:TOP], exact.candidates[:TOP], strict=True)
        same = [(one.id, one.lexical) == (other.id, other.lexical) for one, other in pairs]
        return float(np.mean(same)) if same else 1.0
    best = sorted(found.candidates, key=lambda each: -(each.cosine or 0.0))[: len(nearest)]
    return len(nearest.intersection(each.id for each in best)) / len(nearest)


def find_nearest(
    corpus: Corpus, asked: Sequence[Question], wanted: tuple[str, int] | None, depth: int = TOP
) -> list[frozenset[str]]:
    """Return the ids of the nearest to each question by comparing everything; none where there are no vectors."""
    if not corpus.has_vectors:
        return [frozenset()] * len(asked)
    passing = np.arange(len(corpus.vectors))
    if wanted is not None:
        passing = passing[passing % wanted[1] == 1]
    vectors = np.stack([question.vector for question in asked], axis=1)
    pieces = (passing[at : at + BATCH] for at in range(0, len(passing), BATCH))
    cosines = np.concatenate([corpus.vectors[piece].astype(np.float32) @ vectors for piece in pieces])
    best = [np.argpartition(-each, depth - 1)[:depth] for each in cosines.T]
    return [frozenset(f"{number:08}" for number in passing[each].tolist()) for each in best]


def run(
    size: int,
    folder: Path,
    questions: int = QUESTIONS,
    ways: Sequence[str] = WAYS,
    clock: Callable[[], float] = perf_counter,
) -> dict[tuple[str, str], tuple[float, float]]:
    """Print the table of a size, and return the medians, ours and the peer's."""
    print(f"{size} documents, p50 and p95 of {questions} questions in ms, first {DEPTH} of each list", flush=True)
    corpus = make_corpus(size, folder, 0 if tuple(ways) == ("words",) else WIDTH)
    before, start = get_private_bytes(), process_time()
    with Peak() as peak:
        index = make_index(corpus, folder)
    bytes_each = (folder / "part").stat().st_size / size
    print(
        f"  made in {process_time() - start:.1f} CPU s, with at most {(peak.bytes - before) / 1e6:.0f} MB of private "
        f"memory, {bytes_each:.0f} bytes a document",
        flush=True,
    )
    (folder / "peer").mkdir()
    peer = Peer(corpus, folder / "peer")
    asked = make_questions(corpus, questions)
    nearest = {name: find_nearest(corpus, asked, wanted) for name, wanted in FILTERS.items()}
    gc.collect()
    gc.freeze()
    # Gigabytes were written: while they go to the disk, whatever is measured first takes longer.
    os.sync()
    return {
        (way, name): compare(index, peer, asked, nearest[name], way, name, clock) for way in ways for name in FILTERS
    }


def main() -> None:
    """Print a table for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[SIZE], metavar="SIZE")
    parser.add_argument("--long", action="store_true", help=f"{SIZE} and {LONG}")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--cpu", action="store_true", help="count CPU time")
    options = parser.parse_args()
    sizes: list[int] = [SIZE, LONG] if options.long else options.sizes
    medians: list[dict[tuple[str, str], tuple[float, float]]] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            medians.append(
                run(size, Path(folder), QUESTIONS, options.ways, thread_time if options.cpu else perf_counter)
            )
    if len(sizes) > 1:
        print(f"grown from {sizes[0]} to {sizes[-1]} documents with the exponent")
        factor = np.log(sizes[-1] / sizes[0])
        for (way, name), last in medians[-1].items():
            ours, theirs = np.log(np.array(last) / np.array(medians[0][way, name])) / factor
            print(f"  {way:<8} {name:<9} {ours:5.2f}  peer {theirs:5.2f}")


if __name__ == "__main__":
    main()
