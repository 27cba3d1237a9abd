"""The figures of the gap list do not get worse unnoticed: floors a little below what they are, on real questions."""

from __future__ import annotations

from pathlib import Path

from benchmarks.gaps.measuring import compare_groups, make_world, measure, read_wordings


def test_our_wordings_share_no_question() -> None:
    parts = [{each for group in read_wordings(f"wordings_{part}.txt") for each in group} for part in ("dev", "test")]
    assert not parts[0] & parts[1]
    assert len(read_wordings("wordings_test.txt")) >= 30


def test_groups_are_compared() -> None:
    groups = [["a", "b"], ["c", "d"]]
    assert compare_groups([{"a", "b"}, {"c", "d"}, {"x"}], groups) == (1.0, 1.0, 1.0)
    assert compare_groups([{"a", "b", "c"}, {"d"}], groups) == (0.0, 1 / 3, 0.5)


async def test_questions_without_an_answer_are_told_from_others(shared_data: Path, tmp_path: Path) -> None:
    found = await measure(make_world(shared_data / "retrieval"), read_wordings("wordings_test.txt"), tmp_path)
    assert found.listed >= 88
    assert found.wrongly <= 12
    assert found.grouped >= 0.75
    assert found.precision >= 0.9
