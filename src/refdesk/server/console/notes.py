"""The sections of an entry's page: the chain it belongs to, what changed along it, and its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.server.console import differences, drawings, impacts
from refdesk.server.console.addresses import find_address
from refdesk.server.console.sections import Section, Values

if TYPE_CHECKING:
    from refdesk.server.console.visits import Visit

GET_KNOWLEDGE, LIST_CASES = "get_knowledge", "list_cases"


async def _build_history(visit: Visit, note: Values) -> Values | None:
    """Return the chain of an entry, and how the entry differs from another in it: the replaced or the chosen one."""
    chain: list[Values] = note["chain"][::-1]
    if len(chain) < 2:
        return None
    replaced = [each["id"] for each in chain if each.get("supersededBy") == note["id"]]
    chosen = visit.query.get("compare") or next(iter(replaced), None)
    rail = drawings.draw_rail([each["id"] for each in chain], {each["id"]: each.get("supersededBy") for each in chain})
    compared = await compare(visit, note, chosen) if chosen is not None and chosen != note["id"] else None
    rows = list(zip(chain, rail.dots, strict=True))
    return {"rows": rows, "rail": rail, "compared": compared, "older": note.get("nextChainOffset"), "id": note["id"]}


async def compare(visit: Visit, note: Values, id: str) -> Values:
    """Return the older and the newer of an entry and the one with the given id, and their differences."""
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
    links = [{**link, "address": find_address(link["toolset"], link["id"])} for link in note["links"]]
    if not links:
        return None
    return {"links": links[::-1], "star": drawings.draw_star(links), "omitted": note.get("omittedLinks")}


async def _build_cases(visit: Visit, note: Values) -> Values | None:
    """Return the entries that contradict this one: first open cases, then those in which both hold."""
    cases: list[Values] = []
    for standing in ("open", "both_hold"):
        cases += (await visit.ask(LIST_CASES, {"id": note["id"], "standing": standing}))["cases"]
    return {"cases": [_show_case(case, note["id"]) for case in cases]} if cases else None


def _show_case(case: Values, id: str) -> Values:
    here, against = (case["one"], case["other"]) if case["one"]["id"] == id else (case["other"], case["one"])
    return {
        **case,
        "here": here,
        "against": against,
        "against_at": find_address("knowledge", against["id"]),
        "settling": {"oneId": id, "otherId": against["id"]},
    }


SECTIONS = (
    impacts.make_section("knowledge", "id"),
    Section("cases", "What contradicts it", (LIST_CASES,), "cases.html", _build_cases),
    Section("history", "History", (GET_KNOWLEDGE,), "history.html", _build_history),
    Section("links", "Links", (), "links.html", _build_links),
)
