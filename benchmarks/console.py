"""What a page of the console costs the server, beside the operation that it shows, in one run.

    python -m benchmarks.console [--notes 1000 100000] [--rounds 40] [--json]

One desk in this process holds so many invented notes. In turns, a page is asked for over the whole HTTP application,
and the operations that it shows are asked for over REST; both in CPU time of this process, medians of so many rounds.

Exit status 1 when a page costs more than `MOST_COST` times what it shows.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import anyio
import httpx2
from starlette.applications import Starlette

from benchmarks.anatomy import make_notes
from benchmarks.rest import fill
from refdesk.app import open_desk
from refdesk.discovery import ADMIN_SCOPE
from refdesk.factories.toolsets import load_toolsets
from refdesk.server import http
from refdesk.server.principals import local_principal
from refdesk.settings import compose
from refdesk.stores.sqlite import open_store

MOST_COST = 2.0
URL = "http://127.0.0.1:8350"
PAGE, CHOICES, NOTES = 25, 12, 6
"""Rows of a list, values of a filter, and newest notes that a page asks for."""

HEALTH = "/health"
WORK = (HEALTH, "/syncs", "/embeddings", "/usage")

Ask = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians in milliseconds of CPU time."""

    page: float
    shown: float

    @property
    def ratio(self) -> float:
        """How many times what it shows a page costs."""
        return self.page / self.shown


async def measure(count: int, rounds: int) -> Mapping[str, Cost]:
    """Return what each page costs over so many notes."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "refdesk.sqlite3"
        async with open_store(path) as store:
            await fill(store, make_notes(count))
        # The first request makes the index of a store that was just filled.
        chosen = {"home": name, "store": f"sqlite:///{path}", "embedder": "hashing", "request_timeout_seconds": 3600}
        settings = compose().model_validate(chosen)
        toolsets = load_toolsets(("knowledge", "skills"))
        async with open_desk(settings, toolsets, in_background=False) as desk:
            caller = local_principal(desk.settings, desk.toolsets, "http")
            # Who may see what is behind it, too, as somebody with such a key may.
            gate = http.build_app(desk, replace(caller, scopes=caller.scopes | {ADMIN_SCOPE}))
            assert isinstance(gate.app, Starlette)
            transport = httpx2.ASGITransport(app=gate)
            async with (
                gate.app.router.lifespan_context(gate.app),
                httpx2.AsyncClient(transport=transport, base_url=URL) as client,
            ):
                costs: dict[str, Cost] = {}
                for page, pair in (await list_pairs(client)).items():
                    costs[page] = await compare(*pair, rounds)
                    print(*tell(count, {page: costs[page]}), file=sys.stderr, flush=True)
                return costs


async def list_pairs(client: httpx2.AsyncClient) -> Mapping[str, tuple[Ask, Ask]]:
    """Return for each page what asks for it, and what asks for the operations that it shows."""
    [first, *_] = (await post(client, "/knowledge/list", {"limit": 1}))["entries"]
    words = first["title"].split()[:3]
    choices = {"limit": CHOICES}

    async def browse() -> None:
        await post(client, "/knowledge/list", {"limit": PAGE})
        await get(client, "/knowledge/tags", choices)
        await get(client, "/knowledge/authors", choices)

    everything = {"query": " ".join(words), "limit": 20}
    return {
        "search": (
            lambda: get(client, "/", {"q": " ".join(words)}),
            lambda: post(client, "/everything/search", everything),
        ),
        "entry": (
            lambda: get(client, "/console/read/get_knowledge", {"id": first["id"]}),
            lambda: get(client, f"/knowledge/{first['id']}"),
        ),
        "browse": (lambda: get(client, "/console/browse/knowledge"), browse),
        "edit": (
            lambda: get(client, "/console/do/edit_knowledge", {"id": first["id"]}),
            lambda: get(client, f"/knowledge/{first['id']}"),
        ),
        "start": (lambda: get(client, "/"), lambda: show_all(client, ("/watches/news", HEALTH), {"limit": NOTES})),
        "work": (lambda: get(client, "/console/desk"), lambda: show_all(client, WORK)),
        "keys": (lambda: get(client, "/console/desk/keys"), lambda: get(client, "/keys")),
        "audit": (lambda: get(client, "/console/desk/audit"), lambda: get(client, "/audit")),
        "gaps": (lambda: get(client, "/console/gaps"), lambda: get(client, "/gaps")),
        "watches": (lambda: get(client, "/console/watches"), lambda: show_all(client, ("/watches", "/watches/news"))),
    }


async def show_all(client: httpx2.AsyncClient, paths: Sequence[str], notes: Mapping[str, object] | None = None) -> None:
    """Ask for the answers at these addresses, and for the newest notes where some are wanted."""
    for path in paths:
        await get(client, path)
    if notes is not None:
        await post(client, "/knowledge/list", notes)


async def get(client: httpx2.AsyncClient, path: str, query: Mapping[str, Any] | None = None) -> object:
    """Return what is answered at an address."""
    answer = await client.get(path, params=dict(query or {}))
    # How healthy a server is on a machine that is busy is not asked here.
    assert answer.status_code == 200 or path == HEALTH, answer.text[:500]
    return answer


async def post(client: httpx2.AsyncClient, path: str, body: Mapping[str, object]) -> dict[str, Any]:
    """Return what an operation answers."""
    answer = await client.post(path, json=dict(body))
    assert answer.status_code == 200, answer.text[:500]
    return answer.json()


async def compare(page: Ask, shown: Ask, rounds: int) -> Cost:
    """Return the cost of a page and of what it shows, asked for in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 3):
        for ask, taken in zip((page, shown), times, strict=True):
            start = process_time()
            await ask()
            if number >= 3:
                taken.append((process_time() - start) * 1000)
    return Cost(median(times[0]), median(times[1]))


def tell(count: int, costs: Mapping[str, Cost]) -> Sequence[str]:
    """Return the figures for people."""
    return [
        f"{count:>7} notes  {page:8} {cost.page:8.2f} ms  shown {cost.shown:8.2f} ms  {cost.ratio:5.2f} ×"
        for page, cost in costs.items()
    ]


def main() -> None:
    """Measure, print, and fail when a page costs too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    worst = 0.0
    for count in options.notes:
        costs = anyio.run(measure, count, options.rounds)
        worst = max(worst, *(cost.ratio for cost in costs.values()))
        shown = {page: {"page": cost.page, "shown": cost.shown, "ratio": cost.ratio} for page, cost in costs.items()}
        print(json.dumps({"notes": count, **shown}) if options.json else "\n".join(tell(count, costs)), flush=True)
    sys.exit(worst > MOST_COST)


if __name__ == "__main__":
    main()
