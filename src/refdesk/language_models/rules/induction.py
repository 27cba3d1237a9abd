"""Induces one skill from all its cases: the acts that recur, in the order that most agree with, and their evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import combinations, islice
from math import ceil
from typing import TYPE_CHECKING

from refdesk.errors import InvalidInputError
from refdesk.kit import sentences
from refdesk.language_models.rules import (
    escalation,
    evidence,
    failures,
    imperatives,
    ordering,
    problems,
    shared_problems,
    slots,
)
from refdesk.language_models.rules.acts import Act, find_acts
from refdesk.language_models.rules.moves import get_terms, read_case
from refdesk.language_models.rules.orders import contradict, read_order
from refdesk.playbooks import Playbook, SkillDraft, Step

if TYPE_CHECKING:
    from refdesk.language_models.rules.moves import Move
    from refdesk.model import Vector
    from refdesk.playbooks import Case

FEW = 3
"""With fewer cases than this, whatever was done is a step."""

MANY = 8
SHARE = 0.12
"""Share of many cases in which something must have been done to be a step."""

MAX_STEPS = 14
MAX_PREREQUISITES = 6
MAX_STEPS_OF_FEW = 24
MAX_SELDOM = 40
FAILED = frozenset({"failed", "likely_failed"})
WORKED = frozenset({"resolved", "likely_resolved"})
ONE_OF_SEVERAL = "One of several ways"
"""How a step begins if other cases did something else instead."""

UNKNOWN = Step("Find out what resolves this: no agent's answer was recorded.")
"""The step of a playbook whose conversations have no agent in them."""

NOTHING_HELPED = Step("Find out what resolves this: what was tried did not help.")
"""The step of a playbook in whose conversations nothing helped."""

TRIED = "Tried, and did not help"
TAKEN_BACK = "Advised, and taken back"
OVERTAKEN = "Advised, but a customer found what helped"
MAX_EDGE_CASES = 3
MAX_TRIED = 6
MAX_SAY = 120
BRANCHING = 0.9
"""If an act was done in a smaller share of the cases than this, a condition for it is looked for."""

TOGETHER = 0.7

ALIKE = 0.5
"""Share of the terms of the longer of two orders, verbs left out, that both must have to be about one thing."""


def list_texts(cases: Sequence[Case]) -> list[str]:
    """Return the different utterances to embed, in order."""
    moves = [move for number, case in enumerate(cases) for move in read_case(number, case) if move.kind == "say"]
    return list(dict.fromkeys(move.text for move in moves))


def induce(cases: Sequence[Case], vectors: Mapping[str, Vector]) -> SkillDraft:
    """Return the skill that the cases teach. Those that failed support no step, and are shown as edge cases.

    Args:
        cases: Oldest first; at least one.
        vectors: Those of the utterances that `list_texts` returns; may be empty.

    Raises:
        InvalidInputError: In none of them does a customer say anything that could be searched for.
    """
    problem = shared_problems.share_problem([case.turns for case in cases])
    if problem is None:
        raise InvalidInputError(
            "The conversation teaches nothing: no customer says what is wanted. Send a whole transcript, with lines "
            "such as 'Customer: …' and 'Agent: …'."
        )
    return SkillDraft(
        title=problem.title,
        problem=problem.text,
        playbook=induce_playbook(cases, vectors, f"The customer's request is resolved: {problem.title}"),
        conditions=problem.conditions,
        keywords=shared_problems.share_keywords([case.turns for case in cases]),
        issue_type=problems.guess_issue_type(problem.text, [turn for case in cases for turn in case.turns]),
        openings=shared_problems.list_openings([case.turns for case in cases]),
    )


def induce_playbook(cases: Sequence[Case], vectors: Mapping[str, Vector], goal: str) -> Playbook:
    """Return the playbook that the cases support. See `induce`."""
    good = [case for case in cases if case.outcome not in FAILED]
    ids = [case.id for case in good]
    apart = failures.set_apart(good)
    tried = apart.failed
    if not good:
        tried = [failures.list_tried_before(case, read_case(number, case)) for number, case in enumerate(cases)]
    acts = _join_same_orders(_join_spoken_together(find_acts(apart.kept, ids, vectors)))
    often = _choose(acts, len(good))
    ways = _find_ways(acts, often, [case.outcome in WORKED for case in good])
    missing = _find_missing(often, acts, len(good))
    chosen = ordering.order([act for act in (*often, *missing) if act not in ways])
    chosen = [act for act in chosen if act.kind != "close"] + ways + [act for act in chosen if act.kind == "close"]
    seldom = [act for act in acts if act not in chosen and act.kind in {"say", "log", "call"}]
    steps = tuple(
        _write_step(act, chosen, ids, slots.CONDITION if act in missing else "", act in ways) for act in chosen
    )
    return Playbook(
        goal=goal,
        prerequisites=_list_prerequisites(chosen),
        steps=steps or (NOTHING_HELPED if any(tried) else UNKNOWN,),
        edge_cases=(
            *_write_edge_cases(chosen),
            *_write_disagreements([*chosen, *seldom], len(good)),
            *_write_repairs(acts, len(good)),
            *_write_tried(TRIED, tried, [case.id for case in good or cases]),
            *_write_tried(TAKEN_BACK, apart.taken_back, ids),
            *_write_tried(OVERTAKEN, apart.overtaken, ids),
            *_write_failures(cases),
        ),
        escalation=escalation.describe([case.turns for case in good or cases]),
        notes=tuple(dict.fromkeys(note for case in cases if (note := " ".join(case.note.split())))),
        seldom=tuple(_write_step(act, [act], ids, "") for act in seldom[:MAX_SELDOM]),
        cases=tuple(case.id for case in cases),
    )


def _choose(acts: Sequence[Act], count: int) -> list[Act]:
    """Return the acts that are steps because enough cases support them."""
    least = 1 if count < FEW else 2 if count < MANY else max(2, ceil(SHARE * count))
    chosen = [act for act in acts if len(act.cases) >= least]
    kinds = {"say", "call", "log"} if count < FEW else {"say", "call", "log", "greet", "close"}
    most = MAX_STEPS if count >= FEW else MAX_STEPS_OF_FEW
    return [act for act in chosen if act.kind in kinds][:most]


def _find_ways(acts: Sequence[Act], chosen: Sequence[Act], worked: Sequence[bool]) -> list[Act]:
    """Return the different answers of several cases if none of them recurs enough to be a step, best supported first.

    Ties are broken by what is known to have worked, then by the order of the cases and of what was done in them. With
    few cases there are none, since whatever was done is a step, which refining leaves as it is written.
    """
    if len(worked) < FEW:
        return []
    answers = [act for act in acts if act.kind in {"say", "call", "log"}]
    answers = [act for act in answers if act.kind != "say" or _word(act)[0] not in {"ask", "whether"}] or answers
    if (
        any(len(act.cases) > 1 for act in answers if act in chosen)
        or len({id for act in answers for id in act.cases}) < 2
    ):
        return []
    answers.sort(
        key=lambda act: (
            -len(act.cases),
            not any(worked[case] for case in act.cases),
            act.moves[0].case,
            act.moves[0].place,
        )
    )
    return answers[: MAX_STEPS - len([act for act in chosen if act not in answers])]


def _find_missing(chosen: Sequence[Act], acts: Sequence[Act], count: int) -> list[Act]:
    """Return what is asked too seldom to be a step for that reason, but whose answer a call needs."""
    others = [act for act in acts if act not in chosen and act.kind == "say" and _word(act)[0] in {"ask", "whether"}]
    return slots.find_missing(chosen, others, 2 if count >= MANY else 1)[: MAX_STEPS - len(chosen)]


def _join_spoken_together(acts: Sequence[Act]) -> list[Act]:
    """Return the acts; two that are nearly always said in one breath are joined into one."""
    joined = {act.id: act for act in acts}
    alone = set(joined)
    for act in acts:
        if act.kind != "say" or len(act.cases) < FEW - 1 or act.id not in alone:
            continue
        after = {(move.case, move.turn, move.place + 1) for move in act.moves}
        for other in acts:
            if other.id in alone and other is not act and _is_said_after(act, other, after):
                joined[act.id] = _join(act, other)
                del joined[other.id]
                alone -= {act.id, other.id}
                break
    return list(joined.values())


def _is_said_after(act: Act, other: Act, after: Set[tuple[int, int, int]]) -> bool:
    """Return whether `other` is mostly said right after `act`: at the places given."""
    most = max(len(act.moves), len(other.moves))
    if other.kind != "say" or len(other.moves) < TOGETHER * most:
        return False
    return sum((move.case, move.turn, move.place) in after for move in other.moves) >= TOGETHER * most


def _join_same_orders(acts: Sequence[Act]) -> list[Act]:
    """Return the acts, most cases first; those that amount to the same order in other words are joined into one."""
    by_order: dict[tuple[str, str], list[Act]] = {}
    for act in acts:
        order = _word(act)[1] if act.kind == "say" else act.id
        by_order.setdefault((act.kind, order), []).append(act)
    joined = [
        replace(same[0], moves=tuple(sorted((m for act in same for m in act.moves), key=lambda m: (m.case, m.place))))
        for same in by_order.values()
    ]
    return sorted(joined, key=lambda act: -len(act.cases))


def _join(act: Act, other: Act) -> Act:
    texts = {(move.case, move.turn): move for move in other.moves}
    moves = tuple(
        replace(move, text=f"{move.text} {second.text}", after=second.after)
        if (second := texts.get((move.case, move.turn))) is not None
        else move
        for move in act.moves
    )
    return replace(act, moves=moves)


def _write_step(act: Act, acts: Sequence[Act], ids: Sequence[str], condition: str, is_way: bool = False) -> Step:
    manner, do = _word(act)
    do = f"{ONE_OF_SEVERAL}: {_lower(do)}" if is_way else do
    if not condition and not is_way and len(act.cases) < BRANCHING * len(ids) and act.kind == "say":
        condition = evidence.find_condition(act, [other for other in acts if other.kind == "say"])
    do = f"If {condition}: {_lower(do)}" if condition else do
    said = "" if act.kind in {"call", "log"} or _is_found(act) else sentences.shorten(get_wording(act), MAX_SAY)
    place = acts.index(act)
    return Step(
        do=f"{do}.",
        check=evidence.write_check(act, manner),
        say=said,
        id=act.id,
        cases=tuple(ids[number] for number in act.cases),
        led_on=evidence.count_led_on(act, acts[place + 1 :]),
    )


def _word(act: Act) -> tuple[str, str]:
    if act.kind == "call":
        return "call", _word_call(act)
    if act.kind == "log":
        return "log", f"Use the tool or record: {get_wording(act).rstrip(' .')}"
    if act.kind == "greet":
        return "greet", "Greet the customer and ask how you can help"
    if act.kind == "close":
        return "close", "Ask whether there is anything else, and say goodbye"
    said = get_wording(act)
    if _is_found(act):
        return "have", imperatives.word_found(said)
    manner, do = imperatives.word(said)
    if do.startswith("Ask whether"):
        return "whether", do
    if manner == "act" and sum(bool(move.after_call) or _follows_call(move) for move in act.moves) * 2 >= len(
        act.moves
    ):
        # The tool did it: all that is left to do is to say so.
        return "tell", imperatives.tell(said)
    return manner, do


def _is_found(act: Act) -> bool:
    """Return whether only customers came up with what is done, without being told."""
    return all(move.is_found for move in act.moves)


def _follows_call(move: Move) -> bool:
    return move.before.startswith("{")


def _word_call(act: Act) -> str:
    tool = act.moves[0].text
    names = Counter(name for move in act.moves for name in move.arguments)
    often = [name for name, count in names.most_common() if count * 4 >= len(act.moves)]
    slots = [f"{act.choice[0]} “{act.choice[1]}”" if act.choice and name == act.choice[0] else name for name in often]
    return f"Call `{tool}`" + (f" with {', '.join(slots)}" if slots else "")


def get_wording(act: Act) -> str:
    """Return how the act is most often said: a whole wording, or the sentence that most share, after a gap mark."""
    said = [move for move in act.moves if not move.is_found] or act.moves
    preferred = [move for move in said if act.kind != "close" or "anything else" in move.text.casefold()]
    texts = [move.text for move in preferred or said]
    counts = Counter(texts)
    most = max(counts.values())
    whole = min((text for text, count in counts.items() if count == most), key=lambda text: (len(text), text))
    parts = Counter(part for text in texts for part in dict.fromkeys(sentences.split_all(text)))
    part, often = parts.most_common(1)[0]
    if often >= FEW and often > 2 * most and whole != part:
        return part if whole.startswith(part) else f"[…] {part}"
    return whole


def _list_prerequisites(acts: Sequence[Act]) -> tuple[str, ...]:
    wanted = [imperatives.get_wanted(get_wording(act)) for act in acts if act.kind == "say"]
    return tuple(f"The {name}" for name in dict.fromkeys(wanted) if name)[:MAX_PREREQUISITES]


def _write_edge_cases(acts: Sequence[Act]) -> tuple[str, ...]:
    refused = evidence.find_refusals(acts, lambda act: _lower(_word(act)[1]))
    return tuple(refused[:MAX_EDGE_CASES])


def _write_disagreements(acts: Sequence[Act], count: int) -> list[str]:
    """Return which acts of different cases are each other's opposite, or set one thing to different values."""
    orders = [(act, order) for act in acts if act.kind == "say" and (order := read_order(get_wording(act))) is not None]
    disagreeing = (
        (one, other)
        for (one, order), (other, counter) in combinations(orders, 2)
        if contradict(order, counter) and not set(one.cases) & set(other.cases) and _is_about_one_thing(one, other)
    )
    return [
        "Cases disagree: "
        + ", or ".join(f"{_lower(_word(act)[1])} ({len(act.cases)} of {count})" for act in pair)
        + "."
        for pair in islice(disagreeing, MAX_EDGE_CASES)
    ]


