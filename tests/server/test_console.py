"""The console over HTTP: who is let in, by which key, and what its addresses take."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from refdesk.app import Desk
from refdesk.server.console.tickets import Tickets
from refdesk.server.http import build_app
from tests.server.conftest import URL, open_http
from tests.server.echo import READER
from tests.server.test_keys import CANARY, make_key

SEARCH = "/?q=anything"
READ = "/console/show/echo/guide"


@pytest.fixture
async def locked(desk: Desk) -> AsyncGenerator[httpx2.AsyncClient]:
    """A browser, as far as cookies go, at a server that nobody may call without a key."""
    async with open_http(desk, None) as client:
        yield client


@pytest.fixture
async def opened(desk: Desk) -> AsyncGenerator[httpx2.AsyncClient]:
    async with open_http(desk, READER) as client:
        yield client


async def sign_in(client: httpx2.AsyncClient, key: str, then: str = "/") -> httpx2.Response:
    return await client.post("/console/sign-in", params={"next": then}, data={"key": key})


async def test_without_a_key_there_is_a_start_page_and_a_way_to_sign_in(locked: httpx2.AsyncClient) -> None:
    start = await locked.get("/")
    assert (start.status_code, "/console/sign-in" in start.text) == (200, True)
    for address in (SEARCH, READ):
        led = await locked.get(address)
        assert led.status_code == 303
        place = urlsplit(led.headers["location"])
        assert (place.path, parse_qs(place.query)["next"]) == ("/console/sign-in", [address])
        assert led.content == b""


async def test_a_key_opens_what_its_agent_may_see_and_no_script_can_read_it(
    desk: Desk, locked: httpx2.AsyncClient
) -> None:
    key = await make_key(desk)
    back = await sign_in(locked, key, READ)
    assert (back.status_code, back.headers["location"]) == (303, READ)
    cookie = back.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/"))
    shown = await locked.get(READ)
    assert (shown.status_code, "guide" in shown.text, key in shown.text) == (200, True, False)
    assert "Sign out ann" in shown.text
    out = await locked.post("/console/sign-out")
    assert out.headers["location"] == "/"
    assert (await locked.get(READ)).status_code == 303


async def test_a_key_that_opens_nothing_is_forgotten_and_said_so(locked: httpx2.AsyncClient) -> None:
    assert (await sign_in(locked, CANARY)).status_code == 303
    led = await locked.get(READ)
    assert led.status_code == 303
    assert "Max-Age=0" in led.headers["set-cookie"]
    again = await locked.get(led.headers["location"])
    assert "opens nothing here" in again.text
    assert CANARY not in again.text
    assert (await sign_in(locked, "two words")).status_code == 400


async def test_the_cookie_counts_on_the_consoles_addresses_alone(desk: Desk, locked: httpx2.AsyncClient) -> None:
    await sign_in(locked, await make_key(desk))
    assert (await locked.get(READ)).status_code == 200
    assert (await locked.post("/echo/search", json={"query": "hello"})).status_code == 401
    assert (await locked.get("/metrics")).status_code == 401


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null"])
async def test_pages_of_other_origins_sign_nobody_in_or_out(locked: httpx2.AsyncClient, origin: str) -> None:
    for address in ("/console/sign-in", "/console/sign-out"):
        refused = await locked.post(address, data={"key": CANARY}, headers={"origin": origin})
        assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)


@pytest.mark.parametrize(
    "address",
    ["https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example", "/docs", "/console\\..", ""],
)
async def test_signing_in_leads_nowhere_else(desk: Desk, locked: httpx2.AsyncClient, address: str) -> None:
    back = await sign_in(locked, await make_key(desk), address)
    assert back.headers["location"] == "/"


LINKED = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
"""What a browser says with a link of another site, where it sends no cookie."""


@pytest.mark.parametrize("address", ["/", SEARCH, READ])
async def test_a_link_of_another_site_opens_for_who_is_signed_in_and_signs_nobody_out(
    locked: httpx2.AsyncClient, address: str
) -> None:
    arrived = await locked.get(address, headers=LINKED)
    assert (arrived.status_code, arrived.headers["refresh"]) == (200, f"0; url={address}")
    assert f'<a href="{address}">' in arrived.text
    assert "set-cookie" not in arrived.headers
    assert "set-cookie" not in (await locked.get(READ)).headers, "what a browser did not send was not refused"


async def test_a_stream_of_nobody_ends_and_is_not_led_to_a_page(locked: httpx2.AsyncClient) -> None:
    ended = await locked.get("/console/events")
    assert (ended.status_code, ended.content, "location" in ended.headers) == (204, b"", False)


async def test_no_link_signs_anybody_out(desk: Desk, locked: httpx2.AsyncClient) -> None:
    await sign_in(locked, await make_key(desk))
    for address in ("/console/sign-in?again=1", "/console/sign-in/arrived?next=/console/sign-in?again=1"):
        shown = await locked.get(address, headers=LINKED)
        assert (shown.status_code, "set-cookie" in shown.headers) == (200, False)
    assert (await locked.get(READ)).status_code == 200


async def test_only_what_reads_has_a_page_and_errors_are_pages(opened: httpx2.AsyncClient) -> None:
    assert (await opened.get("/console/read/nothing")).status_code == 404
    wrong = await opened.get("/console/read/get_echo?id=a&nothing=x")
    assert (wrong.status_code, "This cannot be shown" in wrong.text) == (400, True)
    for toolset, resource in (("echo", "nothing"), ("nothing", "x")):
        assert (await opened.get(f"/console/show/{toolset}/{resource}")).status_code == 404


async def test_every_page_keeps_its_policy(opened: httpx2.AsyncClient) -> None:
    for address in ("/", SEARCH, READ, "/console/read/get_echo?id=a", "/console/sign-in"):
        page = await opened.get(address)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["cache-control"] == "no-store"
        assert URL not in policy


async def test_who_follows_a_link_to_nowhere_gets_a_page_and_programs_get_json(opened: httpx2.AsyncClient) -> None:
    page = await opened.get("/nowhere", headers={"accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, "<h1>This cannot be shown</h1>" in page.text) == (404, True)
    assert "No such address" in page.text
    for accept in ("*/*", "application/json"):
        assert (await opened.get("/nowhere", headers={"accept": accept})).json()["error"]["code"] == "NOT_FOUND"


class BrokenTickets(Tickets):
    """Fails like a fault in the console itself."""

    def redeem(self, ticket: str) -> str | None:
        raise RuntimeError(ticket)


async def test_a_fault_of_the_console_is_a_page_that_tells_nothing_but_a_number(desk: Desk) -> None:
    transport = httpx2.ASGITransport(build_app(desk, READER, tickets=BrokenTickets()), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=URL) as client:
        broken = await client.get("/console/sign-in", params={"ticket": CANARY})
    assert (broken.status_code, "<h1>This cannot be shown</h1>" in broken.text) == (500, True)
    assert ("see incident" in broken.text, CANARY in broken.text) == (True, False)
