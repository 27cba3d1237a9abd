"""Every operation over every transport, with every form of id and credential: nothing tells what another org has.

Each call is made twice, for a thing that another org has and for one that nobody has: both must be answered alike.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from refdesk.core.clock import FixedClock
from refdesk.protocols import Store
from tests.core.fakes import NOW
from tests.reliability.counting import count
from tests.reliability.faults import WithoutTenants
from tests.reliability.worlds import OTHERS, OWN, World, list_calls, list_word_calls, open_file, open_world
from tests.server.conftest import open_http
from tests.server.test_eras import MODERN_META

SOAK = os.environ.get("REFDESK_SOAK") == "1"
FORMS: Mapping[str, Callable[[str], str]] = {
    "as it is": lambda id: id,
    "in capitals": str.upper,
    "in braces": lambda id: f"{{{id}}}",
    "without hyphens": lambda id: id.replace("-", ""),
    "as a name": lambda id: f"urn:uuid:{id}",
    "with a blank": lambda id: f"{id} ",
    "cut": lambda id: id[:-1],
    "in a path": lambda id: f"../{OTHERS}/{id}",
}
AS_IT_IS = {"as it is": FORMS["as it is"]}
WORDS = len(list_word_calls())
ADDRESSES = ("knowledge://{}", "skill://{}")
LEAST = 20_000 if SOAK else 600

Headers = dict[str, str]


async def make_credentials(world: World) -> dict[str, Headers]:
    """Return headers of callers who must not see the others' things, by what is wrong with them."""
    ring = world.base.keys
    past = replace(ring, clock=FixedClock(NOW - timedelta(days=900)))
    _, expired = await past.create(org=OTHERS, agent="ann", scopes=["knowledge:read"], expires_at=NOW - timedelta(800))
    revoked, secret = await ring.create(org=OTHERS, agent="ann", scopes=["knowledge:read", "skills:read"])
    await ring.revoke(revoked.id)
    own, lacking = await world.make_key(OWN, "zoe"), await world.make_key(OTHERS, "ann", "articles:read")
    reader = await world.make_key(OWN, "yan", "knowledge:read", "skills:read", "updates:read")
    sent = {
        "an unknown key": f"Bearer refdesk_{'x' * 43}",
        "an expired key": f"Bearer {expired}",
        "a revoked key": f"Bearer {secret}",
        "a key's public id": f"Bearer {revoked.id}",
        "another scheme": f"Basic {own}",
        "an empty key": "Bearer ",
        "a token of nobody": "Bearer eyJhbGciOiJub25lIn0.e30.",
        "another org's key": f"Bearer {own}",
        "another org's reader": f"Bearer {reader}",
        "the org's key without the scope": f"Bearer {lacking}",
    }
    found: dict[str, Headers] = {name: {"authorization": text} for name, text in sent.items()}
    return {
        "none": {},
        **found,
        "another org's key for this org": {"authorization": f"Bearer {own}", "refdesk-org": OTHERS},
    }


