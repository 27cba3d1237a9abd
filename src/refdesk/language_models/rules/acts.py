"""Clusters the moves of many cases into acts: what agents do again and again, however each of them words it."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import log
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import regex

from refdesk.kit import sentences
from refdesk.language_models.rules.moves import Kind, get_terms
from refdesk.language_models.rules.orders import differ, leave_values, read_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from refdesk.language_models.rules.moves import Move
    from refdesk.language_models.rules.orders import Order
    from refdesk.model import Vector

SAME = 0.5
"""Mean similarity, half words and half meaning, above which two groups of utterances are one act."""

SAME_WORDS = 0.5
"""The same if there are no vectors."""

_Group: TypeAlias = "tuple[Kind, list[Move], tuple[str, str] | None]"

APART = -1.0
"""The similarity of two that must not come together, however alike they are."""

WHOLE: tuple[Kind, ...] = ("greet", "close")
"""Kinds whose moves are all one act."""

WORDED: tuple[Kind, ...] = ("say", "log", "repair")
"""Kinds whose acts differ by their words."""

UNLIKE = 0.8
"""Factor on the similarity of a question and a statement."""

MANY_VALUES = 3
"""With this many cases or more, a value that each case has of its own makes no difference."""

OFTEN = 0.25
"""Share of those cases that may have the same value."""

MAX_TEXTS = 700
"""Most different utterances that are compared with each other; rarer ones beyond that stand alone."""

MAX_CHOICES = 4
"""Most values of an argument that can be kinds of a call, such as Check and Book."""


MAX_CHOICE_WORDS = 3


@dataclass(frozen=True, slots=True)
class Act:
    """What is done in some of the cases.

    Attributes:
        id: From its first move, so that it stays the same while cases are added.
        moves: By case, then by place.
        choice: The argument, with its value, by which calls of one tool differ; `None` if they do not.
    """

    id: str
    kind: Kind
    moves: tuple[Move, ...]
    choice: tuple[str, str] | None = None

    @property
    def cases(self) -> tuple[int, ...]:
        """The numbers of the cases in which it is done, ascending."""
        return tuple(sorted({move.case for move in self.moves}))


def find_acts(cases: Sequence[Sequence[Move]], ids: Sequence[str], vectors: Mapping[str, Vector]) -> list[Act]:
    """Return the acts of all cases, those of the most cases first, ties by where they begin.

    Args:
        cases: The moves of each case.
        ids: Those of the cases.
        vectors: Those of what is said, by its text, of unit length; any may be missing.
    """
    moves = [move for case in cases for move in case]
    groups = list[_Group]()
    by_kind: dict[Kind, list[Move]] = defaultdict(list)
    for move in moves:
        by_kind[move.kind].append(move)
    groups.extend((kind, by_kind[kind], None) for kind in WHOLE if by_kind[kind])
    for kind in WORDED:
        groups.extend((kind, group, None) for group in _cluster(by_kind[kind], vectors))
    groups.extend(("call", group, choice) for group, choice in _group_calls(by_kind["call"]))
    acts = [Act(_make_id(ids, group), kind, tuple(group), choice) for kind, group, choice in groups]
    return sorted(acts, key=lambda act: (-len(act.cases), act.moves[0].case, act.moves[0].place))


def _make_id(ids: Sequence[str], group: Sequence[Move]) -> str:
    first = group[0]
    return hashlib.blake2b(f"{ids[first.case]}/{first.place}".encode(), digest_size=4).hexdigest()


def _cluster(moves: Sequence[Move], vectors: Mapping[str, Vector]) -> list[list[Move]]:
    """Return the moves in groups that mean the same, by average linkage."""
    by_key: dict[tuple[str, Order | None], list[Move]] = defaultdict(list)
    own = _find_own_values(moves)
    for move in moves:
        order = own[move.text][0] if move.text in own else read_order(move.text)
        by_key[" ".join(get_terms(move.text)), order].append(move)
    keys = sorted(by_key, key=lambda key: -len(by_key[key]))
    compared, alone = keys[:MAX_TEXTS], keys[MAX_TEXTS:]
    similar, same = _compare([by_key[key] for key in compared], [terms.split() for terms, _ in compared], vectors)
    asks = np.array([any(sentences.asks(move.text) for move in by_key[key]) for key in compared], dtype=bool)
    similar = np.where(asks[:, None] == asks[None, :], similar, similar * UNLIKE)
    similar[_find_different([order for _, order in compared])] = APART
    sizes = np.array([len(by_key[key]) for key in compared], dtype=np.float64)
    groups = [[compared[member] for member in group] for group in link(similar, sizes, same)]
    grouped = [[move for key in group for move in by_key[key]] for group in [*groups, *([key] for key in alone)]]
    return [
        [
            replace(move, text=own[move.text][1]) if move.text in own else move
            for move in sorted(group, key=lambda move: (move.case, move.place))
        ]
        for group in grouped
    ]


def _find_own_values(moves: Sequence[Move]) -> dict[str, tuple[Order, str]]:
    """Return the order and the text without values, by text, of what agents set to another value in nearly every case.

    One limit for one customer, another for the next: what the cases have in common is that it was set.
    """
    by_terms: dict[tuple[str, ...], dict[str, tuple[Order, set[int]]]] = defaultdict(dict)
    for move in moves:
        if (order := read_order(move.text)) is not None and order.done:
            by_terms[(*get_terms(move.text),)].setdefault(move.text, (order, set()))[1].add(move.case)
    own: dict[str, tuple[Order, str]] = {}
    for texts in by_terms.values():
        by_value: dict[frozenset[str], set[int]] = defaultdict(set)
        for order, cases in texts.values():
            by_value[order.done] |= cases
        often, count = max(map(len, by_value.values())), sum(map(len, by_value.values()))
        if count >= MANY_VALUES and often <= max(1, OFTEN * count):
            common = frozenset(value for done in by_value for value in done if all(value in each for each in by_value))
            own |= {text: leave_values(order, text, order.done - common) for text, (order, _) in texts.items()}
    return own


def _find_different(orders: Sequence[Order | None]) -> NDArray[np.bool_]:
    """Return which pairs of the orders cannot be one act."""
    every = {order: place for place, order in enumerate(dict.fromkeys(orders))}
    apart = np.zeros((len(every), len(every)), dtype=np.bool_)
    for (one, row), (other, column) in combinations(every.items(), 2):
        apart[row, column] = apart[column, row] = differ(one, other)
    numbers = np.array([every[order] for order in orders], dtype=np.intp)
    return apart[np.ix_(numbers, numbers)]


def _compare(
    groups: Sequence[Sequence[Move]], terms: Sequence[Sequence[str]], vectors: Mapping[str, Vector]
) -> tuple[NDArray[np.float64], float]:
    """Return how similar every two utterances are, in [0, 1], and the similarity from which two are the same."""
    by_words = compare_words(terms)
    found = [next((vectors[move.text] for move in group if move.text in vectors), None) for group in groups]
    if not found or any(vector is None for vector in found):
        return by_words, SAME_WORDS
    matrix = np.stack([vector for vector in found if vector is not None]).astype(np.float64)
    return (by_words + np.clip(matrix @ matrix.T, 0.0, 1.0)) / 2, SAME


def compare_words(texts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return the cosines of the texts as bags of terms, rare ones weighing more."""
    counts = Counter(term for text in texts for term in set(text))
    places = {term: place for place, term in enumerate(counts)}
    matrix = np.zeros((len(texts), len(places)))
    for row, text in enumerate(texts):
        for term in set(text):
            matrix[row, places[term]] = log(1.0 + len(texts) / counts[term])
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(norms, norms, 1.0)
    return matrix @ matrix.T


