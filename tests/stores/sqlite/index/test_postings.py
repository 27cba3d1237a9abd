from __future__ import annotations

from dataclasses import fields
from random import Random

import numpy as np

from refdesk.stores.sqlite.index.postings import (
    GAPS,
    Segment,
    TokenStream,
    append_segment,
    build_segment,
    merge_segments,
    restore_tokens,
)


def make_stream(
    documents: list[tuple[list[int], list[int]]], first_row: int = 0, first_position: int = 0
) -> TokenStream:
    tokens = [token for title, body in documents for token in (*title, *body)]
    return TokenStream(
        first_row,
        first_position,
        np.array(tokens, np.uint64),
        np.array([len(title) for title, _ in documents], np.int64),
        np.array([len(title) + len(body) for title, body in documents], np.int64),
    )


def describe(segment: Segment) -> dict[str, object]:
    made = [each.name for each in fields(segment) if each.name not in ("bounds", "peaks", "mean_length", "frequent")]
    return {name: np.asarray(getattr(segment, name)).tolist() for name in made}


def make_documents(seed: int, count: int, terms: list[int]) -> list[tuple[list[int], list[int]]]:
    random = Random(seed)
    return [
        (random.choices(terms, k=random.randrange(3)), random.choices(terms, k=random.randrange(6)))
        for _ in range(count)
    ]


def test_a_segment_lists_rows_frequencies_and_positions_of_each_term() -> None:
    segment = build_segment(make_stream([([7], [5, 7]), ([], []), ([5], [5, 5])], first_row=10, first_position=100))
    assert describe(segment) == {
        "base": 100,
        "terms": [5, 7],
        "row_offsets": [0, 2, 3],
        "rows": [10, 12, 10],
        "frequencies": [1.0, 4.0, 3.0],
        "position_offsets": [0, 4, 6],
        "positions": [2, 7, 9, 10, 0, 3],
        "size": 3,
    }


def test_merged_segments_are_what_one_of_all_documents_would_be() -> None:
    for seed in range(20):
        documents = make_documents(seed, 30, list(range(1, 15)))
        first, second = make_stream(documents[:20]), make_stream(documents[20:], 20)
        moved = make_stream(documents[20:], 20, first.size)
        assert second.size == moved.size
        merged = merge_segments(build_segment(first), build_segment(moved))
        assert describe(merged) == describe(build_segment(make_stream(documents)))


def test_documents_that_come_one_by_one_make_few_segments() -> None:
    segments: tuple[Segment, ...] = ()
    position = 0
    for row in range(1000):
        stream = make_stream([([1], [2, 3])], row, position)
        position += stream.size
        segments = append_segment(segments, build_segment(stream))
        assert len(segments) <= 4
        assert sum(segment.size for segment in segments) == row + 1


def test_terms_whose_numbers_begin_alike_are_told_apart() -> None:
    terms = [2**63 + 1, 2**63 + 2, 2**63 + 3, 2**63]
    documents = make_documents(1, 50, terms)
    segment = build_segment(make_stream(documents))
    assert segment.terms.tolist() == sorted(terms)
    for term in terms:
        holders = [row for row, (title, body) in enumerate(documents) if term in (*title, *body)]
        place = segment.locate(np.array([term], np.uint64))[0]
        assert segment.rows[segment.get_rows(place)].tolist() == holders


def test_tokens_can_be_restored_from_segments() -> None:
    documents = make_documents(3, 12, [1, 2, 3])
    first = make_stream(documents[:5])
    second = make_stream(documents[5:], 5, first.size)
    tokens = restore_tokens([build_segment(first), build_segment(second)], first.size + second.size)
    expected = [token for title, body in documents for token in (*title, 0, *body, 0)]
    assert tokens.tolist() == expected
    assert len(expected) == sum(len(title) + len(body) + GAPS for title, body in documents)
