"""The page of an announcement: its stages, and how it changed since it was first seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from refdesk.server.console import differences, impacts
from refdesk.server.console.sections import Section, Values

if TYPE_CHECKING:
    from refdesk.server.console.visits import Visit

SEARCH, GET_HISTORY = "search_azure_updates", "get_azure_update_history"
TEXT = "description"
"""The field whose versions are compared word by word."""


def find_update(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the one announcement of an answer; `None` if there are several or none."""
    results = answer.get("results", ())
    return results[0] if len(results) == 1 else None


async def _build_history(visit: Visit, update: Values) -> Values | None:
    found = await visit.ask(GET_HISTORY, {"id": update["id"]})
    if found["total"] < 2:
        return None
    return {"versions": [_show(each) for each in found["versions"]], "omitted": found["total"] - len(found["versions"])}


def _show(version: Values) -> Values:
    fields: list[Values] = version.get("fields", [])
    texts = [each for each in fields if each["field"] == TEXT]
    pieces = differences.compare(texts[0].get("before") or "", texts[0].get("after") or "") if texts else []
    return {**version, "fields": [each for each in fields if each["field"] != TEXT], "pieces": pieces}


SECTIONS = (
    impacts.OF_ANNOUNCEMENT,
    Section("history", "How it changed", (GET_HISTORY,), "changes.html", _build_history),
)
