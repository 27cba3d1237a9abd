"""Reads a `SKILL.md` of refdesk's back, even after somebody has edited it; writes and reads what is kept beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import regex

from refdesk.errors import InvalidInputError
from refdesk.playbooks import Playbook, SkillDraft, Step
from refdesk.toolsets.skills import rendering

if TYPE_CHECKING:
    from refdesk.model import JsonObject
    from refdesk.toolsets.skills.records import Skill

NONE = "None known."
WHEN, GOAL, PREREQUISITES, STEPS = "When to use it", "Goal", "Prerequisites", "Steps"
EDGE_CASES, ESCALATION = "Edge cases", "Escalation"
_HEADING = regex.compile(r"^# +(.+?) *#*$", regex.MULTILINE)
_SECTION = regex.compile(r"^## +(.+?) *#*$", regex.MULTILINE)
_STEP = regex.compile(r"^\d+\. \*\*Do:\*\* ", regex.MULTILINE)
_SUPPORT = regex.compile(r" \(\d+ of \d+\)$")
_PART = regex.compile(r"^ *\*\*(Check|Say):\*\* ", regex.MULTILINE)


def find_title(text: str) -> str:
    """Return the first heading of a text; empty without one."""
    found = _HEADING.search(text)
    return str(found[1]) if found else ""


def to_evidence(skill: Skill) -> dict[str, Any]:
    """Return, as JSON, what is kept of a skill beside its text; how it has done at this desk is not part of it."""
    kept: dict[str, Any] = {
        "skill_id": skill.skill_id,
        "title": skill.title,
        "problem": skill.problem,
        "conditions": skill.conditions,
        "keywords": skill.keywords,
        "openings": skill.openings,
        "product_area": skill.product_area,
        "issue_type": skill.issue_type,
        "playbook": asdict(skill.playbook),
        "metadata": {name: value for name, value in skill.metadata.items() if name != "imported_author"},
        "edited": skill.is_edited,
        "silent": skill.silent,
        "made_by": skill.made_by,
        "author": skill.metadata.get("imported_author", skill.author),
        "created_at": skill.created_at.isoformat(),
        "updated_at": skill.updated_at.isoformat(),
    }
    if skill.instructions is not None:
        said = asdict(skill.instructions)
        kept["instructions"] = {name: said[name] for name in ("description", "text", "fields")}
    return kept


def read_evidence(text: str, form: str, notes: list[str]) -> JsonObject:
    """Return what was kept beside a text; if it cannot be read, return nothing and add a note."""
    if not text:
        return {}
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and cast("dict[str, object]", value).get("format") == form:
        return cast("JsonObject", value)
    notes.append("What refdesk kept beside it cannot be read: only what SKILL.md says was taken over.")
    return {}


@dataclass(frozen=True, slots=True)
class _Sections:
    """The texts below the headings of the second level, by heading."""

    texts: Mapping[str, str]

    def get(self, name: str) -> str:
        text = self.texts.get(name, "").strip()
        return "" if text == NONE else text

    def get_items(self, name: str) -> tuple[str, ...]:
        """Return the items of a list; lines that follow an item belong to it."""
        return tuple(_list_items(self.get(name)))


def read_edited(text: str, old: SkillDraft) -> SkillDraft:
    """Return a draft changed to what the text of its `SKILL.md` now says; what has no place in the text stays.

    A step that still does the same keeps its evidence.

    Raises:
        InvalidInputError: The title, or a section that every skill has, is gone.
    """
    sections = _split(text)
    lead, conditions = _read_when(sections.get(WHEN))
    steps = tuple(_read_steps(sections.get(STEPS), old.playbook))
    title = find_title(text)
    if not title or not lead or not steps:
        missing = "title" if not title else f"section “{STEPS if lead else WHEN}”"
        raise InvalidInputError(f"SKILL.md has no {missing} any more: write one.")
    derived = {rendering.one_line(each) for each in rendering.list_derived(old.playbook)}
    playbook = replace(
        old.playbook,
        goal=sections.get(GOAL),
        prerequisites=sections.get_items(PREREQUISITES),
        steps=steps,
        edge_cases=tuple(each for each in sections.get_items(EDGE_CASES) if each not in derived),
        escalation=sections.get(ESCALATION),
    )
    return replace(old, title=title, problem=lead, conditions=conditions, playbook=playbook)


def _split(text: str) -> _Sections:
    text = text.partition(f"\n{rendering.IMPORTED}\n")[0]
    found = [*_SECTION.finditer(text)]
    ends = [*(each.start() for each in found[1:]), len(text)]
    return _Sections({str(each[1]): text[each.end() : end] for each, end in zip(found, ends, strict=True)})


def _read_when(text: str) -> tuple[str, tuple[str, ...]]:
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("- ")), len(lines))
    return " ".join(" ".join(lines[:first]).split()), tuple(_list_items("\n".join(lines[first:])))


def _list_items(text: str) -> Iterator[str]:
    for item in regex.split(r"^- ", text, flags=regex.MULTILINE)[1:]:
        if said := " ".join(item.split()):
            yield said


def _read_steps(text: str, old: Playbook) -> Iterator[Step]:
    known = {rendering.one_line(step.do): step for step in old.steps}
    for part in _STEP.split(text)[1:]:
        do, *rest = _PART.split(part)
        said = dict(zip(rest[::2], (" ".join(each.split()) for each in rest[1::2]), strict=True))
        bare = _SUPPORT.sub("", " ".join(do.split()))
        step = known.get(bare) or known.get(" ".join(do.split())) or Step(bare)
        if step.do:
            yield replace(step, check=said.get("Check", ""), say=said.get("Say", ""))
