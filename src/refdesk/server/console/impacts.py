"""The section about what announcements change for a thing, on the pages of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.server.console.addresses import find_address
from refdesk.server.console.sections import Section, Values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.server.console.visits import Visit

LIST_IMPACTS = "list_impacts"
MOST_SHOWN = 20


async def list_impacts(visit: Visit, asked: Mapping[str, object]) -> Sequence[Values]:
    """Return impacts with the addresses of both sides and the arguments for judging each."""
    found = await visit.ask(LIST_IMPACTS, {"limit": MOST_SHOWN, **asked})
    return [_show(each) for each in found["impacts"]]


def _show(impact: Values) -> Values:
    announced = impact["announcement"]
    return {
        **impact,
        "announced_at": find_address(announced["toolset"], announced["id"]),
        "kept_at": find_address(impact["toolset"], impact["id"]),
        "judging": {"announcement": announced["id"], "toolset": impact["toolset"], "id": impact["id"]},
    }


async def _build(visit: Visit, asked: Mapping[str, object]) -> Values | None:
    impacts = await list_impacts(visit, asked)
    return {"impacts": impacts} if impacts else None


def make_section(toolset: str, id_field: str) -> Section:
    """Return the section for the things that a toolset keeps."""

    async def build(visit: Visit, thing: Values) -> Values | None:
        return await _build(visit, {"toolset": toolset, "id": thing[id_field]})

    return Section("impacts", "Announcements that affect it", (LIST_IMPACTS,), "impacts.html", build)


async def _build_of_announcement(visit: Visit, announcement: Values) -> Values | None:
    return await _build(visit, {"announcement": announcement["id"]})


OF_ANNOUNCEMENT = Section("impacts", "What it affects", (LIST_IMPACTS,), "impacts.html", _build_of_announcement)
