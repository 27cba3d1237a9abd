"""Whether something helped, as customers say it."""

from __future__ import annotations

import pytest

from refdesk.kit import verdicts


@pytest.mark.parametrize(
    "said",
    [
        "It did not help.",
        "Still crashes. This did not help at all.",
        "No, that did not help at all, it is still upside down",
        "Still invisible.",
        "It worked for a minute, but now it is not working",
        "Sorry, that didn't fix it",
        "I did, and it still does not work",
        "Same error.",
        "No luck.",
        "I don't think that helped.",
        "Tried it. Didn't work.",
    ],
)
def test_what_did_not_help(said: str) -> None:
    assert verdicts.judge_answer(said) == verdicts.judge_end(said) == "failed"


@pytest.mark.parametrize(
    "said", ["Yes! That fixed it.", "Works now, thanks!", "solved", "That did not help, but now it works."]
)
def test_what_worked(said: str) -> None:
    assert verdicts.judge_answer(said) == verdicts.judge_end(said) == "worked"


@pytest.mark.parametrize(
    "said",
    [
        "That day does not work for me.",
        "Done.",
        "It is still waiting for approval, thanks",
        "I still have a question.",
        "Is it fixed?",
        "I'm still here",
    ],
)
def test_what_is_no_verdict(said: str) -> None:
    assert verdicts.judge_answer(said) == verdicts.judge_end(said) == ""


def test_what_is_wrong_is_no_answer_to_an_advice() -> None:
    assert verdicts.judge_answer("The printer does not work since Monday.") == ""
