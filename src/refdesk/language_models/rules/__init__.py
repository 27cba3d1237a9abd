"""A rule-based extractor in place of a language model: deterministic, without network or key.

The customer's own words become the title and the problem, what the agent asked for and said becomes the steps, what a
tool did becomes what to do. Words are taken over, not written, so the playbook says no more than the conversation did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio.to_thread

from refdesk.errors import InvalidInputError
from refdesk.language_models.rules import playbooks, problems
from refdesk.model import Refinement, SkillDraft, Step

if TYPE_CHECKING:
    from refdesk.model import Turn

NAME = "rules-2"
"""Raised whenever the same conversation would give another skill."""

UNKNOWN = Step("Find out what resolves this: no agent's answer was recorded.", "The customer confirms.")
"""The step of a playbook whose conversation has no agent in it."""


class RulesModel:
    """Extracts and refines by rules, in a worker thread: a long conversation takes seconds."""

    @property
    def name(self) -> str:
        """The version of the rules."""
        return NAME

    async def extract(self, conversation: Sequence[Turn]) -> SkillDraft:
        """Return what a conversation teaches. See `LanguageModel.extract`.

        Raises:
            InvalidInputError: The customer says nothing that could be searched for.
        """
        return await anyio.to_thread.run_sync(_extract, conversation)

    async def refine(self, skill: SkillDraft, conversation: Sequence[Turn], feedback: str) -> Refinement:
        """Return the skill with what the conversation adds; nothing is ever taken away by rules alone."""
        return await anyio.to_thread.run_sync(_refine, skill, conversation, feedback)


def _extract(conversation: Sequence[Turn]) -> SkillDraft:
    problem = problems.find_problem(conversation)
    if problem is None:
        raise InvalidInputError(
            "The conversation teaches nothing: no customer says what is wanted. Send a whole transcript, with lines "
            "such as 'Customer: …' and 'Agent: …'."
        )
    playbook = playbooks.write_playbook(problem.title, conversation)
    return SkillDraft(
        title=problem.title,
        problem=problem.text,
        playbook=playbook if playbook.steps else replace(playbook, steps=(UNKNOWN,)),
        conditions=problem.conditions,
        keywords=problems.find_keywords(conversation),
        issue_type=problems.guess_issue_type(problem.text, conversation),
    )


def _refine(skill: SkillDraft, conversation: Sequence[Turn], feedback: str) -> Refinement:
    problem = problems.find_problem(conversation)
    found = playbooks.write_playbook(skill.title, conversation)
    note = (f"Feedback: {' '.join(feedback.split())}",) if feedback.strip() else ()
    known = skill.playbook
    playbook = replace(
        found,
        goal=known.goal,
        edge_cases=(*found.edge_cases, *note),
        # One that was seen stays; one of no conversation gives way to it.
        escalation=found.escalation if known.escalation in {"", playbooks.DEFAULT_ESCALATION} else known.escalation,
    )
    draft = replace(
        skill,
        playbook=playbook,
        conditions=problem.conditions if problem is not None else (),
        keywords=problems.find_keywords(conversation),
    )
    return Refinement(draft)
