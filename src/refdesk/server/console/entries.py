"""The things that have a page of their own: its template and its sections, by the operation that reads one.

To add a section, write what builds it beside those of its thing, and its template in `templates/sections`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from refdesk.server.console import notes, skills, updates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refdesk.server.console.sections import Section


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a thing.

    Attributes:
        find: Returns the thing in an operation's answer; `None` if that is not a single thing, and so has no such page.
    """

    template: str
    sections: Sequence[Section]
    find: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda answer: answer


PAGES: Mapping[str, Page] = {
    notes.GET_KNOWLEDGE: Page("note.html", notes.SECTIONS),
    skills.GET_SKILL: Page("skill.html", skills.SECTIONS),
    updates.SEARCH: Page("update.html", updates.SECTIONS, updates.find_update),
}
