"""A part so large that neither all postings nor all vectors are looked at: answers are those of looking at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.finding import (
    DEPTH,
    FILTERS,
    WIDTH,
    Corpus,
    Question,
    find_nearest,
    judge,
    make_corpus,
    make_index,
    make_questions,
)
from benchmarks.finding import make_request as ask
from refdesk.embedders.hashing import embed
from refdesk.model import FindRequest, InState, Not, State
from refdesk.stores.sqlite.index import CollectionIndex, VectorRow, from_content, lexical, map_content, merge_snapshots
from refdesk.stores.sqlite.index.binary import make_codes
from refdesk.stores.sqlite.index.passing import Passing
from refdesk.stores.sqlite.index.vectors import CODES_FROM, WIDENED, Passages, widen
from tests.stores.sqlite.index.corpus import make_document, to_row

SIZE = 4 * CODES_FROM


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(SIZE)


@pytest.fixture(scope="module")
def questions(corpus: Corpus) -> list[Question]:
    return make_questions(corpus)[:12]


@pytest.fixture(scope="module")
def folder(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large")
    make_index(corpus, path)
    return path


@pytest.fixture
def index(folder: Path) -> CollectionIndex:
    return open_index(folder)


def open_index(folder: Path) -> CollectionIndex:

    return CollectionIndex([from_content(map_content(folder / "part"))])


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("way", ["words", "meaning", "both"])
def test_the_answers_are_those_of_looking_at_all(
    index: CollectionIndex, corpus: Corpus, questions: list[Question], way: str, name: str
) -> None:
    wanted = FILTERS[name]
    nearest = find_nearest(corpus, questions, wanted)
    shares = [judge(index, ask(each, way, wanted), near) for each, near in zip(questions, nearest, strict=True)]
    assert np.mean(shares) >= (1.0 if way == "words" or name == "1 in 500" else 0.99)


def test_most_of_the_next_hundred_are_found_too(
    index: CollectionIndex, corpus: Corpus, questions: list[Question]
) -> None:
    """Not only the first ten, for which it is measured where to look: lists are joined to a hundred each."""
    wanted = FILTERS["1 in 7"]
    nearest = find_nearest(corpus, questions, wanted, DEPTH)
    shares = [judge(index, ask(each, "meaning", wanted), near) for each, near in zip(questions, nearest, strict=True)]
    assert np.mean(shares) >= 0.85


def find_exactly(index: CollectionIndex, request: FindRequest) -> list[tuple[str, float]]:
    found = index.find(replace(request, counts=True)).candidates
    return [(each.id, each.lexical) for each in found]


def test_a_filter_that_leaves_out_what_was_asked_about_still_gives_the_nearest() -> None:
    """Fields of many topics each; what passes is of other fields than the questions, so that nothing is near."""
    fields, topics, of_topic = 40, 500, 40
    drawn = np.random.default_rng(5)
    centres = _draw(drawn, fields)
    inner = centres[np.arange(topics) % fields] + _draw(drawn, topics)
    vectors = _scale(inner.repeat(of_topic, axis=0) + _draw(drawn, topics * of_topic)).astype(np.float16)
    passages, rows = _hold(vectors), np.arange(len(vectors))
    passing = np.flatnonzero(rows // of_topic % fields % 3 == 1)
    shares: list[float] = []
    for field in range(0, fields, 3):
        query = _scale(centres[field] + _draw(drawn, 1)[0])
        found, cosines = passages.find_nearest(Passing(len(rows), rows=passing), query, DEPTH, None)
        exact = vectors[passing].astype(np.float32) @ query
        nearest = set(passing[np.argsort(-exact)[:10]].tolist())
        shares.append(len(nearest.intersection(found[np.argsort(-cosines)[:10]].tolist())) / 10)

    assert np.mean(shares) >= 0.95


@pytest.mark.parametrize("share", [1, 7])
def test_vectors_that_are_all_nearly_as_near_are_told_apart_by_their_codes(share: int) -> None:
    """Sums of words of which the same few are frequent, as hashing gives them: in a cone, and in no clusters."""
    words = np.array([embed(f"word{number}") for number in range(2000)])
    edges = np.cumsum(1.0 / np.arange(10, 10 + len(words)))
    drawn = np.searchsorted(edges, np.random.default_rng(5).random((SIZE, 128)) * float(edges[-1]))
    counts = np.zeros((SIZE, len(words)), np.float32)
    np.add.at(counts, (np.arange(SIZE)[:, np.newaxis], drawn), 1.0)
    vectors = _scale(counts @ words).astype(np.float16)
    passages, passing = _hold(vectors), np.arange(0, SIZE, share)
    wanted = Passing(SIZE) if share == 1 else Passing(SIZE, rows=passing)
    shares: list[float] = []
    for number in range(0, SIZE, SIZE // 40):
        query = _scale(words[drawn[number, :6]].sum(axis=0))
        found, cosines = passages.find_nearest(wanted, query, DEPTH, None)
        exact = vectors[passing].astype(np.float32) @ query
        nearest = set(passing[np.argsort(-exact)[:10]].tolist())
        shares.append(len(nearest.intersection(found[np.argsort(-cosines)[:10]].tolist())) / 10)

    assert np.mean(shares) >= 0.99
    assert passages.codes is not None
    assert passages.codes.survivors < SIZE // 4


def _hold(vectors: NDArray[np.float16]) -> Passages:
    """Return passages with these vectors, one for each document."""
    rows = np.arange(len(vectors))
    return Passages(
        vectors=vectors,
        starts=np.zeros(len(rows), np.int32),
        ends=np.ones(len(rows), np.int32),
        group_starts=rows,
        group_sizes=np.ones(len(rows), np.int64),
        group_rows=rows.astype(np.int32),
        group_of_row=rows.astype(np.int32),
        codes=make_codes(vectors),
    )


def _draw(generator: np.random.Generator, count: int) -> NDArray[np.float32]:
    return _scale(generator.standard_normal((count, WIDTH), dtype=np.float32))


def _scale(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("words", [1, 400])
def test_words_rank_the_same_once_documents_have_come_and_gone(
    index: CollectionIndex, questions: list[Question], words: int
) -> None:
    """So that neither the number of documents nor their mean length is what the bounds were made for."""
    gone = [to_row(make_document(key, state=State.WITHDRAWN)) for key in range(0, SIZE, 3)]
    come = [to_row(make_document(SIZE + key, body="w9 w30 " + "other " * words)) for key in range(SIZE // 8)]
    index.apply([*gone, *come])
    for question in questions:
        for where in (None, Not(InState((State.SUPERSEDED,)))):
            request = replace(ask(question, "words", None), where=where)
            found = index.find(request).candidates
            assert [(each.id, each.lexical) for each in found] == find_exactly(index, request)


@pytest.mark.parametrize("name", FILTERS)
def test_frequent_words_alone_rank_the_same_by_their_bits(
    index: CollectionIndex, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As in a larger part, where bits tell which rows are added up at all."""
    monkeypatch.setattr(lexical, "MEET_FROM", 0)
    monkeypatch.setattr(lexical, "MEET_SHARE", 2)
    questions = [
        ("w1",),
        ("w30", "w9"),
        ("w3", "w50", "w110"),
        ("w11", "w14", "w60", "w80", "w100"),
        ("w5000", "w2", "w40", "w70"),
        ("w5000", "w300", "w200", "w9", "w8", "w7", "w6", "w5", "w4", "w3"),
    ]
    requests = [
        ask(Question(words, corpus.vectors[0].astype(np.float32)), "words", FILTERS[name]) for words in questions
    ]
    come = [to_row(make_document(SIZE + key, body="w9 w30 " + "other " * 90)) for key in range(SIZE // 8)]
    for more in ([], come):
        index.apply(more)
        for request in requests:
            found = index.find(request).candidates
            assert [(each.id, each.lexical) for each in found] == find_exactly(index, request)


def test_a_document_of_many_passages_is_found_by_its_best(corpus: Corpus, tmp_path: Path) -> None:
    plain = make_index(corpus, tmp_path)
    keys = range(0, SIZE, 100)
    more = [
        VectorRow(key, at, at + 1, corpus.vectors[other].tobytes())
        for key in keys
        for at, other in enumerate((key, key + 1))
    ]
    plain.apply([to_row(make_document(key)) for key in keys])
    plain.set_vectors("m", WIDTH, keys, more)
    plain = CollectionIndex([merge_snapshots(plain.parts)])
    for key in keys[:20]:
        request = ask(Question((), corpus.vectors[key + 1].astype(np.float32)), "meaning", None)
        assert {each.id for each in plain.find(request).candidates[:2]} == {f"d{key}", f"{key + 1:08}"}


def test_halves_are_widened_to_the_last_bit() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    np.testing.assert_array_equal(widen(halves.view(np.int16)) * WIDENED, halves.astype(np.float32))
