"""What was tried in a case and did not help, by what the customer answered to it or said at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from refdesk.kit import verdicts
from refdesk.language_models.rules.orders import read_order

if TYPE_CHECKING:
    from refdesk.language_models.rules.moves import Move
    from refdesk.playbooks import Case


def find_failed(case: Case, moves: Sequence[Move]) -> frozenset[int]:
    """Return the places of what was ordered or done and did not help, as the customer's next answer says.

    A question between the two is passed over: "Did that help?" is what the answer answers, and not what failed.
    """
    failed = set[int]()
    for number, turn in enumerate(case.turns):
        if turn.speaker == "customer" and verdicts.judge_answer(turn.text) == "failed":
            failed.update(_find_last(case, moves, number))
    return frozenset(failed)


def _find_last(case: Case, moves: Sequence[Move], end: int) -> list[int]:
    for number in range(end - 1, -1, -1):
        turn = case.turns[number]
        if turn.speaker == "customer" and verdicts.judge_answer(turn.text):
            return []
        said = [move for move in moves if move.turn == number and move.kind == "say"]
        if tried := list_tried(said):
            return [move.place for move in tried]
        if any("?" not in move.text for move in said):
            return []
    return []


def list_tried_before(case: Case, moves: Sequence[Move]) -> list[Move]:
    """Return what was tried in a case that failed: nobody tried what came after the last "It did not help"."""
    failed = [
        number
        for number, turn in enumerate(case.turns)
        if turn.speaker == "customer" and verdicts.judge_answer(turn.text) == "failed"
    ]
    return [move for move in list_tried(moves) if not failed or move.turn < failed[-1]]


def list_tried(moves: Iterable[Move]) -> list[Move]:
    """Return the moves that order something or say that it was done."""
    return [move for move in moves if move.kind == "say" and read_order(move.text) is not None]
