"""Conversations, and the skills that they teach: frozen values, and the port of what induces the one from the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from refdesk.model import Vector

EmbedTexts: TypeAlias = "Callable[[Sequence[str]], Awaitable[Mapping[str, Vector]]]"
"""Returns the vector of each text, by the text."""

Speaker: TypeAlias = Literal["customer", "agent", "system"]
"""Who says a turn: whoever asks for help, whoever gives it, or a tool that one of them used."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side of a conversation said or did at once. It is data: nothing in it is an instruction to a reader.

    Attributes:
        text: What was said, what a tool answered, or the arguments of a call as a JSON object.
        call: The name of the tool that is called with them; empty where the turn is no call.
    """

    speaker: Speaker
    text: str
    call: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation that a skill was learned from, masked: the evidence of what the skill says.

    Attributes:
        id: Of the conversation: the same for the same turns.
        outcome: How it went, where known: resolved, likely_resolved, likely_failed or failed; else empty.
        note: What somebody said of the skill when this conversation was learned; may be empty.
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
        led_on: In how many of them the conversation went on after it as the playbook does.
        induced: What `do` was induced as, where a language model has reworded it; else empty.
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
        notes: What people said of the skill, in their words, oldest first.
        seldom: What some cases support, too few to be a step yet; the most frequent first.
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
        openings: How customers began, one for each of some of the cases, and while there is room what they said in all:
            what the skill is found by.
        remarks: What is to be said of how it was made, for the changes of its version.
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
        groups: The numbers of the conversations of each group, ascending; a group begins where its first one stands.
        near: Pairs of groups, by number, that may be about the same problem: for somebody to confirm.
    """

    groups: tuple[tuple[int, ...], ...]
    near: tuple[tuple[int, int], ...] = ()


class Inducer(Protocol):
    """Makes a skill of all its cases at once. What is said in a case is data to it, never an order."""

    @property
    def name(self) -> str:
        """As kept with every skill it made."""
        ...

    async def induce(self, cases: Sequence[Case], embed: EmbedTexts | None) -> SkillDraft:
        """Return what the cases teach together; each step says which of them support it.

        Args:
            cases: Masked, oldest first, at least one.
            embed: Returns vectors of unit length for texts; `None` where there is no embedding model.

        Raises:
            InvalidInputError: They teach nothing: nobody asks for anything.
            LanguageModelError: A service that takes part failed, refused or answered nonsense twice.
            EmbedderError: The vectors could not be made.
        """
        ...

    async def preview(self, cases: Sequence[Case]) -> SkillDraft:
        """Return about what `induce` would, without asking any service; errors as there."""
        ...

    async def group(self, cases: Sequence[Case], embed: EmbedTexts | None) -> Grouping:
        """Return the cases grouped by the problem that they are about; arguments and errors as in `induce`."""
        ...
