"""The page of watches: the news about what somebody watches, and the watches themselves."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from refdesk import errors
from refdesk.server.console.addresses import find_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response

    from refdesk.server.console.sections import Values
    from refdesk.server.console.visits import Visit

LIST_WATCHES, LIST_NEWS = "list_watches", "list_news"
MOST_WATCHES, MOST_NEWS = 200, 50
KEPT_SECONDS = 400 * 86_400
"""How long a browser remembers what was read: the longest that it keeps any cookie."""

KINDS = {"search": "question", "product": "product", "entry": "entry", "skill": "skill"}
TOLD = {
    "new": "came",
    "changed": "changed",
    "withdrawn": "was withdrawn",
    "restored": "holds again",
    "superseded": "was superseded",
    "expired": "expired",
    "merged": "was merged into another",
    "unmerged": "is one of its own again",
    "dated": "has other dates",
    "impacted": "relies on what an announcement changes",
    "contradicted": "is contradicted",
    "outcome": "was reported on",
}
"""The words for what happened, by its name in the news."""


async def show_watches(visit: Visit) -> Response:
    """Show the visitor's watches and what they have reported, which then counts as read.

    Raises:
        NotFoundError: They are not served here.
    """
    if visit.site.find_operation(LIST_WATCHES) is None:
        raise errors.NotFoundError("This server keeps no watches.")
    chosen = visit.query.get("watch", "")
    kept = await visit.ask(LIST_WATCHES, {"limit": MOST_WATCHES})
    found = await visit.ask(LIST_NEWS, {"watch": chosen, "limit": MOST_NEWS} if chosen else {"limit": MOST_NEWS})
    read = read_mark(visit)
    response = visit.show(
        "watches.html",
        {
            "news": [_show_news(each, read) for each in found["news"]][::-1],
            "unread": await count_unread(visit),
            "watches": [_show_watch(each) for each in kept["watches"]],
            "most": kept.get("most"),
            "chosen_watch": chosen,
        },
    )
    if not chosen:
        response.set_cookie(
            _name_mark(visit),
            str(found["cursor"]),
            max_age=KEPT_SECONDS,
            httponly=True,
            samesite="strict",
            secure=visit.request.url.scheme == "https",
        )
    return response


async def count_unread(visit: Visit) -> str:
    """Return how many pieces of news this browser has not shown yet; empty for none."""
    found = await visit.ask(LIST_NEWS, {"after": read_mark(visit), "limit": MOST_NEWS})
    count = len(found["news"])
    return f"{count} or more" if found["hasMore"] else str(count) if count else ""


def read_mark(visit: Visit) -> int:
    """Return the number of the newest news that this browser has shown; 0 for none."""
    kept = visit.request.cookies.get(_name_mark(visit), "")
    return int(kept) if kept.isdecimal() and len(kept) < 16 else 0


def _name_mark(visit: Visit) -> str:
    """Return the name of the cookie, which differs between agents that use the same browser."""
    who = visit.caller.principal
    return f"refdesk_read_{blake2b(f'{who.org}/{who.agent}'.encode(), digest_size=8).hexdigest()}"


def _show_news(news: Values, read: int) -> Values:
    other = news.get("other", "")
    return {
        **news,
        "told": TOLD[news["what"]],
        "is_new": news["number"] > read,
        "address": find_address(news["toolset"], news["id"]) if "title" in news else "",
        "other_at": find_address(_name_other(news), other) if other else "",
    }


def _name_other(news: Values) -> str:
    """Return which toolset keeps the other thing that news name."""
    return "azure-updates" if news["what"] == "impacted" else news["toolset"]


def _show_watch(watch: Values) -> Values:
    toolsets: Sequence[str] = watch["toolsets"]
    is_thing = watch["kind"] in ("entry", "skill")
    return {
        **watch,
        "name": watch.get("label") or watch["subject"],
        "what": KINDS[watch["kind"]],
        "address": find_address(toolsets[0], watch["subject"]) if is_thing else "",
        "told_at": f"/console/watches?{urlencode({'watch': watch['id']})}",
    }
