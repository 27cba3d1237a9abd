"""The start page: what is on the desk, what happened last, and how clients reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk import errors
from refdesk.server.console import impacts, watches
from refdesk.server.console.overseeing import STATUS_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import Response

    from refdesk.server.console.visits import Visit

MOST_NOTES, MOST_IMPACTS = 6, 3


async def show_start(visit: Visit) -> Response:
    """Show the start page; even those who are not signed in see what anybody may see."""
    site = visit.site
    health, base = await site.get_health(visit.request), site.find_base(visit.request)
    return visit.show(
        "start.html",
        {
            "health": health,
            "status": STATUS_WORDS[health.status],
            "toolsets": [(toolset, health.toolsets.get(toolset.name)) for toolset in site.desk.toolsets],
            "live": site.desk.live,
            "addresses": _list_addresses(base, sse=site.sse),
            "impacts": await _list_impacts(visit) if health.status != "failing" else (),
            "unread": await _count_unread(visit) if health.status != "failing" else "",
            "notes": await _list_notes(visit) if health.status != "failing" else (),
            "url": base,
        },
    )


def _list_addresses(base: str, *, sse: bool) -> list[tuple[str, str, str]]:
    return [
        ("MCP", f"{base}/mcp", "streamable HTTP, for any MCP client"),
        *([("MCP (SSE)", f"{base}/sse", "for clients that know nothing newer")] if sse else []),
        ("REST", f"{base}/docs", "every operation, with a form to try it"),
        ("OpenAPI", f"{base}/openapi.json", "the same for machines"),
        ("Health", f"{base}/health", "200 while it works, 503 when not"),
    ]


async def _list_notes(visit: Visit) -> Sequence[Mapping[str, object]]:
    """Return what was written last; empty if the visitor may not see it."""
    if not visit.may("list_knowledge"):
        return ()
    try:
        return (await visit.ask("list_knowledge", {"limit": MOST_NOTES}))["entries"]
    except errors.RefdeskError:
        return ()


async def _count_unread(visit: Visit) -> str:
    """Return how much news of watches is unread; empty if there is none or the visitor may not see it."""
    if not visit.may(watches.LIST_NEWS):
        return ""
    try:
        return await watches.count_unread(visit)
    except errors.RefdeskError:
        return ""


async def _list_impacts(visit: Visit) -> Sequence[Mapping[str, object]]:
    """Return what announcements change soonest; empty if the visitor may not see it."""
    if not visit.may(impacts.LIST_IMPACTS):
        return ()
    try:
        return await impacts.list_impacts(visit, {"limit": MOST_IMPACTS})
    except errors.RefdeskError:
        return ()
