from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.quality import LexicalIndex, Quality, measure, rank_by_fts5, rank_scores, read_collection


def test_quality_is_that_of_the_definitions() -> None:
    relevant = [{1: 2, 2: 1, 3: 1}]
    assert measure(relevant, lambda _: [1, 2, 3]) == Quality(1.0, 1.0)
    assert measure(relevant, lambda _: []) == Quality(0.0, 0.0)
    # Gains 0, 2 and 0 at places 1 to 3, against 2, 1 and 1.
    quality = measure(relevant, lambda _: [9, 1, 8])
    assert quality.ndcg == pytest.approx((2 / 1.5849625) / (2 + 1 / 1.5849625 + 1 / 2))
    assert quality.recall == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("name", "least_ndcg", "least_recall"), [("emanual", 0.72, 0.975), ("cacm", 0.475, 0.68), ("xquad-zh", 0.955, 0.99)]
)
def test_the_words_alone_rank_at_least_so_well(
    shared_data: Path, name: str, least_ndcg: float, least_recall: float
) -> None:
    collection = read_collection(shared_data / "retrieval" / name)
    index = LexicalIndex(collection.documents)
    quality = measure(collection.relevant, lambda number: rank_scores(index.score(collection.queries[number])))
    assert quality.ndcg >= least_ndcg
    assert quality.recall >= least_recall


def test_the_words_alone_rank_better_than_plain_fts5(shared_data: Path) -> None:
    collection = read_collection(shared_data / "retrieval" / "emanual")
    index = LexicalIndex(collection.documents)
    ours = measure(collection.relevant, lambda number: rank_scores(index.score(collection.queries[number])))
    assert ours.ndcg >= measure(collection.relevant, rank_by_fts5(collection)).ndcg + 0.1
