"""Checks whether a model's wording is supported by the evidence that it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from refdesk.core.machine_orders import is_order
from refdesk.core.search.analysis import analyse, get_stop_terms

if TYPE_CHECKING:
    from refdesk.language_models.hosted.answers import Reworded
    from refdesk.playbooks import SkillDraft, Step

MAX_DO, MAX_CHECK, MAX_SAY, MAX_OTHER = 300, 240, 400, 400
"""Most code points of a model's texts; a longer one rambles."""

LEAST_SHARED = 0.5
"""Share of the words of a text that its evidence must have."""

_TOOL = regex.compile(r"`([^`\n]{1,80})`")
_CALL = regex.compile(r"^(?:If [^:]{1,200}: )?call `[^`]+`(?: with (?P<slots>.+?))?\.?$", regex.IGNORECASE)
_PLACEHOLDER = regex.compile(r"\[[^\[\]\n]{1,40}\]")
_NUMBER = regex.compile(r"\d+")
_ADDRESS = regex.compile(r"\S*(?:://|www\.|@)\S*")
_CONDITION = regex.compile(r"\b(?:if|when|where|unless|once|in case|should|only)\b", regex.IGNORECASE)
_WRITING_WORDS = """
    ask tell say check confirm make sure customer agent call use give provide offer request verify explain let know have
    greet inform whether answer reply respond state mention note record
"""
_WRITING = frozenset(analyse(_WRITING_WORDS))
"""Words that any instruction is made of, which claim nothing."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A piece of a conversation: what the agent said or called, and what came next."""

    id: str
    said: str
    then: str


def find_fault(answers: Sequence[Reworded], steps: Sequence[Step], evidence: Mapping[str, Sequence[Evidence]]) -> str:
    """Return what is wrong with the steps as a whole, as a clause; empty if all are there, in order and supported."""
    known = [step.id for step in steps]
    given = [answer.id for answer in answers]
    invented = next((id for id in given if id not in known), None)
    if invented is not None:
        return f"it has a step “{invented}” that no conversation supports"
    if given != known:
        left_out = next((id for id in known if id not in given), None)
        return f"it leaves out step “{left_out}”" if left_out else "its steps are in another order, or twice there"
    for answer in answers:
        own = {piece.id for piece in evidence[answer.id]}
        wrong = next((cited for cited in answer.evidence if cited not in own), None)
        if wrong is not None:
            return f"step “{answer.id}” cites “{wrong}”, which is no evidence of it"
        if own and not answer.evidence:
            return f"step “{answer.id}” cites no evidence"
    return ""


def find_fault_of_step(answer: Reworded, step: Step, evidence: Sequence[Evidence]) -> str:
    """Return what is wrong with the wording of one step, as a clause; empty if its evidence supports it."""
    source = "\n".join([step.do, step.check, step.say, *(f"{piece.said}\n{piece.then}" for piece in evidence)])
    for text, most in ((answer.do, MAX_DO), (answer.check, MAX_CHECK), (answer.say, MAX_SAY)):
        if len(text) > most:
            return f"a text of more than {most} characters"
        if fault := _find_claim(text, source):
            return fault
    return _find_loss(answer, step)


def _find_loss(answer: Reworded, step: Step) -> str:
    """Return which of a step's tools, slots and condition its wording has lost, as a clause; empty if none."""
    worded = f"{answer.do}\n{answer.say}"
    call = _CALL.match(step.do)
    kept = _TOOL.findall(step.do) + ([slot.strip() for slot in (call["slots"] or "").split(",")] if call else [])
    lost = next((name for name in [*kept, *_PLACEHOLDER.findall(step.do)] if name and name not in worded), None)
    if lost is not None:
        return f"“{lost}” is missing"
    if step.do.startswith("If ") and not _CONDITION.search(answer.do):
        return "its condition is missing"
    return ""


def _find_claim(text: str, source: str) -> str:
    """Return what a text says that its source does not, as a clause; empty if it is supported."""
    if is_order(text) and not is_order(source):
        return "it gives orders to a machine"
    for pattern, what in ((_ADDRESS, "an address"), (_NUMBER, "a number"), (_PLACEHOLDER, "a slot"), (_TOOL, "a tool")):
        known = set(pattern.findall(source))
        new = next((found for found in pattern.findall(text) if found not in known), None)
        if new is not None:
            return f"“{new}” is {what} that its evidence does not have"
    terms = get_terms(text)
    if len(terms & get_terms(source)) < LEAST_SHARED * len(terms):
        return "most of its words are not in its evidence"
    return ""


def get_terms(text: str) -> set[str]:
    """Return the terms with which a text makes claims: without numbers, slots and words of any instruction."""
    bare = _NUMBER.sub(" ", _PLACEHOLDER.sub(" ", text))
    return set(analyse(bare)) - get_stop_terms() - _WRITING


def choose(said: str, induced: str, draft: SkillDraft) -> str:
    """Return a title, problem or goal in a model's words if the induced skill supports them, else as induced."""
    source = "\n".join([draft.title, draft.problem, draft.playbook.goal, *draft.openings, *draft.keywords])
    text = " ".join(said.split())
    return text if text and len(text) <= MAX_OTHER and not _find_claim(text, source) else induced
