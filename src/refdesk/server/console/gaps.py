"""The page of gaps: what was asked without anything answering it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from refdesk import errors
from refdesk.server.console.addresses import find_address

if TYPE_CHECKING:
    from starlette.responses import Response

    from refdesk.server.console.sections import Values
    from refdesk.server.console.visits import Visit

LIST_GAPS = "list_gaps"
PAGE = 25
STATES = {"open": "Open", "answered": "Answered", "dismissed": "Dismissed"}


async def show_gaps(visit: Visit) -> Response:
    """Show a page of gaps in one state.

    Raises:
        NotFoundError: They are not served here.
    """
    if visit.site.find_operation(LIST_GAPS) is None:
        raise errors.NotFoundError("This server keeps no gaps.")
    query = visit.request.query_params
    state = query.get("status", "open")
    state = state if state in STATES else "open"
    number = query.get("page", "1")
    page = int(number) if number.isdecimal() and int(number[:8]) >= 1 else 1
    cursor = query.get("cursor", "")
    begin = {"cursor": cursor} if cursor else {"offset": (page - 1) * PAGE}
    found = await visit.ask(LIST_GAPS, {"status": state, "limit": PAGE, **begin})
    further = urlencode({"page": page + 1, "cursor": found.get("nextCursor", "")})
    addresses = {name: f"/console/gaps?{urlencode({'status': name})}" for name in STATES}
    return visit.show(
        "gaps.html",
        {
            "gaps": [_show(gap) for gap in found["gaps"]],
            "dropped": found["dropped"],
            "notice": found.get("notice", ""),
            "state": state,
            "states": [(name, words, addresses[name]) for name, words in STATES.items()],
            "before": f"{addresses[state]}&page={page - 1}" if page > 1 else "",
            "after": f"{addresses[state]}&{further}" if found["hasMore"] else "",
        },
    )


def _show(gap: Values) -> Values:
    named = {name: gap[name] for name in ("answer", "nearest") if name in gap}
    return {**gap, **{f"{name}_at": find_address(each["toolset"], each["id"]) for name, each in named.items()}}
