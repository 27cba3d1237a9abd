"""Says in words how a skill changed from one induction to the next: what was added, dropped or moved, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from refdesk.core.counts import say_count
from refdesk.toolsets.skills import limits

if TYPE_CHECKING:
    from refdesk.playbooks import Playbook, SkillDraft, Step

NOTHING_NEW = "Nothing new: the conversation agrees with the playbook."
MAX_CHANGES = 60


def describe(old: SkillDraft, new: SkillDraft) -> tuple[str, ...]:
    """Return every change, for people to read; they also say that what is no longer a step is kept as evidence."""
    changes = [
        *_compare_steps(old.playbook, new.playbook),
        *_compare_items("condition", old.conditions, new.conditions),
        *_compare_items("keyword", old.keywords, new.keywords),
        *_compare_items("prerequisite", old.playbook.prerequisites, new.playbook.prerequisites),
        *_compare_items("edge case", old.playbook.edge_cases, new.playbook.edge_cases),
        *_compare_items("feedback", old.playbook.notes, new.playbook.notes),
        *_compare_words(old, new),
    ]
    support = len(new.playbook.cases)
    if support > 1 and support != len(old.playbook.cases):
        changes.append(f"{support} conversations support it now.")
    left = len(changes) - MAX_CHANGES
    rest = [f"And {say_count(left, 'more change')}."] if left > 0 else []
    return (*changes[:MAX_CHANGES], *rest) or (NOTHING_NEW,)


def describe_cut(draft: SkillDraft) -> tuple[str, ...]:
    """Return, for people to read, what is left out of a model's draft because a skill cannot hold so much."""
    playbook = draft.playbook
    counted = (
        ("step", playbook.steps, limits.MAX_STEPS),
        ("condition", draft.conditions, limits.MAX_CONDITIONS),
        ("keyword", draft.keywords, limits.MAX_KEYWORDS),
        ("prerequisite", playbook.prerequisites, limits.MAX_NOTES),
        ("edge case", playbook.edge_cases, limits.MAX_NOTES),
    )
    return tuple(_describe_rest(kind, len(all) - most, most) for kind, all, most in counted if len(all) > most)


def _describe_rest(kind: str, count: int, most: int) -> str:
    return f"Left out {count} new of kind {kind}: the skill holds {most} at most."


def _compare_steps(old: Playbook, new: Playbook) -> Iterator[str]:
    before, after = _key(old.steps), _key(new.steps)
    seldom = _key(new.seldom)
    total = len(new.cases)
    for key, step in after.items():
        if key not in before:
            yield f"Added step “{step.do}”."
        elif before[key].do != step.do:
            yield f"Reworded step “{before[key].do}” as “{step.do}”."
    for key, step in before.items():
        if key in after:
            continue
        kept = seldom.get(key)
        if kept is not None:
            yield f"No step any more: “{step.do}”, done in {len(kept.cases)} of {total} cases; kept as seldom."
        elif step.cases and not set(step.cases) & set(new.cases):
            yield f"Step “{step.do}” went with the conversations that support it."
        elif step.cases or step.id:
            yield f"Step “{step.do}” is now part of another; its cases are kept."
        else:
            yield f"No step any more: “{step.do}”, which no case is known to support."
    common = [key for key in before if key in after]
    if [key for key in after if key in before] != common:
        yield "The order of the steps is now that of most cases."


def _key(steps: Sequence[Step]) -> dict[str, Step]:
    return {step.id or step.do: step for step in steps}


def _compare_items(kind: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    known = {item.casefold() for item in old}
    yield from (f"Added {kind} “{item}”." for item in new if item.casefold() not in known)
    left = {item.casefold() for item in new}
    yield from (f"No longer a {kind} that cases share: “{item}”." for item in old if item.casefold() not in left)


def _compare_words(old: SkillDraft, new: SkillDraft) -> Iterator[str]:
    for name, before, after in (
        ("title", old.title, new.title),
        ("problem", old.problem, new.problem),
        ("escalation", old.playbook.escalation, new.playbook.escalation),
    ):
        if before != after:
            yield f"Changed {name} from “{before}” to “{after}”." if before else f"Added {name}: “{after}”."
