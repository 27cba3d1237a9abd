"""The gap list keeps what it promises, on real questions: 90 of 100 without an answer, at most 5 of 100 with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gaps.measuring import compare_groups, make_world, measure, read_wordings


def test_our_wordings_share_no_question() -> None:
    parts = [{each for group in read_wordings(f"wordings_{part}.txt") for each in group} for part in ("dev", "test")]
    assert not parts[0] & parts[1]
    assert len(read_wordings("wordings_test.txt")) >= 30


def test_groups_are_compared() -> None:
    groups = [["a", "b"], ["c", "d"]]
    assert compare_groups([{"a", "b"}, {"c", "d"}, {"x"}], groups) == (1.0, 1.0, 1.0)
    assert compare_groups([{"a", "b", "c"}, {"d"}], groups) == (0.0, 1 / 3, 0.5)


@pytest.mark.timeout(900)  # two minutes of one processor, which others may be using, too
async def test_questions_without_an_answer_are_told_from_others(shared_data: Path, tmp_path: Path) -> None:
    found = await measure(make_world(shared_data / "retrieval"), read_wordings("wordings_test.txt"), tmp_path)
    assert found.listed >= 90
    assert found.wrongly <= 5
    assert found.grouped >= 0.75
    assert found.precision >= 0.9
