"""Renders a version of a skill: whole, for a person, or its content alone, to be compared with another version."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk.toolsets.skills.rendering import render_playbook

if TYPE_CHECKING:
    from refdesk.toolsets.skills.records import Skill


def render_skill(skill: Skill) -> str:
    """Return a skill for a person to read."""
    when = "".join(f"- {condition}\n" for condition in skill.conditions)
    lead = f"## When to use it\n\n{skill.problem}\n\n" + (f"{when}\n" if when else "")
    head, _, rest = skill.resolution.partition("## Goal")
    return f"{head}{lead}## Goal{rest}"


def render_content(skill: Skill) -> str:
    """Return the content of a version, without its counters."""
    facts = [f"Title: {skill.title}", f"Problem: {skill.problem}", *(f"Condition: {each}" for each in skill.conditions)]
    facts += [f"Keyword: {keyword}" for keyword in skill.keywords]
    # Leave out how many cases support each step: that grows with every version.
    playbook = replace(skill.playbook, cases=())
    return "\n".join([*facts, "", render_playbook(playbook)])
