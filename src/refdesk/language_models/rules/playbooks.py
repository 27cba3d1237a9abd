"""Extracts a playbook from what an agent did: one step per question, action and answer, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import regex

from refdesk.language_models.rules import sentences
from refdesk.language_models.rules.problems import ESCALATING
from refdesk.model import Playbook, Step

if TYPE_CHECKING:
    from refdesk.model import Turn

MAX_STEPS = 24
MAX_SAID = 400
MAX_DO = 120
MAX_EDGE_CASES = 6
MAX_PREREQUISITES = 8

_YOURS = regex.compile(
    r"""\b(?:your|ur)\s((?:[\p{L}'’-]+\s){0,3}?(?:[\p{L}'’-]+\s)?(?:name|number|id|address|e-?mail|pin|code|birth|birthday
    |date\ of\ birth|phone|username|account|card|password|order|reservation|answer|zip|model|version|serial|receipt
    |device))\b""",
    regex.IGNORECASE | regex.VERBOSE,
)
_REFUSAL = regex.compile(
    r"""\b(?:don't|do\ not|can't|cannot|can\ not|didn't|forgot|forget|lost|not\ sure|no\ idea|don't\ know|unable|won't
    |refuse)\b | わかりません|分かりません|ありません""",
    regex.IGNORECASE | regex.VERBOSE,
)
_REQUEST = regex.compile(
    r"[?？]|\b(?:please|could you|can you|may i|let me know|provide|tell me)\b|ください|でしょうか|ますか",
    regex.IGNORECASE,
)
_ACTION = regex.compile(
    r"""(?:(?:now|then|next|first|and|so|also)[,\s]+)*please\s(?!(?:tell|give|let|provide|send|share|confirm|wait|hold|note
    |allow|bear|be|don't|do\ not|feel|see)\b)(?=\p{Ll})""",
    regex.IGNORECASE | regex.VERBOSE,
)
"""What begins a sentence that asks a customer to do something other than to answer."""

DEFAULT_ESCALATION = "Where these steps do not resolve it, hand over to a person, with what was tried."


def write_playbook(title: str, conversation: Sequence[Turn]) -> Playbook:
    """Return the playbook of a conversation; one without an agent's words has no step."""
    return Playbook(
        goal=f"The customer's request is resolved: {title}",
        prerequisites=_get_prerequisites(conversation),
        steps=tuple(_merge(_get_steps(conversation)))[:MAX_STEPS],
        edge_cases=tuple(dict.fromkeys(_get_edge_cases(conversation)))[:MAX_EDGE_CASES],
        escalation=_get_escalation(conversation),
    )


def _get_steps(conversation: Sequence[Turn]) -> Iterator[Step]:
    for turn in conversation:
        said = list(sentences.split(turn.text))
        if turn.speaker == "customer" or not said:
            continue
        whole = sentences.shorten(" ".join(said), MAX_SAID)
        if turn.speaker == "system":
            yield Step(f"Use the tool or record: {whole}", "It shows what the next step needs.")
        elif _REQUEST.search(whole):
            yield _write_request(said, whole)
        else:
            first = sentences.shorten(said[0], MAX_DO)
            yield Step(f"Tell the customer: {first}", "The customer agrees or confirms.", whole)


def _write_request(said: Sequence[str], whole: str) -> Step:
    """Return the step of what an agent asks for: a thing of the customer's, an action, or an answer."""
    if wanted := _get_wanted(whole):
        return Step(f"Ask for {wanted}.", "The customer has answered.", whole)
    asked = next((sentence for sentence in said if _REQUEST.search(sentence)), said[0])
    if action := _ACTION.match(asked):
        done = sentences.shorten(asked[action.end() :], MAX_DO)
        return Step(f"Have the customer {done}", "The customer has done it, and says what happens.", whole)
    return Step(f"Ask: {sentences.shorten(asked, MAX_DO)}", "The customer has answered.", whole)


def _merge(steps: Iterator[Step]) -> Iterator[Step]:
    """Yield each step once: what an agent says twice in a conversation is one step of a playbook."""
    seen: set[str] = set()
    for step in steps:
        key = step.do.casefold()
        if key not in seen:
            seen.add(key)
            yield step


def _get_wanted(said: str) -> str:
    names = dict.fromkeys(f"the customer's {name.lower()}" for name in _YOURS.findall(said))
    return " and ".join(list(names)[:3])


def _get_prerequisites(conversation: Sequence[Turn]) -> tuple[str, ...]:
    asked = [name.lower() for turn in conversation if turn.speaker == "agent" for name in _YOURS.findall(turn.text)]
    return tuple(f"The customer's {name}" for name in dict.fromkeys(asked))[:MAX_PREREQUISITES]


def _get_edge_cases(conversation: Sequence[Turn]) -> Iterator[str]:
    """Yield where a customer could not give what was asked, and what the agent said then."""
    for turn, answer in pairwise(conversation):
        if turn.speaker != "customer" or answer.speaker != "agent":
            continue
        refused = next((s for s in sentences.split(turn.text) if _REFUSAL.search(s)), None)
        said = " ".join(sentences.split(answer.text))
        if refused and said:
            yield f"If the customer says “{sentences.shorten(refused, 120)}”: {sentences.shorten(said, 200)}"


def _get_escalation(conversation: Sequence[Turn]) -> str:
    for turn in conversation:
        if turn.speaker == "agent" and ESCALATING.search(turn.text):
            said = next((s for s in sentences.split(turn.text) if ESCALATING.search(s)), "")
            if said:
                return f"The agent handed over here: {said}"
    return DEFAULT_ESCALATION
