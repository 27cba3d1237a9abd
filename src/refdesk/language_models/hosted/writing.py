"""A hosted model as the writer of what was induced: it may reword the steps, but not add, drop or reorder any.

It is shown the induced steps with pieces of the masked conversations that support them, each with an id, and cites for
each step the pieces that support its wording. Its answer is checked; what no evidence supports is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk.errors import LanguageModelError
from refdesk.language_models.hosted import checking, prompts
from refdesk.language_models.hosted.answers import UnusableAnswerError, Writing, get_schema, parse
from refdesk.language_models.hosted.checking import Evidence
from refdesk.language_models.hosted.prompting import MAX_ATTEMPTS, Complete, Message

if TYPE_CHECKING:
    from refdesk.language_models.hosted.answers import Reworded
    from refdesk.playbooks import Case, SkillDraft, Step, Turn

MAX_PIECES = 3
"""Most pieces of conversations that are shown for a step."""

MAX_SAID, MAX_ANSWERED = 240, 120
"""Most code points of what the agent said or called, and of what came next."""


async def write(complete: Complete, draft: SkillDraft, cases: Sequence[Case]) -> SkillDraft:
    """Return the draft in the model's words; where these are not supported, it keeps its own, and the remarks say so.

    Raises:
        LanguageModelError: The service failed or refused, or answered twice in a form that cannot be used.
    """
    steps = [step for step in draft.playbook.steps if step.id]
    if not steps:
        return draft
    evidence = collect(steps, cases)
    messages = [Message("asking", prompts.write_evidence(draft, steps, evidence))]
    answer: Writing | None = None
    problem = ""
    for _ in range(MAX_ATTEMPTS):
        text = await complete(prompts.WRITING, messages, get_schema(Writing))
        try:
            answer = parse(text, Writing)
            problem = checking.find_fault(answer.steps, steps, evidence) or _find_any(answer.steps, steps, evidence)
        except UnusableAnswerError as error:
            answer, problem = None, str(error)
        if not problem:
            break
        messages += [Message("answering", text), Message("asking", prompts.write_repair(problem))]
    if answer is None:
        raise LanguageModelError(
            f"The language model answered twice in a form that cannot be used ({problem}). "
            "Try again, or choose another model."
        )
    return _apply(draft, answer, evidence)


def collect(steps: Sequence[Step], cases: Sequence[Case]) -> dict[str, tuple[Evidence, ...]]:
    """Return what supports each step, by its id: what was said and what came next in up to `MAX_PIECES` conversations.

    The ids of the pieces are E1, E2 and so on.
    """
    by_id = {case.id: case for case in cases}
    found: dict[str, tuple[Evidence, ...]] = {}
    count = 0
    for step in steps:
        texts: dict[str, str] = {}
        for case in (by_id[id] for id in step.cases if id in by_id):
            said, then = _find_piece(step, case.turns)
            if said and len(texts) < MAX_PIECES:
                texts.setdefault(said, then)
        pieces = [Evidence(f"E{count + number}", *pair) for number, pair in enumerate(texts.items(), start=1)]
        found[step.id], count = tuple(pieces), count + len(pieces)
    return found


def _find_piece(step: Step, turns: Sequence[Turn]) -> tuple[str, str]:
    """Return what the agent of a conversation said or called that is most like the step, and what came next."""
    wanted = checking.get_terms(step.say or step.do)
    best, most = -1, 0.0
    for at, turn in enumerate(turns):
        if turn.call and f"`{turn.call}`" in step.do:
            best = at
            break
        terms = checking.get_terms(turn.text) if turn.speaker == "agent" else set[str]()
        like = len(wanted & terms) / (len(wanted | terms) or 1)
        if like > most:
            best, most = at, like
    if best < 0:
        return "", ""
    turn, after = turns[best], turns[best + 1 : best + 2]
    said = f"{turn.call} {turn.text}" if turn.call else turn.text
    return " ".join(said.split())[:MAX_SAID], " ".join(after[0].text.split())[:MAX_ANSWERED] if after else ""


def _find_any(answers: Sequence[Reworded], steps: Sequence[Step], evidence: Mapping[str, Sequence[Evidence]]) -> str:
    """Return what is wrong with the first step whose wording has a fault; empty if none has."""
    pairs = zip(answers, steps, strict=True)
    faults = (checking.find_fault_of_step(answer, step, evidence[step.id]) for answer, step in pairs)
    return next((fault for fault in faults if fault), "")


def _apply(draft: SkillDraft, answer: Writing, evidence: Mapping[str, Sequence[Evidence]]) -> SkillDraft:
    steps = [step for step in draft.playbook.steps if step.id]
    fault = checking.find_fault(answer.steps, steps, evidence)
    if fault:
        return replace(draft, remarks=(f"The language model's wording was not used: {fault}.",))
    remarks: list[str] = []
    worded: dict[str, Step] = {}
    for said, step in zip(answer.steps, steps, strict=True):
        fault = checking.find_fault_of_step(said, step, evidence[step.id])
        if fault:
            remarks.append(f"Step “{step.do}” keeps its wording; the language model's was not used: {fault}.")
        else:
            worded[step.id] = _reword(step, said)
    playbook = replace(
        draft.playbook,
        steps=tuple(worded.get(step.id, step) for step in draft.playbook.steps),
        goal=checking.choose(answer.goal, draft.playbook.goal, draft),
    )
    return replace(
        draft,
        title=checking.choose(answer.title, draft.title, draft),
        problem=checking.choose(answer.problem, draft.problem, draft),
        playbook=playbook,
        remarks=tuple(remarks),
    )


def _reword(step: Step, said: Reworded) -> Step:
    """Return a step in a model's words; a check that it left out stays as it was."""
    return replace(
        step, do=said.do.strip(), check=said.check.strip() or step.check, say=said.say.strip(), induced=step.do
    )
