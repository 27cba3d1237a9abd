from __future__ import annotations

import pytest

from benchmarks.everything import MERGES, make_finding, measure, merge_as_refdesk, merge_by_rank


def test_quality_is_that_of_the_definition() -> None:
    assert measure(["a/1", "a/2"], {"a/1": 2, "a/2": 1}) == 1.0
    assert measure(["b/1", "b/2"], {"a/1": 1}) == 0.0
    assert measure(["b/1", "a/1"], {"a/1": 1}) == pytest.approx(1 / 1.5849625)


def test_the_peer_goes_by_ranks_alone_and_refdesk_by_strength_too() -> None:
    lists = {
        "0": [make_finding("weak/1", 0.1), make_finding("weak/2", 0.1)],
        "1": [make_finding("sure/1", 0.9), make_finding("sure/2", 0.8)],
    }
    assert merge_by_rank(lists) == ["weak/1", "sure/1", "weak/2", "sure/2"]
    assert merge_as_refdesk(lists) == ["sure/1", "sure/2", "weak/1", "weak/2"]
    assert all(sorted(merge(lists)) == ["sure/1", "sure/2", "weak/1", "weak/2"] for merge in MERGES.values())
