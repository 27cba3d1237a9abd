"""Notices of what was just done, on the page that it led to, with the way to undo it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DONE = {
    "store_knowledge": ("The entry is stored.", "withdraw_knowledge"),
    "edit_knowledge": ("The new version is stored; it holds now.", "restore_knowledge"),
    "supersede_knowledge": ("The entry is superseded.", "restore_knowledge"),
    "withdraw_knowledge": ("The entry is withdrawn. No search finds it any more.", "restore_knowledge"),
    "restore_knowledge": ("The entry holds again.", "withdraw_knowledge"),
    "create_skill": ("The conversation was learned from.", None),
    "update_skill": ("The skill was refined.", None),
    "report_outcome": ("Your report counts.", "withdraw_outcome"),
    "withdraw_outcome": ("Your report is taken back.", None),
    "merge_skills": ("The skills are one now.", "unmerge_skills"),
    "unmerge_skills": ("It is a skill of its own again.", None),
    "judge_impact": ("Your judgement is kept.", None),
    "settle_case": ("The case is as you said.", None),
    "judge_gap": ("The gap is as you said.", None),
    "create_watch": ("It is watched from now on.", "delete_watch"),
    "pause_watch": ("The watch is as you said.", "pause_watch"),
    "delete_watch": ("The watch is removed.", None),
    "retry_embeddings": ("What could not be embedded is tried again.", None),
    "sync_toolset": ("The sync runs. This page shows how far it is.", None),
}
"""For each act: what to say after it, and the operation that undoes it."""

UNDOING = "act"
"""Among the arguments that undo something: the operation, if it is not the usual one."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What to say, and the address of the form that undoes what was done; empty if nothing does."""

    text: str
    undo: str


def write_notice(act: str, undo: dict[str, str] | None) -> str:
    """Return the query that makes a page say that an act was done, and how to undo it."""
    return urlencode({"did": act, **({"undo": urlencode(undo)} if undo else {})})


def find_notice(query: Mapping[str, str], may: Callable[[str], bool]) -> Notice | None:
    """Return what an address says was done. Whoever wrote the address, the notice says only what `DONE` has.

    Args:
        query: That of the address.
        may: Returns whether the visitor may run an operation.
    """
    text, undoing = DONE.get(query.get("did", ""), ("", None))
    if not text:
        return None
    arguments = dict(parse_qsl(query.get("undo", "")))
    undoing = arguments.pop(UNDOING, undoing)
    is_possible = undoing in DONE and arguments and may(undoing)
    return Notice(text, f"/console/do/{undoing}?{urlencode(arguments)}" if is_possible else "")
