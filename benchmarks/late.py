"""What late additions to the fused order would bring: nDCG@10 with and without them, in one run.

    python -m benchmarks.late [--collections NAME ...]

*Rocchio*: the question's vector is moved towards the best passages of the documents found first, and everything is
ranked once more (Rocchio, "Relevance Feedback in Information Retrieval", 1971, without judgements). *Piece by piece*:
the best documents are ordered anew by comparing every piece of the question with those of the passage. *Neighbours*:
each document gains a share of the scores of those before and behind it, as the turns of a conversation may explain
each other; here they are the sections of a manual, and, as a control, documents that only happen to stand beside each
other. Nothing of this is in the product: docs/explanation/search.md says why. Vectors are kept in `.benchmarks/`, as
for `benchmarks.quality`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.quality import (
    Judged,
    LexicalIndex,
    Matrix,
    embed,
    fuse,
    get_data_folder,
    measure,
    rank_scores,
    read_collection,
)
from refdesk.core.search.fusion import DENSE_WEIGHT, convex
from refdesk.core.search.passages import embedding_text, split
from refdesk.embedders.local import PASSAGE_PIECES, QUERY_PIECES
from refdesk.embedders.local.model import SentenceEncoder

COLLECTIONS = ("emanual", "cacm", "scifact", "xquad-en")
FEEDBACK = ((3, 0.1), (3, 0.2), (3, 0.4), (5, 0.2))
"""How many documents, and how far the question moves."""

SHARES = (0.1, 0.3)

DRAWN, RERANKED, PIECE_SHARES = 150, 20, (0.15, 0.3)
"""Questions of a collection that are compared piece by piece, with how many documents, and what that counts."""


@dataclass(frozen=True, slots=True)
class Searched:
    """A collection, ready to be asked.

    Attributes:
        starts: The number of each document's first passage.
    """

    judged: Judged
    lexical: Sequence[Mapping[int, float]]
    passages: Matrix
    queries: Matrix
    starts: NDArray[np.intp]

    def get_cosines(self, queries: Matrix) -> Matrix:
        """Return the cosine of each question (row) with the best passage of each document (column)."""
        return np.maximum.reduceat(queries @ self.passages.T, self.starts, axis=1)

    def score(self, cosines: Matrix, number: int, documents: Sequence[int]) -> dict[int, float]:
        """Return the convex combination of each of some documents, the best of all among them."""
        scores, row = self.lexical[number], cosines[number]
        fused = convex([scores.get(each, 0.0) for each in documents], [float(row[each]) for each in documents])
        return dict(zip(documents, fused, strict=True))

    def rank(self, cosines: Matrix, number: int) -> list[int]:
        """Return the documents for a question by the convex combination."""
        return fuse(
            self.lexical[number], cosines[number], lambda _words, _dense, union: self.score(cosines, number, union)
        )

    def measure(self, cosines: Matrix) -> float:
        """Return nDCG@10 with these cosines."""
        return measure(self.judged.relevant, lambda number: self.rank(cosines, number)).ndcg


def prepare(judged: Judged) -> Searched:
    """Return a collection with its vectors and keyword scores."""
    spans = [split(title, body) for title, body in judged.documents]
    texts = [
        embedding_text(title, body, span)
        for (title, body), passages in zip(judged.documents, spans, strict=True)
        for span in passages
    ]
    index = LexicalIndex(judged.documents)
    return Searched(
        judged,
        [index.score(query) for query in judged.queries],
        embed(f"{judged.name}-passages", texts, PASSAGE_PIECES),
        embed(f"{judged.name}-queries", judged.queries, QUERY_PIECES),
        np.cumsum([0, *(len(passages) for passages in spans)])[:-1],
    )


def feed_back(searched: Searched, cosines: Matrix, documents: int, share: float) -> Matrix:
    """Return the questions' vectors, moved towards the best passages of the first documents."""
    ends = np.append(searched.starts[1:], len(searched.passages))
    moved = [
        query + share * np.mean([_get_best(searched, query, ends, each) for each in found[:documents]], axis=0)
        if (found := searched.rank(cosines, number))
        else query
        for number, query in enumerate(searched.queries)
    ]
    return np.stack([(each / np.linalg.norm(each)).astype(float32) for each in moved])


def _get_best(searched: Searched, query: NDArray[float32], ends: NDArray[np.intp], document: int) -> NDArray[float32]:
    own = searched.passages[searched.starts[document] : ends[document]]
    return own[int(np.argmax(own @ query))]


