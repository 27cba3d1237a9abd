"""Sections of the page of one thing, filled by further operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from refdesk import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.server.console.visits import Visit

Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page of a thing.

    Attributes:
        anchor: The anchor that leads to it on the page.
        operations: Those that it asks; it is hidden from people who may not run them all.
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
    """A section as the page shows it; if there is an error, that is shown in its place."""

    section: Section
    values: Values
    error: str = ""


async def build(visit: Visit, sections: Sequence[Section], thing: Values) -> Sequence[Built]:
    """Return the sections of a thing; one that fails says so and hides no other."""
    built = list[Built]()
    for section in sections:
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