def link(similar: NDArray[np.float64], sizes: NDArray[np.float64], same: float) -> Iterable[list[int]]:
    """Return the groups of average linkage, as lists of numbers; each member weighs as often as it is said.

    Two that are `APART` never come into one group, and neither do groups that contain them.
    """
    groups = {number: [number] for number in range(len(sizes))}
    matrix, weights = similar.copy(), sizes.copy()
    np.fill_diagonal(matrix, APART)
    while len(groups) > 1:
        one, other = divmod(int(matrix.argmax()), len(weights))
        if matrix[one, other] < same:
            break
        total = weights[one] + weights[other]
        row = (weights[one] * matrix[one] + weights[other] * matrix[other]) / total
        row[[one, other]] = APART
        row[(matrix[one] < 0.0) | (matrix[other] < 0.0)] = APART
        matrix[one], matrix[:, one] = row, row
        matrix[other], matrix[:, other] = APART, APART
        weights[one] = total
        groups[one] += groups.pop(other)
    return list(groups.values())


def _group_calls(calls: Sequence[Move]) -> list[tuple[list[Move], tuple[str, str] | None]]:
    """Return the calls by tool, and by the argument that tells kinds of calls apart, such as checking and booking."""
    by_tool: dict[str, list[Move]] = defaultdict(list)
    for call in calls:
        by_tool[call.text].append(call)
    found: list[tuple[list[Move], tuple[str, str] | None]] = []
    for group in by_tool.values():
        name = _find_choice(group)
        if name is None:
            found.append((group, None))
            continue
        by_value: dict[str, list[Move]] = defaultdict(list)
        for call in group:
            by_value[call.arguments.get(name, "")].append(call)
        found += [(same, (name, value) if value else None) for value, same in by_value.items()]
    return found


def _find_choice(calls: Sequence[Move]) -> str | None:
    """Return the argument whose value changes from call to call within cases, among few values in all; else `None`."""
    names = Counter(name for call in calls for name in call.arguments)
    best, changed_most = None, 0
    for name, count in names.items():
        values = Counter(call.arguments.get(name, "") for call in calls)
        if not 2 <= len(values) <= MAX_CHOICES or count < len(calls) / 2 or min(values.values()) < 2:
            continue
        if not all(map(_is_choice, values)):
            continue
        by_case: dict[int, set[str]] = defaultdict(set)
        for call in calls:
            by_case[call.case].add(call.arguments.get(name, ""))
        changed = sum(len(each) > 1 for each in by_case.values())
        if changed * 4 >= len(by_case) and changed > changed_most:
            best, changed_most = name, changed
    return best


def _is_choice(value: str) -> bool:
    """Return whether a value can name a kind of call: a few words at most, and nothing that only one case has."""
    return len(value.split()) <= MAX_CHOICE_WORDS and regex.search(r"[\d\[]", value) is None