def measure_neighbours(searched: Searched, cosines: Matrix, share: float) -> float:
    """Return nDCG@10 where each document gains a share of its neighbours' fused scores."""

    def rank(number: int) -> Sequence[int]:
        words = np.array([searched.lexical[number].get(each, 0.0) for each in range(len(searched.judged.documents))])
        row = np.maximum(cosines[number], 0.0)
        fused = (1 - DENSE_WEIGHT) * words / (words.max() or 1.0) + DENSE_WEIGHT * row / (row.max() or 1.0)
        with_others = fused.copy()
        with_others[1:] += share * fused[:-1]
        with_others[:-1] += share * fused[1:]
        summed: list[float] = with_others.tolist()
        return rank_scores(dict(enumerate(summed)))

    return measure(searched.judged.relevant, rank).ndcg


class _PieceEncoder(SentenceEncoder):
    """The packaged model, with a vector for each piece of a text."""

    def encode_pieces(self, text: str) -> NDArray[float32]:
        """Return a row for each piece, at unit length, without the signs that begin and end every text."""
        numbers = np.array(self._tokenizer.encode(text, PASSAGE_PIECES), dtype=np.int64)
        states: NDArray[float32] = self._session.run(["last_hidden_state"], {"input_ids": numbers})[0][1:-1]
        return states / np.linalg.norm(states, axis=1, keepdims=True)


def measure_pieces(searched: Searched, cosines: Matrix) -> tuple[float, ...]:
    """Return nDCG@10 on some of the questions as it is, and where the first are compared piece by piece.

    A text's value is the mean, over the question's pieces, of the cosine of the nearest piece in its best passage
    (Khattab and Zaharia, "ColBERT", 2020, by a model that was not trained for it), spread over the first; it counts a
    share.
    """
    judged, encoder = searched.judged, _PieceEncoder()
    drawn = range(0, len(judged.queries), max(1, len(judged.queries) // DRAWN))
    spans = [split(title, body) for title, body in judged.documents]

    @lru_cache(maxsize=4096)
    def read(document: int) -> list[NDArray[float32]]:
        title, body = judged.documents[document]
        return [encoder.encode_pieces(embedding_text(title, body, span)) for span in spans[document]]

    def compare(number: int) -> tuple[list[int], NDArray[float32]]:
        asked, first = encoder.encode_pieces(judged.queries[number]), searched.rank(cosines, number)[:RERANKED]
        values = [max(float((asked @ held.T).max(axis=1).mean()) for held in read(each)) for each in first]
        return first, np.array(
            [(each - min(values)) / ((max(values) - min(values)) or 1.0) for each in values], float32
        )

    compared = [compare(number) for number in drawn]
    relevant = [judged.relevant[number] for number in drawn]

    def rank(place: int, share: float) -> list[int]:
        first, values = compared[place]
        scores = searched.score(cosines, drawn[place], first)
        mixed = {each: (1 - share) * scores[each] + share * float(values[at]) for at, each in enumerate(first)}
        return rank_scores(mixed)

    return tuple(measure(relevant, partial(rank, share=share)).ndcg for share in (0.0, *PIECE_SHARES))


def main() -> None:
    """Print a line for each collection and addition."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", nargs="+", default=list(COLLECTIONS), metavar="NAME")
    names: list[str] = parser.parse_args().collections
    for name in names:
        searched = prepare(read_collection(get_data_folder() / name))
        cosines = searched.get_cosines(searched.queries)
        base = searched.measure(cosines)
        print(f"{name:<10} as it is            {base:.3f}", flush=True)
        for documents, share in FEEDBACK:
            ndcg = searched.measure(searched.get_cosines(feed_back(searched, cosines, documents, share)))
            print(f"{name:<10} Rocchio {documents} × {share:<9} {ndcg:.3f} {ndcg - base:+.3f}", flush=True)
        before, *after = measure_pieces(searched, cosines)
        for share, ndcg in zip(PIECE_SHARES, after, strict=True):
            print(f"{name:<10} piece by piece × {share:<4} {ndcg:.3f} {ndcg - before:+.3f}", flush=True)
        for share in SHARES:
            ndcg = measure_neighbours(searched, cosines, share)
            print(f"{name:<10} neighbours × {share:<6} {ndcg:.3f} {ndcg - base:+.3f}", flush=True)


if __name__ == "__main__":
    main()
