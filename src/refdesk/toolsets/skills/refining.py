"""Additive refinement: whatever a language model answers, the content of a skill stays unless it is contradicted.

A condition, keyword or step goes only when the model names it and quotes the words of the conversation or the feedback
that contradict it, and those words are there. Every such removal, and everything else that changes, is said in the
changes. A playbook that is full takes no more, and says that too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from refdesk.playbooks import Playbook, SkillDraft, Step

if TYPE_CHECKING:
    from refdesk.playbooks import Refinement, Removal, Turn

MAX_CONDITIONS = 40
MAX_KEYWORDS = 80
MAX_STEPS = 60
MAX_NOTES = 40
"""Prerequisites, and edge cases, each."""

MIN_QUOTE = 8
"""Letters and digits of a quotation that contradicts something: a shorter one is anywhere."""

NOTHING_NEW = "Nothing new: the conversation agrees with the playbook."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refined:
    """A skill's new content, and every change in words."""

    draft: SkillDraft
    changes: tuple[str, ...]


def refine(old: SkillDraft, refinement: Refinement, conversation: Sequence[Turn], feedback: str) -> Refined:
    """Return the old skill with what the refinement adds, and without what it shows to be contradicted."""
    new = refinement.draft
    said = normalise("\n".join([*(turn.text for turn in conversation), feedback]))
    contradicted = {
        normalise(removal.item): removal for removal in refinement.removals if _is_shown(removal, said) and removal.item
    }
    changes: list[str] = []
    steps = _merge_steps(old.playbook.steps, new.playbook.steps, contradicted, changes)
    conditions = _merge("condition", old.conditions, new.conditions, str, MAX_CONDITIONS, contradicted, changes)
    keywords = _merge("keyword", old.keywords, new.keywords, str, MAX_KEYWORDS, contradicted, changes)
    playbook = Playbook(
        goal=_reword("goal", old.playbook.goal, new.playbook.goal, changes),
        prerequisites=_merge(
            "prerequisite", old.playbook.prerequisites, new.playbook.prerequisites, str, MAX_NOTES, {}, changes
        ),
        steps=steps,
        edge_cases=_merge("edge case", old.playbook.edge_cases, new.playbook.edge_cases, str, MAX_NOTES, {}, changes),
        escalation=_reword("escalation", old.playbook.escalation, new.playbook.escalation, changes),
    )
    draft = SkillDraft(
        title=_reword("title", old.title, new.title, changes),
        problem=_reword("problem", old.problem, new.problem, changes),
        playbook=playbook,
        conditions=conditions,
        keywords=keywords,
        product_area=_reword("product area", old.product_area, new.product_area, changes),
        issue_type=_reword("issue type", old.issue_type, new.issue_type, changes),
    )
    return Refined(draft, tuple(changes) or (NOTHING_NEW,))


def normalise(text: str) -> str:
    """Return the form in which items and quotations are compared: letters and digits in lower case, single blanks."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def describe_rest(kind: str, count: int, most: int) -> str:
    """Return that so many items do not fit into a skill, for people to read."""
    return f"Left out {count} new of kind {kind}: the skill holds {most} at most."


def _is_shown(removal: Removal, said: str) -> bool:
    quote = normalise(removal.quote)
    return len(quote) >= MIN_QUOTE and f" {quote} " in f" {said} "


def _key(text: str) -> str:
    """Return the key by which two items are the same; for punctuation alone, the text itself."""
    return normalise(text) or text.strip()


def _merge(
    kind: str,
    old: Sequence[T],
    new: Sequence[T],
    get_text: Callable[[T], str],
    most: int,
    contradicted: Mapping[str, Removal],
    changes: list[str],
) -> tuple[T, ...]:
    kept = _keep(kind, old, get_text, contradicted, changes)
    known = {_key(get_text(item)) for item in kept} | contradicted.keys()
    added: dict[str, T] = {}
    for item in new:
        key = _key(get_text(item))
        if key and key not in known:
            added.setdefault(key, item)
    room = max(0, most - len(kept))
    changes.extend(f"Added {kind} “{get_text(item)}”." for item in list(added.values())[:room])
    if len(added) > room:
        changes.append(describe_rest(kind, len(added) - room, most))
    return (*kept, *list(added.values())[:room])


def _keep(
    kind: str,
    old: Iterable[T],
    get_text: Callable[[T], str],
    contradicted: Mapping[str, Removal],
    changes: list[str],
) -> list[T]:
    kept: list[T] = []
    for item in old:
        removal = contradicted.get(_key(get_text(item)))
        if removal is None:
            kept.append(item)
        else:
            changes.append(f"Removed {kind} “{get_text(item)}”, contradicted by “{' '.join(removal.quote.split())}”.")
    return kept


def _merge_steps(
    old: Sequence[Step], new: Sequence[Step], contradicted: Mapping[str, Removal], changes: list[str]
) -> tuple[Step, ...]:
    """Return the steps in order; a new step follows the one it followed in the refinement, else comes last."""
    removals: list[str] = []
    kept = _keep("step", old, _get_do, contradicted, removals)
    if kept or any(key and key not in contradicted for key in (_key(step.do) for step in new)):
        changes.extend(removals)
    else:
        kept = list(old)
    places = {_key(step.do): place for place, step in enumerate(kept)}
    at = 0 if any(_key(step.do) in places for step in new) else len(kept)
    left_out = 0
    for step in new:
        key = _key(step.do)
        if key in contradicted or not key:
            continue
        if key in places:
            at = places[key]
            kept[at] = _reword_step(kept[at], step, changes)
            at += 1
        elif len(kept) < MAX_STEPS:
            kept.insert(at, step)
            places = {_key(each.do): place for place, each in enumerate(kept)}
            changes.append(f"Added step “{step.do}”.")
            at += 1
        else:
            left_out += 1
    if left_out:
        changes.append(describe_rest("step", left_out, MAX_STEPS))
    return tuple(kept)


def _get_do(step: Step) -> str:
    return step.do


def _reword_step(old: Step, new: Step, changes: list[str]) -> Step:
    check = _reword(f"check of step “{old.do}”", old.check, new.check, changes)
    say = _reword(f"words of step “{old.do}”", old.say, new.say, changes)
    return replace(old, check=check, say=say)


def _reword(what: str, old: str, new: str, changes: list[str]) -> str:
    """Return the new wording, or the old one where there is no new one."""
    if not new.strip() or normalise(new) == normalise(old):
        return old
    changes.append(f"Changed {what} from “{old}” to “{new}”." if old else f"Added {what}: “{new}”.")
    return new
