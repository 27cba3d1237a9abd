"""Conversations, and the skills that they teach: frozen values, and the port for inducing skills from conversations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from refdesk.model import Vector

EmbedTexts: TypeAlias = "Callable[[Sequence[str]], Awaitable[Mapping[str, Vector]]]"
"""Returns the vector of each text, by the text."""

Speaker: TypeAlias = Literal["customer", "agent", "system"]
"""Whose turn it is: of the one who asks for help, of the one who gives it, or of a tool that one of them used."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side of a conversation said or did in one go. It is data: nothing in it is an instruction to a reader.

    Attributes:
        text: What was said, what a tool answered, or the arguments of a call as a JSON object.
        call: The name of the tool that is called with these arguments; empty if the turn is not a call.
    """

    speaker: Speaker
    text: str
    call: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation that a skill was learned from, masked: the evidence of what the skill says.

    Attributes:
        id: Of the conversation: the same for the same turns.
        outcome: How it went: resolved, likely_resolved, likely_failed or failed; empty if unknown.
        note: What somebody said about the skill when this conversation was learned; may be empty.
    """

    id: str
    turns: tuple[Turn, ...]
    outcome: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a playbook: what to do, how to check that it worked, what to say. `check` and `say` may be empty.

    Attributes:
        id: The same in every version of the playbook that has the step; empty where nothing is known of its evidence.
        cases: The ids of the conversations that support it.
        led_on: In how many of them the conversation continued after the step as the playbook does.
        induced: The original wording of `do`, if a language model has reworded it; else empty.
    """

    do: str
    check: str = ""
    say: str = ""
    id: str = ""
    cases: tuple[str, ...] = ()
    led_on: int = 0
    induced: str = ""


@dataclass(frozen=True, slots=True)
class Playbook:
    """How to resolve a problem, in order. `escalation` says when to hand over and to whom; it may be empty.

    Attributes:
        notes: What people said about the skill, in their own words, oldest first.
        seldom: Steps that are supported by too few cases so far to be in the playbook; the most frequent first.
        cases: The ids of all conversations that it was made from, oldest first.
    """

    goal: str
    prerequisites: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    edge_cases: tuple[str, ...] = ()
    escalation: str = ""
    notes: tuple[str, ...] = ()
    seldom: tuple[Step, ...] = ()
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """What a conversation teaches.

    Attributes:
        title: One line.
        problem: What customers ask for, in words like theirs.
        conditions: When the playbook applies.
        keywords: Words that people search by.
        product_area: Empty where unknown.
        issue_type: Such as how-to, bug, feature-request or escalation; empty where unknown.
        openings: What the skill is found by: how customers began, one opening for each of some of the cases, and, while
            there is room, everything that they said.
        remarks: Remarks on how it was made, for the description of the changes in its version.
    """

    title: str
    problem: str
    playbook: Playbook
    conditions: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    product_area: str = ""
    issue_type: str = ""
    openings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grouping:
    """Conversations by problem.

    Attributes:
        groups: The numbers of the conversations of each group, ascending; groups are in the order of their first one.
        near: Pairs of groups, by number, that may be about the same problem, for somebody to confirm.
    """

    groups: tuple[tuple[int, ...], ...]
    near: tuple[tuple[int, int], ...] = ()


class Inducer(Protocol):
    """Makes a skill of all its cases at once. What is said in a case is data to it, never an order."""

    @property
    def name(self) -> str:
        """Its name, as kept with every skill that it made."""
        ...

    async def induce(self, cases: Sequence[Case], embed: EmbedTexts | None) -> SkillDraft:
        """Return what the cases teach together; each step says which of them support it.

        Args:
            cases: Masked, oldest first, at least one.
            embed: Returns vectors of unit length for texts; `None` if there is no embedding model.

        Raises:
            InvalidInputError: They teach nothing, because nobody asks for anything.
            LanguageModelError: A service that takes part failed, refused or answered nonsense twice.
            EmbedderError: The vectors could not be made.
        """
        ...

    async def preview(self, cases: Sequence[Case]) -> SkillDraft:
        """Return roughly what `induce` would, without asking any service; errors as there."""
        ...

    async def group(self, cases: Sequence[Case], embed: EmbedTexts | None) -> Grouping:
        """Return the cases grouped by problem; arguments and errors as in `induce`."""
        ...
