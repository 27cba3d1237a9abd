"""Pages for those who run the desk: its jobs and failures, what is kept, its keys, and what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk.server.console.addresses import find_address

if TYPE_CHECKING:
    from starlette.responses import Response

    from refdesk.server.console.visits import Visit

TABS = (
    ("Work", "/console/desk", "show_syncs"),
    ("Keys", "/console/desk/keys", "list_keys"),
    ("Audit", "/console/desk/audit", "show_audit"),
)
"""Name, address, and the operation that the visitor must be allowed to run."""

STATUS_WORDS = {
    "ok": "Everything works",
    "degraded": "Something needs attention",
    "failing": "It does not work",
}
MOST_KEYS = 500
MOST_RECORDS = 3
"""Most records that are shown for one act; a sync writes hundreds."""


async def show_work(visit: Visit) -> Response:
    """Show the health of the desk, what it is working on, what failed, and how much is kept."""
    health = await visit.site.get_health(visit.request)
    values: dict[str, Any] = {
        "health": health,
        "status": STATUS_WORDS[health.status],
        "can_see": visit.may("show_syncs"),
    }
    if visit.may("show_syncs"):
        values |= {
            "syncs": (await visit.ask("show_syncs"))["syncs"],
            "embeddings": await visit.ask("show_embeddings"),
            "usage": await visit.ask("show_usage"),
        }
    return _show(visit, "desk.html", values)


async def show_keys(visit: Visit) -> Response:
    """Show the keys of the org."""
    return _show(visit, "keys.html", await visit.ask("list_keys", {"limit": MOST_KEYS}))


async def show_audit(visit: Visit) -> Response:
    """Show what was done in the org, newest first."""
    chosen = {name: value for name in ("agent", "action", "record") if (value := visit.query.get(name, "").strip())}
    refused = {"refused": True} if visit.query.get("refused") else {}
    cursor = {"cursor": visit.query["cursor"]} if visit.query.get("cursor") else {}
    found = await visit.ask("show_audit", {**chosen, **refused, **cursor})
    shown = {"most_records": MOST_RECORDS, "address_of": find_address}
    return _show(
        visit, "audit.html", {**found, **shown, "filled": {**chosen, **({"refused": "yes"} if refused else {})}}
    )


def _show(visit: Visit, template: str, values: dict[str, Any]) -> Response:
    tabs = [(name, address) for name, address, operation in TABS if visit.may(operation)]
    return visit.show(template, {**values, "tabs": tabs})
