from __future__ import annotations

import pytest

from benchmarks.azure_questions import QUESTIONS, Wanted, run


def test_a_question_for_many_wants_all_that_is_shown() -> None:
    assert Wanted("q", "1 2").is_answered(["9", "8", "7", "1"]) is False
    assert Wanted("q", "1 2").is_answered(["9", "8", "2"]) is True
    assert Wanted("q", "1 2", many=True).is_answered(["1", "9"]) is False
    assert Wanted("q", "1 2", many=True).is_answered([]) is False


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
async def test_nine_in_ten_questions_of_a_cloud_engineer_are_answered_among_the_first_three() -> None:
    assert await run(show=False) >= 0.9 * len(QUESTIONS)
