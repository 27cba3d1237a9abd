"""The benchmarks of search run, on few documents, and what they hold that is no time holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import finding, first_answer


def test_both_sides_answer_and_ours_as_exactly_as_promised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    medians = finding.run(6000, tmp_path, questions=10)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["words"] * 3 + ["meaning"] * 3 + ["both"] * 3
    assert all(float(line.split()[-1]) >= 0.99 for line in lines[2:])
    assert len(medians) == 9


def test_a_further_process_takes_little_memory_to_itself() -> None:
    figures = first_answer.measure(2000, rounds=1)
    assert figures["private_mb"] <= first_answer.MOST_PRIVATE_MB
    assert 0 < figures["added_private_mb"] < figures["private_mb"]
