"""A large store in PostgreSQL, beside SQLite in the same run: how fast it is filled, how fast and how well it answers.

Run with `python -m benchmarks.scale postgresql://…`; the database must be refdesk's, and empty. Everything is invented
from a seed: documents of about 120 words, some of their topic's own and most of a general vocabulary whose frequencies
follow Zipf's law, each with a vector of 384 dimensions near its topic's. The largest of three orgs has 100,000 unless
`--documents` says otherwise, the others a tenth and a hundredth of that, and one document in a hundred has a rare tag.

Printed is how fast each engine was filled, and for each class of questions, put as `search_knowledge` puts them, the
median and the 95th percentile of both engines' times in milliseconds, the ratio of the medians, the mean overlap of the
first ten, and how many of the ten nearest by exact comparison are among PostgreSQL's first ten.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import anyio
import numpy as np
from numpy.typing import NDArray

from benchmarks.engines import Answers, get_overlap, make_document, make_request
from refdesk.core.search.analysis import parse_query
from refdesk.model import (
    And,
    Collection,
    Document,
    EmbeddedPassage,
    EmbeddingModel,
    Filter,
    FindRequest,
    HasAll,
    InState,
    Not,
    Or,
    Overlaps,
    State,
    Vector,
)
from refdesk.protocols import Store
from refdesk.stores import sqlite
from refdesk.toolsets.knowledge.models import EXPIRES, TAGS
from refdesk.toolsets.knowledge.ranking import rank

DOCUMENTS = 100_000
PARTS = (1, 10, 100)
"""An org has one in so many of the documents of the largest."""

MODEL = EmbeddingModel("invented", 384)
VOCABULARY = 30_000
SHIFT = 20
"""The Nth word is as frequent as 1 in N + `SHIFT`: the first of what is left when stop words are."""

TOPIC_DOCUMENTS, TOPIC_WORDS, TOPIC_SHARE = 200, 60, 0.3
TITLE_WORDS, BODY_WORDS, BODY_SPREAD = 6, 120, 40
DIRECTIONS, SPREAD = 24, 0.8
"""Vectors of a topic differ in so many directions, together by so much of the length of what they share."""

RARE = 100
QUESTIONS = 40
BATCH = 500
TOP = 10
NOW = datetime(2026, 6, 1, tzinfo=UTC)
SYLLABLES = tuple(consonant + vowel for consonant in "bdfgjklmnprstvwz" for vowel in "aiou")


class World:
    """Topics, their words and their directions: what documents and questions are drawn from, the same in every run."""

    def __init__(self, documents: int) -> None:
        self.random = np.random.default_rng(documents)
        self.topics = max(10, documents // TOPIC_DOCUMENTS)
        names = [make_word(number) for number in range(VOCABULARY + self.topics * TOPIC_WORDS)]
        self.general, self.special = names[:VOCABULARY], names[VOCABULARY:]
        self._edges = get_edges(VOCABULARY, SHIFT)
        self._topic_edges = get_edges(TOPIC_WORDS, 0)
        self._centres = normalise(self.random.standard_normal((self.topics, MODEL.dimensions)))
        self._directions = normalise(self.random.standard_normal((DIRECTIONS, MODEL.dimensions)))

    def draw_general(self, count: int) -> list[str]:
        """Return words of the general vocabulary."""
        return [self.general[rank] for rank in self._draw(self._edges, count)]

    def draw_special(self, topic: int, count: int) -> list[str]:
        """Return words of a topic."""
        return [self.special[topic * TOPIC_WORDS + rank] for rank in self._draw(self._topic_edges, count)]

    def draw_words(self, topic: int, count: int) -> str:
        """Return a text about a topic."""
        special = int(self.random.binomial(count, TOPIC_SHARE))
        words = [*self.draw_special(topic, special), *self.draw_general(count - special)]
        self.random.shuffle(words)
        return " ".join(words)

    def _draw(self, edges: NDArray[np.float64], count: int) -> list[int]:
        ranks: list[int] = edges.searchsorted(self.random.random(count) * float(edges[-1])).tolist()
        return ranks

    def draw_vectors(self, topics: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return unit vectors near the topics' own, shape `(topics, dimensions)`."""
        offsets = self.random.standard_normal((len(topics), DIRECTIONS)) @ self._directions
        offsets *= SPREAD / np.sqrt(DIRECTIONS)
        return normalise(self._centres[topics] + offsets).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Part:
    """The documents of one org, and a vector of each."""

    place: Collection
    documents: Sequence[Document]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and its vector."""

    text: str
    vector: Vector


@dataclass(slots=True)
class Load:
    """How many seconds an engine took to write, and then to build what makes searches fast."""

    writing: float = 0
    building: float = 0


def get_edges(count: int, shift: int) -> NDArray[np.float64]:
    """Return where each of so many words ends on a line on which it has a length of its frequency."""
    return np.cumsum(1.0 / np.arange(1 + shift, count + 1 + shift), dtype=np.float64)


def make_word(number: int) -> str:
    """Return a word of three syllables, each number's own."""
    first, rest = divmod(number, len(SYLLABLES) ** 2)
    return SYLLABLES[first] + SYLLABLES[rest // len(SYLLABLES)] + SYLLABLES[rest % len(SYLLABLES)]


def normalise(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the vectors at unit length."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def make_part(world: World, org: str, documents: int) -> Part:
    """Return an org with so many documents."""
    place = Collection(org, "knowledge")
    topics = world.random.integers(world.topics, size=documents)
    lengths = world.random.integers(BODY_WORDS - BODY_SPREAD, BODY_WORDS + BODY_SPREAD, size=documents)
    texts = [
        (world.draw_words(topic, TITLE_WORDS), world.draw_words(topic, length))
        for topic, length in zip(topics.tolist(), lengths.tolist(), strict=True)
    ]
    written = [
        replace(make_document(place, number, *text), facets={TAGS: ("rare" if number % RARE == 0 else "common",)})
        for number, text in enumerate(texts)
    ]
    return Part(place, written, world.draw_vectors(topics))


def make_questions(world: World, kind: str) -> list[Question]:
    """Return questions of a class."""
    topics = world.random.integers(world.topics, size=QUESTIONS)
    vectors = world.draw_vectors(topics)
    return [
        Question(" ".join(make_words(world, kind, topic)), vector)
        for topic, vector in zip(topics.tolist(), vectors, strict=True)
    ]


def make_words(world: World, kind: str, topic: int) -> list[str]:
    """Return the words of a question: four of a topic, three of it and three general ones, or one of the commonest."""
    if kind == "topic":
        return world.draw_special(topic, 4)
    if kind == "natural":
        return [*world.draw_special(topic, 3), *world.draw_general(3)]
    return [world.general[topic % 3]]


async def load(store: Store, parts: Sequence[Part]) -> Load:
    """Write everything; return how long it took."""
    took, started = Load(), perf_counter()
    async with store.loading():
        for part in parts:
            for start in range(0, len(part.documents), BATCH):
                await _write(store, part, slice(start, start + BATCH))
        took.writing, started = perf_counter() - started, perf_counter()
    took.building = perf_counter() - started
    return took


async def _write(store: Store, part: Part, piece: slice) -> None:
    documents = part.documents[piece]
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)
        await transaction.put_all_vectors(
            [
                (document, [(MODEL, [EmbeddedPassage(0, len(document.body), vector)])])
                for document, vector in zip(documents, part.vectors[piece], strict=True)
            ]
        )


def make_filter(tag: str | None) -> Filter:
    """Return what `search_knowledge` lets pass: what is not expired and, for their heads' sake, what is superseded."""
    live: Filter = Not(Overlaps((EXPIRES,), until=NOW))
    wanted = And((HasAll(TAGS, (tag,)), live) if tag else (live,))
    return Or((And((InState((State.CURRENT,)), wanted)), InState((State.SUPERSEDED,))))


async def answer(store: Store, part: Part, questions: Sequence[Question], tag: str | None) -> Answers:
    """Return the answers, after one to warm up."""
    answers, where = Answers(), make_filter(tag)
    for question in [questions[0], *questions]:
        request = replace(make_request(part.place, question.text, question.vector, MODEL), where=where)
        started = perf_counter()
        found = await store.find(request)
        answers.seconds.append(perf_counter() - started)
        answers.rankings.append(
            [int(candidate.id) for candidate, _ in rank(found.candidates, parse_query(question.text))]
        )
    return Answers(answers.rankings[1:], answers.seconds[1:])


async def find_nearest(store: Store, part: Part, questions: Sequence[Question], tag: str | None) -> Answers:
    """Return the nearest to each question, whatever its words."""
    answers = Answers()
    for question in questions:
        request = make_request(part.place, question.text, question.vector, MODEL)
        asked = FindRequest(part.place, vector=request.vector, where=make_filter(tag), depth=request.depth)
        found = await store.find(asked)
        nearest = sorted(found.candidates, key=lambda candidate: -(candidate.cosine or 0))
        answers.rankings.append([int(candidate.id) for candidate in nearest])
    return answers


async def compare(url: str, documents: int) -> None:
    """Print how both engines were filled, and a line for each class of questions."""
    from refdesk.stores import postgres

    world = World(documents)
    parts = [make_part(world, f"one-in-{part}", documents // part) for part in PARTS]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stores = [
            await stack.enter_async_context(sqlite.open_store(folder / "store.sqlite3")),
            await stack.enter_async_context(postgres.open_store(url)),
        ]
        for store in stores:
            _print_load(store, parts, await load(store, parts))
        _print_titles()
        for name, part, questions, tag in _list_classes(world, parts):
            answers = [await answer(store, part, questions, tag) for store in stores]
            nearest = [await find_nearest(store, part, questions, tag) for store in stores]
            _print_line(name, answers, get_overlap(*nearest))


def _list_classes(world: World, parts: Sequence[Part]) -> Iterator[tuple[str, Part, list[Question], str | None]]:
    for kind in ("topic", "natural", "frequent"):
        questions = make_questions(world, kind)
        yield kind, parts[0], questions, None
        yield f"{kind}, 1% tag", parts[0], questions, "rare"
    questions = make_questions(world, "natural")
    for part in parts[1:]:
        yield f"natural, {len(part.documents):,}", part, questions, None


def _print_load(store: Store, parts: Sequence[Part], took: Load) -> None:
    count = sum(len(part.documents) for part in parts)
    building = f", then {took.building:.0f} s for the graph" if took.building >= 1 else ""
    print(f"{store.engine}: {count:,} documents, {count / took.writing:,.0f} a second{building}")


def _print_titles() -> None:
    titles = ("em. p50", "p95", "PG p50", "p95", "ratio", "overlap", "recall")
    print(f"{'questions':<20}" + "".join(f"{title:>9}" for title in titles))


def _print_line(name: str, answers: Sequence[Answers], recall: float) -> None:
    times = [1000 * float(np.percentile(each.seconds, share)) for each in answers for share in (50, 95)]
    columns = "".join(f"{time:>9.1f}" for time in times)
    print(f"{name:<20}{columns}{times[2] / times[0]:>9.1f}{get_overlap(*answers):>9.3f}{recall:>9.3f}")


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="the URL of an empty database")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, metavar="N", help="of the largest org")
    options = parser.parse_args()
    anyio.run(lambda: compare(options.url, options.documents))


if __name__ == "__main__":
    main()
