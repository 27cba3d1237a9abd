"""What late additions to the fused order would bring: nDCG@10 with and without them, in one run.

    python -m benchmarks.late [--collections NAME ...]

*Rocchio*: the question's vector is moved towards the best passages of the documents found first, and everything is
ranked once more (Rocchio, "Relevance Feedback in Information Retrieval", 1971, without judgements). *Neighbours*:
each document gains a share of the scores of those before and behind it, as the turns of a conversation may explain
each other; here they are the sections of a manual, and, as a control, documents that only happen to stand beside each
other. Nothing of this is in the product: docs/explanation/search.md says why. Vectors are kept in `.benchmarks/`, as
for `benchmarks.quality`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from benchmarks.quality import (
    Judged,
    LexicalIndex,
    Matrix,
    Scores,
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

COLLECTIONS = ("emanual", "cacm", "scifact", "xquad-en")
FEEDBACK = ((3, 0.1), (3, 0.2), (3, 0.4), (5, 0.2))
"""How many documents, and how far the question moves."""

SHARES = (0.1, 0.3)


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

    def rank(self, cosines: Matrix, number: int) -> list[int]:
        """Return the documents for a question by the convex combination."""
        scores, row = self.lexical[number], cosines[number]

        def combine(_words: list[int], _dense: list[int], union: list[int]) -> Scores:
            fused = convex([scores.get(each, 0.0) for each in union], [float(row[each]) for each in union])
            return dict(zip(union, fused, strict=True))

        return fuse(scores, row, combine)

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
        for share in SHARES:
            ndcg = measure_neighbours(searched, cosines, share)
            print(f"{name:<10} neighbours × {share:<6} {ndcg:.3f} {ndcg - base:+.3f}", flush=True)


if __name__ == "__main__":
    main()
