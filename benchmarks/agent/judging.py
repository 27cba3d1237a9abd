"""Lets an agent do the tasks one after the other, and judges what it replied and what it left behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from benchmarks.agent.scripted import UnknownRecipeError
from benchmarks.agent.tasks import find_faults
from refdesk.server.answers import to_text

if TYPE_CHECKING:
    from mcp.client import Client

    from benchmarks.agent.session import Session
    from benchmarks.agent.tasks import Task

MOST_CALLS, MOST_TOKENS = 1.2, 25_000
"""Of the ideal number of calls; of everything that the agent reads and writes."""


class Agent(Protocol):
    """Whoever does the tasks."""

    async def solve(self, task: Task) -> str:
        """Do a task and return the reply."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task: what it cost, and what is wrong; nothing where it is solved."""

    task: Task
    calls: int
    tokens: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What became of all of them.

    Attributes:
        listed: Tokens of the instructions and the tools, which are read once.
    """

    outcomes: Sequence[Outcome]
    listed: int

    @property
    def solved(self) -> int:
        """How many tasks are solved."""
        return sum(not outcome.faults for outcome in self.outcomes)

    @property
    def calls(self) -> int:
        """Of all tasks."""
        return sum(outcome.calls for outcome in self.outcomes)

    @property
    def ideal(self) -> int:
        """The calls of somebody who knows the desk well."""
        return sum(outcome.task.ideal for outcome in self.outcomes)

    @property
    def tokens(self) -> int:
        """Of all that the agent reads and writes."""
        return self.listed + sum(outcome.tokens for outcome in self.outcomes)

    @property
    def holds(self) -> bool:
        """Whether all is as it must be."""
        is_short = self.calls <= MOST_CALLS * self.ideal and self.tokens <= MOST_TOKENS
        return is_short and self.solved == len(self.outcomes)

    def write(self) -> str:
        """Return a line for each task, and one for all."""
        lines = [
            f"{outcome.task.name:28} {'solved' if not outcome.faults else 'NOT   '} {outcome.calls:3} calls (ideal "
            f"{outcome.task.ideal}) {outcome.tokens:6} tokens  {'; '.join(outcome.faults)}".rstrip()
            for outcome in self.outcomes
        ]
        return "\n".join(
            [
                *lines,
                f"{'instructions and tools':28} {'':6} {'':18} {self.listed:8} tokens",
                f"{'in all':28} {self.solved:2} of {len(self.outcomes)} {self.calls:3} calls (at most "
                f"{MOST_CALLS * self.ideal:.0f}) {self.tokens} tokens (at most {MOST_TOKENS}): "
                f"{'holds' if self.holds else 'DOES NOT HOLD'}",
            ]
        )


async def judge(tasks: Sequence[Task], agent: Agent, session: Session, witness: Client) -> Report:
    """Let an agent do tasks and return what became of them.

    Args:
        tasks: Done in this order, in one world.
        agent: Does them, through the session.
        session: What it calls is counted there.
        witness: Looks at what is left behind, at no cost to the agent.
    """
    outcomes: list[Outcome] = []
    for task in tasks:
        calls, tokens = session.calls, session.tokens
        try:
            reply = await agent.solve(task)
            faults = find_faults(reply, task.must, task.never)
        except UnknownRecipeError as error:
            faults = [str(error)]
        faults += await _look(task, witness)
        outcomes.append(Outcome(task, session.calls - calls, session.tokens - tokens, tuple(faults)))
    return Report(outcomes, session.listed_tokens)


async def _look(task: Task, witness: Client) -> list[str]:
    faults: list[str] = []
    for look in task.after:
        result = await witness.call_tool(look.tool, look.arguments)
        value = dict(result.structured_content or {})
        # An answer repeats what was asked: that is no evidence.
        text = to_text({name: part for name, part in value.items() if name != "query"})
        faults += [f"afterwards {look.tool} {fault}" for fault in find_faults(text, look.must, look.never, look.once)]
    return faults
