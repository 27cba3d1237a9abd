"""The page of one thing: its text and facts, then sections that further operations fill.

To add a section, write what builds it and put it in `SECTIONS` under the operation that reads the thing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from refdesk import errors
from refdesk.server.console import differences, drawings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.server.console.visits import Visit

Values: TypeAlias = Mapping[str, Any]

GET_KNOWLEDGE = "get_knowledge"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page of a thing.

    Attributes:
        anchor: Where an address on the page leads to it.
        operations: Those that it asks; who may not run them does not see it.
        template: Shows what was built, in the folder `sections`.
        build: Called with the visit and the thing; returns what the template needs, or `None` for no section.
    """

    anchor: str
    title: str
    operations: tuple[str, ...]
    template: str
    build: Callable[[Visit, Values], Awaitable[Values | None]]


@dataclass(frozen=True, slots=True)
class Built:
    """A section as the page has it; with an error, that is shown in its place."""

    section: Section
    values: Values
    error: str = ""


async def build_sections(visit: Visit, operation: str, thing: Values) -> Sequence[Built]:
    """Return the sections of a thing that an operation read; one that fails says so and hides no other."""
    built = list[Built]()
    for section in SECTIONS.get(operation, ()):
        if not all(visit.may(name) for name in section.operations):
            continue
        try:
            values = await section.build(visit, thing)
        except errors.RefdeskError as error:
            built.append(Built(section, {}, error.message))
            continue
        if values is not None:
            built.append(Built(section, values))
    return built


async def _build_history(visit: Visit, note: Values) -> Values | None:
    """Return the chain of an entry, and how the entry differs from one of it: what it replaced, or which was chosen."""
    chain: list[Values] = note["chain"][::-1]
    if len(chain) < 2:
        return None
    replaced = [each["id"] for each in chain if each.get("supersededBy") == note["id"]]
    chosen = visit.query.get("compare") or next(iter(replaced), None)
    rail = drawings.draw_rail([each["id"] for each in chain], {each["id"]: each.get("supersededBy") for each in chain})
    compared = await _compare_notes(visit, note, chosen) if chosen is not None and chosen != note["id"] else None
    rows = list(zip(chain, rail.dots, strict=True))
    return {"rows": rows, "rail": rail, "compared": compared, "older": note.get("nextChainOffset"), "id": note["id"]}


async def _compare_notes(visit: Visit, note: Values, id: str) -> Values:
    other = await visit.ask(GET_KNOWLEDGE, {"id": id})
    older, newer = sorted((other, note), key=lambda each: each["createdAt"])
    return {
        "older": older,
        "newer": newer,
        "title": differences.compare(older["title"], newer["title"]),
        "body": differences.compare(older["body"], newer["body"]),
        "facts": [
            (name, older.get(name), newer.get(name))
            for name in ("tags", "confidence", "expiresAt", "author")
            if older.get(name) != newer.get(name)
        ],
    }


async def _build_links(_: Visit, note: Values) -> Values | None:
    links = [{**link, "address": _find_address(link)} for link in note["links"]]
    if not links:
        return None
    return {"links": links[::-1], "star": drawings.draw_star(links), "omitted": note.get("omittedLinks")}


def _find_address(link: Values) -> str | None:
    """Return where the other end of a link is shown; `None` for what is kept elsewhere."""
    readers = {"knowledge": (GET_KNOWLEDGE, "id"), "skills": ("get_skill", "skill_id")}
    if link["toolset"] not in readers:
        return None
    operation, argument = readers[link["toolset"]]
    return f"/console/read/{operation}?{argument}={link['id']}"


SECTIONS: Mapping[str, Sequence[Section]] = {
    GET_KNOWLEDGE: (
        Section("history", "History", (GET_KNOWLEDGE,), "history.html", _build_history),
        Section("links", "Links", (), "links.html", _build_links),
    ),
}
