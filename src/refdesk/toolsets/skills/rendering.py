"""Renders playbooks as Markdown for the agent that follows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refdesk.playbooks import Playbook, Step


MAX_SELDOM = 8
FEW_CASES = 10
IMPORTED = "## As imported"
MAX_NOTES = 10
"""Most notes, which is what people said about a skill, that are shown: the newest."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a skill at the time of reading. It is not part of the stored text, where it would go stale."""

    version: int
    confidence: float
    times_used: int
    times_confirmed: int
    product_area: str
    issue_type: str
    made_by: str


def render_resolution(title: str, playbook: Playbook, standing: Standing, instructions: str = "") -> str:
    """Return a skill's resolution: a heading, a status line, and the playbook or, if imported, its own words."""
    return f"# {one_line(title)}\n\n{_render_standing(standing)}\n\n{render_whole(playbook, instructions)}"


def render_whole(playbook: Playbook, instructions: str) -> str:
    """Return the playbook; for an imported skill its own words, below what conversations have taught since."""
    if not instructions:
        return render_playbook(playbook)
    if not playbook.steps:
        return instructions
    return f"{render_playbook(playbook)}\n{IMPORTED}\n\n{instructions}"


def render_playbook(playbook: Playbook) -> str:
    """Return the sections Goal, Prerequisites, Steps (each Do, Check, Say), Edge cases and Escalation."""
    sections = {
        "Goal": one_line(playbook.goal),
        "Prerequisites": _bullets(playbook.prerequisites),
        "Steps": "\n".join(
            _render_step(number, step, len(playbook.cases)) for number, step in enumerate(playbook.steps, start=1)
        ),
        "Edge cases": _bullets([*playbook.edge_cases, *list_derived(playbook)]),
        "Escalation": one_line(playbook.escalation),
    }
    return "\n\n".join(f"## {name}\n\n{text or 'None known.'}" for name, text in sections.items()) + "\n"


def list_derived(playbook: Playbook) -> list[str]:
    """Return the edge cases shown after the playbook's own: what was seldom done, and what people said."""
    return [*_render_seldom(playbook), *_render_notes(playbook)]


def one_line(text: str) -> str:
    """Return the text on one line, so that nothing in it can pose as a heading or another item."""
    return " ".join(text.split())


def _render_standing(standing: Standing) -> str:
    uses, confirmed = standing.times_used, standing.times_confirmed
    parts = [
        f"Version {standing.version}",
        f"confidence {standing.confidence:.2f} ({uses} uses, {confirmed} confirmed)",
    ]
    if standing.product_area:
        parts.append(f"product area: {one_line(standing.product_area)}")
    if standing.issue_type:
        parts.append(f"issue type: {one_line(standing.issue_type)}")
    return " · ".join([*parts, f"made by {one_line(standing.made_by)}"])


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {one_line(item)}" for item in items)


def _render_step(number: int, step: Step, cases: int) -> str:
    indent = " " * len(f"{number}. ")
    return f"\n{indent}".join(
        [f"{number}. **Do:** {one_line(step.do)}{_render_support(step, cases)}", *_render_rest(step)]
    )


def _render_support(step: Step, cases: int) -> str:
    return f" ({len(step.cases)} of {cases})" if step.cases and cases > 1 else ""


def _render_seldom(playbook: Playbook) -> list[str]:
    """Return what was done in one or two of few cases; with many cases that is noise, left to the evidence."""
    shown = playbook.seldom[: MAX_SELDOM if len(playbook.cases) < FEW_CASES else 0]
    return [f"Seldom{_render_support(step, len(playbook.cases))}: {step.do}" for step in shown]


def _render_notes(playbook: Playbook) -> list[str]:
    return [f"Feedback: {note}" for note in playbook.notes[-MAX_NOTES:]]


def _render_rest(step: Step) -> Iterator[str]:
    for name, text in (("Check", step.check), ("Say", step.say)):
        if text:
            yield f"**{name}:** {one_line(text)}"
