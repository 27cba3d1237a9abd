"""The sections of a skill's page: how following it went, what supports it, and what its versions changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk.server.console import differences, drawings, impacts
from refdesk.server.console.arranging import strip_head
from refdesk.server.console.sections import Section, Values

if TYPE_CHECKING:
    from refdesk.server.console.visits import Visit

GET_SKILL = "get_skill"
LIST_OUTCOMES, GET_HISTORY, GET_VERSION = "list_outcomes", "get_skill_history", "get_skill_version"
MOST_REPORTS = 200


async def _build_outcomes(visit: Visit, skill: Values) -> Values | None:
    found = await visit.ask(LIST_OUTCOMES, {"skill_id": skill["skill_id"], "limit": MOST_REPORTS})
    outcomes: list[Values] = found["outcomes"]
    if not outcomes:
        return {"outcomes": (), "total": 0, "plot": None, "id": skill["skill_id"]}
    standing = [each for each in outcomes if "withdrawn_at" not in each]
    return {
        "outcomes": outcomes[::-1],
        "total": found["total"],
        "plot": drawings.draw_rates([(each["version"], each["outcome"]) for each in standing]) if standing else None,
        "first": standing[0]["at"] if standing else "",
        "last": standing[-1]["at"] if standing else "",
        "id": skill["skill_id"],
    }


async def _build_evidence(visit: Visit, skill: Values) -> Values | None:
    found = await visit.ask(GET_HISTORY, {"skill_id": skill["skill_id"]})
    return {**found, "compared": await _compare(visit, skill, found), "id": skill["skill_id"]}


async def _compare(visit: Visit, skill: Values, history: Values) -> Values | None:
    """Return how a version, the present or the chosen one, differs from the one before."""
    versions = sorted(each["version"] for each in history["versions"])
    chosen = visit.query.get("compare", "")
    newer = int(chosen) if chosen.isdecimal() and int(chosen) in versions else versions[-1]
    older = next((each for each in reversed(versions) if each < newer), None)
    if older is None:
        return None
    asked: list[dict[str, Any]] = [{"skill_id": skill["skill_id"], "version": number} for number in (older, newer)]
    before, after = [await visit.ask(GET_VERSION, each) for each in asked]
    pieces = differences.compare(strip_head(before["resolution"]), strip_head(after["resolution"]))
    return {"older": older, "newer": newer, "pieces": pieces}


SECTIONS = (
    impacts.make_section("skills", "skill_id"),
    Section("outcomes", "How it went", (LIST_OUTCOMES,), "outcomes.html", _build_outcomes),
    Section("evidence", "Evidence and versions", (GET_HISTORY, GET_VERSION), "evidence.html", _build_evidence),
)
