"""What was tried in a case and did not help, what customers did instead, and what agents took back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from refdesk.kit import sentences, verdicts
from refdesk.language_models.rules.moves import read_case
from refdesk.language_models.rules.orders import Order, read_order

if TYPE_CHECKING:
    from refdesk.language_models.rules.moves import Move
    from refdesk.playbooks import Case

_CLAUSES = regex.compile(r"[,;，；]\s*|\s[–—-]\s")
_NOTHING = Order(frozenset(), frozenset(), frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class Apart:
    """The moves of each case: those that can be steps, and those that cannot, by the reason."""

    kept: list[list[Move]]
    failed: list[list[Move]]
    taken_back: list[list[Move]]
    overtaken: list[list[Move]]


def set_apart(cases: Sequence[Case]) -> Apart:
    """Return the moves of the cases, the kinds that are no steps set apart; a warning is not shown as taken back."""
    apart = Apart([], [], [], [])
    for number, case in enumerate(cases):
        moves = read_case(number, case)
        failed, taken_back, overtaken = (find(case, moves) for find in (find_failed, find_taken_back, find_overtaken))
        left = failed | taken_back | overtaken
        apart.kept.append([move for move in moves if move.place not in left])
        apart.failed.append([move for move in moves if move.place in failed])
        apart.taken_back.append([move for move in moves if move.place in taken_back - failed and not forbids(move)])
        apart.overtaken.append([move for move in moves if move.place in overtaken - failed - taken_back])
    return apart


def find_failed(case: Case, moves: Sequence[Move]) -> frozenset[int]:
    """Return the places of what was ordered or done and did not help, as the customer's next answer says.

    A question between the two is skipped: "Did that help?" is what the customer answers, but it is not what failed.
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
        if any(not sentences.asks(move.text) for move in said):
            return []
    return []


def find_overtaken(case: Case, moves: Sequence[Move]) -> frozenset[int]:
    """Return the places of what was ordered before a customer found what helped, except for what had worked."""
    overtaken = set[int]()
    for found in (move for move in moves if move.is_found):
        worked = [number for number in range(found.turn) if _says(case, number, "worked")]
        earlier = (move for move in moves if (worked[-1] if worked else -1) < move.turn < found.turn)
        overtaken.update(move.place for move in list_tried(earlier) if not move.is_found)
    return frozenset(overtaken)


def find_taken_back(case: Case, moves: Sequence[Move]) -> frozenset[int]:
    """Return the places of what an agent said and then took back, and of the warnings against it in the same turn."""
    taken = set[int]()
    for unsaid in (move for move in moves if move.kind == "unsay"):
        warnings = [move for move in moves if move.turn == unsaid.turn and move.place > unsaid.place and forbids(move)]
        names = {verb for text in (unsaid.text, *(move.text for move in warnings)) for verb in _list_forbidden(text)}
        taken.update(move.place for move in _find_unsaid(case, moves, unsaid, names))
        taken.update(move.place for move in warnings)
    return frozenset(taken)


def _find_unsaid(case: Case, moves: Sequence[Move], unsaid: Move, verbs: Set[str]) -> list[Move]:
    """Return what is taken back: what ordered something that is forbidden now, else the last orders or words."""
    earlier = [move for move in moves if move.place < unsaid.place and move.kind == "say" and not move.is_found]
    named = [move for move in earlier if (order := read_order(move.text)) is not None and order.does & verbs]
    for turn in sorted({move.turn for move in named or earlier}, reverse=True):
        if any(_says(case, number, "worked") for number in range(turn, unsaid.turn)):
            return []
        said = [move for move in named or earlier if move.turn == turn]
        told = [move for move in said if not sentences.asks(move.text)]
        if found := list_tried(said) or told:
            return found
    return []


def _says(case: Case, number: int, verdict: str) -> bool:
    turn = case.turns[number]
    return turn.speaker == "customer" and verdicts.judge_answer(turn.text) == verdict


def forbids(move: Move) -> bool:
    """Return whether a move only says what not to do."""
    return move.kind == "say" and bool(_list_forbidden(move.text)) and not (read_order(move.text) or _NOTHING).does


def _list_forbidden(text: str) -> frozenset[str]:
    """Return the verbs of what the sentences of a text, or their clauses, say not to do."""
    clauses = [clause for part in sentences.split_all(text) for clause in (part, *_CLAUSES.split(part))]
    orders = (order for clause in clauses if (order := read_order(clause)) is not None)
    return frozenset(verb for order in orders for verb in order.forbids)


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