def _is_about_one_thing(act: Act, other: Act) -> bool:
    terms, others = (_get_objects(get_wording(each)) for each in (act, other))
    common = terms & others
    return terms == others or (bool(common) and len(common) >= ALIKE * max(len(terms), len(others)))


def _get_objects(said: str) -> set[str]:
    """Return the terms of an order without its verbs and the words that have an opposite."""
    order = read_order(said)
    done = {*order.does, *order.forbids, *order.contrasts} if order else set[str]()
    return set(get_terms(said)) - set(get_terms(" ".join(done).replace("-", " ")))


def _write_repairs(acts: Sequence[Act], count: int) -> tuple[str, ...]:
    """Return what is said to a customer who was not understood, if that happened in several cases."""
    often = [act for act in acts if act.kind == "repair" and len(act.cases) >= max(2, SHARE * count)]
    return tuple(f"If the request is unclear or about something else: “{get_wording(act)}”" for act in often[:1])


def _write_tried(lead: str, tried: Sequence[Sequence[Move]], ids: Sequence[str]) -> list[str]:
    """Return what did not become a step, each led by the reason for that, most cases first."""
    acts = _join_same_orders(find_acts(tried, ids, {}))
    return [f"{lead} ({len(act.cases)} of {len(ids)}): {_lower(_word(act)[1])}." for act in acts[:MAX_TRIED]]


def _write_failures(cases: Sequence[Case]) -> tuple[str, ...]:
    """Return what was done last in the cases that failed."""
    failed = [case for case in cases if case.outcome in FAILED]
    if not failed or len(failed) == len(cases):
        return ()
    last = [moves[-1].text for number, case in enumerate(failed) if (moves := read_case(number, case))]
    said = f", last after “{sentences.shorten(last[-1], MAX_SAY)}”" if last else ""
    return (f"It failed in {len(failed)} of {len(cases)} cases{said}.",)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
