"""Prompts a hosted model and validates its answer; invalid output is retried once with the error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from refdesk.errors import LanguageModelError
from refdesk.language_models.hosted import prompts
from refdesk.language_models.hosted.answers import (
    Extraction,
    RefinementAnswer,
    UnusableAnswerError,
    get_schema,
    parse,
)

if TYPE_CHECKING:
    from refdesk.playbooks import Refinement, SkillDraft, Turn

MAX_ATTEMPTS = 2

FormT = TypeVar("FormT", bound=Extraction)


@dataclass(frozen=True, slots=True)
class Message:
    """A message of one side: refdesk asks, the model answers."""

    side: Literal["asking", "answering"]
    text: str


class Complete(Protocol):
    """Sends a conversation with a model and returns its answer as text; raises `LanguageModelError` where it fails."""

    async def __call__(self, instruction: str, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        """Return the model's answer to the last message.

        Args:
            instruction: The system prompt.
            messages: First an asking one, then in turns.
            schema: The JSON Schema that the answer is to follow.
        """
        ...


async def extract(complete: Complete, conversation: Sequence[Turn]) -> SkillDraft:
    """Return what a conversation teaches. See `LanguageModel.extract`."""
    asked = prompts.write_conversation(conversation)
    return (await _ask(complete, prompts.INSTRUCTION, asked, Extraction)).to_draft()


async def refine(complete: Complete, skill: SkillDraft, conversation: Sequence[Turn], feedback: str) -> Refinement:
    """Return a refined skill. See `LanguageModel.refine`."""
    asked = prompts.write_refinement(skill, conversation, feedback)
    return (await _ask(complete, prompts.INSTRUCTION + prompts.REFINING, asked, RefinementAnswer)).to_refinement()


async def _ask(complete: Complete, instruction: str, asked: str, form: type[FormT]) -> FormT:
    messages, schema = [Message("asking", asked)], get_schema(form)
    problem = ""
    for _ in range(MAX_ATTEMPTS):
        text = await complete(instruction, messages, schema)
        try:
            return cast("FormT", parse(text, form))
        except UnusableAnswerError as error:
            problem = str(error)
            messages += [Message("answering", text), Message("asking", prompts.write_repair(problem))]
    raise LanguageModelError(
        f"The language model answered twice in a form that cannot be used ({problem}). "
        "Try again, or choose another model."
    )