def spread(
    world: World, ids: Mapping[str, str], form: Callable[[str], str], step: int
) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls with these ids, in this form: one in so many."""
    shown = {kind: form(id) for kind, id in ids.items()}
    calls = list_calls(shown, world.own)[:-WORDS]
    # A search by an id is another question for another id, and an import makes one's own: two worlds hold both.
    others = [call for call in calls if "query" not in call[1] and not call[0].startswith("import_")]
    wanted = [call for call in others if call[0] in world.operations]
    return wanted[::step]


async def ask_rest(world: World, client: httpx2.AsyncClient, name: str, arguments: dict[str, Any]) -> str:
    route, rest = world.operations[name].route, dict(arguments)
    path = re.sub(
        r"\{(\w+)\}", lambda match: httpx2.URL("/").join(str(rest.pop(match[1]))).path.lstrip("/"), route.path
    )
    answer = await client.request(route.method, path, json=rest if route.method == "POST" else None)
    return f"{answer.status_code} {answer.text}"


async def ask_mcp(_: World, client: httpx2.AsyncClient, name: str, arguments: dict[str, Any]) -> str:
    return await post(client, "tools/call", name, {"name": name, "arguments": arguments})


async def post(client: httpx2.AsyncClient, method: str, name: str, params: dict[str, Any]) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": MODERN_META}}
    headers = {"mcp-method": method, "mcp-name": name, "mcp-protocol-version": "2026-07-28"}
    accept = {"accept": "application/json, text/event-stream"}
    answer = await client.post("/mcp", json=message, headers=headers | accept)
    return f"{answer.status_code} {answer.text}"


FACES: Mapping[str, Callable[[World, httpx2.AsyncClient, str, dict[str, Any]], Awaitable[str]]] = {
    "rest": ask_rest,
    "mcp": ask_mcp,
}


async def compare(world: World, headers: Headers, form: Callable[[str], str], step: int) -> list[str]:
    """Return both answers to each pair of calls, a line each, as they are once their ids are taken out."""
    there = world.ids
    nothing = {kind: f"{id[:-4]}{'0' * 3}{number}" for number, (kind, id) in enumerate(there.items())}
    answers: list[list[str]] = [[], []]
    # So many wrong keys from one address would be refused for their number.
    async with open_http(world.desk, None, is_everywhere=True) as client:
        client.headers |= headers
        for ids, said in zip((there, nothing), answers, strict=True):
            for face, ask in FACES.items():
                for name, arguments in spread(world, ids, form, step):
                    text = await ask(world, client, name, arguments)
                    said.append(f"{face} {name}: {take_out(world, ids, form, text)}")
            for address in ADDRESSES:
                for id in ids.values():
                    text = await post(client, "resources/read", address, {"uri": address.format(form(id))})
                    said.append(f"mcp {address}: {take_out(world, ids, form, text)}")
    return [f"{one}\n{other}" for one, other in zip(*answers, strict=True)]


def take_out(world: World, ids: Mapping[str, str], form: Callable[[str], str], text: str) -> str:
    for kind, id in ids.items():
        for shown in (form(id), form(id).lower(), id):
            text = text.replace(shown, f"<{kind}>")
    return world.normalise(text)


async def find_differences(
    folder: Path,
    wrap: Callable[[Store], Store] = lambda store: store,
    *,
    forms: Mapping[str, Callable[[str], str]] = FORMS,
    step: int = 1,
    only: Sequence[str] = (),
    open_own: Callable[[Path], AbstractAsyncContextManager[Store]] = open_file,
) -> tuple[int, dict[str, list[str]]]:
    """Return how many calls were made, and the pairs that differ, by credential and form."""
    calls, different = 0, dict[str, list[str]]()
    async with open_world(folder, wrap=wrap, open_own=open_own) as world:
        for credential, headers in (await make_credentials(world)).items():
            if only and credential not in only:
                continue
            for name, form in forms.items():
                pairs = await compare(world, headers, form, step)
                calls += 2 * len(pairs)
                differing = [pair for pair in pairs if len(set(pair.split("\n"))) > 1]
                different |= {f"{credential}, {name}": differing} if differing else {}
    return calls, different


@pytest.mark.timeout(3600 if SOAK else 120)
async def test_what_others_have_is_answered_like_what_there_is_not(tmp_path: Path) -> None:
    part: dict[str, Any] = {} if SOAK else {"forms": AS_IT_IS, "step": 4}
    calls, different = await find_differences(tmp_path, **part)
    assert different == {}
    assert calls >= LEAST, calls
    count("tenant calls", calls)


@pytest.mark.timeout(3600 if SOAK else 120)
async def test_the_matrix_catches_a_store_that_looks_ids_up_whatever_the_org(tmp_path: Path) -> None:
    only = ("none", "another org's key")
    _, different = await find_differences(tmp_path, WithoutTenants, forms=AS_IT_IS, only=only)
    assert [*different] == ["another org's key, as it is"]
