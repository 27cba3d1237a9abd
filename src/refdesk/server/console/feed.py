"""The page of a vendor's feed: how fresh it is, what is coming, what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk import errors
from refdesk.server.console import drawings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import Response

    from refdesk.server.console.visits import Visit

SEARCH = "search_azure_updates"
GUIDE, CHANGELOG, STATISTICS = (f"azure-updates://{name}" for name in ("guide", "changelog", "stats"))
RETIREMENT = "Retirement"
MOST_COMING, MOST_MONTHS, MOST_CHANGES = 100, 24, 8


async def show_feed(visit: Visit) -> Response:
    """Show the feed.

    Raises:
        NotFoundError: It is not served here.
    """
    if visit.site.find_operation(SEARCH) is None:
        raise errors.NotFoundError("This server has no feed.")
    statistics, coming = await visit.read(STATISTICS), await _find_coming(visit)
    return visit.show(
        "feed.html",
        {
            "statistics": statistics,
            "notes": (await visit.read(GUIDE)).get("notes", ()),
            "coming": coming,
            "line": drawings.draw_months(coming, f"{visit.site.clock.now():%Y-%m}", MOST_MONTHS),
            "months": statistics["months"][::-1],
            "most": max((each["updates"] for each in statistics["months"]), default=0) or 1,
            "runs": (await visit.read(CHANGELOG))["runs"],
            "most_changes": MOST_CHANGES,
        },
    )


async def _find_coming(visit: Visit) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return what is retired from this month on, by month, soonest first."""
    month = f"{visit.site.clock.now():%Y-%m}"
    asked = {
        "filters": {"availabilityRing": RETIREMENT, "dateFrom": f"{month}-01"},
        "limit": MOST_COMING,
        "includeDescription": False,
    }
    coming = dict[str, "list[Mapping[str, Any]]"]()
    for update in (await visit.ask(SEARCH, asked))["results"]:
        days = [each["date"] for each in update["availabilities"] if each["ring"] == RETIREMENT and each["date"]]
        for found in sorted({day[:7] for day in days if day[:7] >= month}):
            coming.setdefault(found, []).append(update)
    return dict(sorted(coming.items()))
