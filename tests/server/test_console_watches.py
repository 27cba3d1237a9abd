"""The console's page of watches: made, paused and removed there, and what they told, read once in each browser."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from refdesk.app import Desk
from refdesk.factories.watching import choose_watcher
from refdesk.model import Principal
from tests.server.conftest import open_http
from tests.server.test_console_forms import send
from tests.server.test_console_pages import read
from tests.server.test_on_record import open_own

SCOPES = frozenset({"knowledge:read", "knowledge:write", "skills:read", "updates:read"})
ANN, BOB = (Principal("acme", name, SCOPES) for name in ("ann", "bob"))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_own(tmp_path, embedder="hashing") as opened:
        yield opened


async def look(desk: Desk) -> int:
    return await choose_watcher(await desk.get_base()).run_once()


async def store(browser: httpx2.AsyncClient, title: str) -> str:
    return (await browser.post("/knowledge", json={"title": title, "body": "It is 12."})).json()["id"]


def find_form(page: str, act: str) -> dict[str, str]:
    """Return what the address of a form says, as a page leads to it."""
    found = re.search(rf'"(/console/do/{act}\?[^"]*)"', page)
    assert found is not None, page
    return dict(httpx2.URL(html.unescape(found[1])).params)


async def test_a_watch_is_made_where_one_reads_and_tells_until_it_is_paused_or_removed(desk: Desk) -> None:
    async with open_http(desk, ANN) as browser:
        note = await store(browser, "Gate <b>code</b>")
        asked = find_form(await read(browser, f"/console/read/get_knowledge?id={note}"), "create_watch")
        assert asked == {"kind": "entry", "subject": note, "label": "Gate <b>code</b>"}
        form = await read(browser, f"/console/do/create_watch?{httpx2.QueryParams(asked)}")
        assert f'value="{note}"' in form
        made = await send(browser, "create_watch", **asked, match="strong")
        page = await read(browser, made.headers["location"])
        assert "It is watched from now on." in page
        assert "Gate &lt;b&gt;code" in page
        await browser.post(f"/knowledge/{note}/edit", json={"body": "It is 13."})
        assert await look(desk) == 1
        page = await read(browser, "/console/watches")
        assert "was superseded" in page
        assert "1 unread" in page
        pausing = find_form(page, "pause_watch")
        paused = await send(browser, "pause_watch", **pausing)
        page = await read(browser, paused.headers["location"])
        assert "<strong>paused</strong>" in page
        assert find_form(page, "pause_watch") == {**pausing, "paused": "false"}
        removed = await send(browser, "delete_watch", **find_form(page, "delete_watch"))
        page = await read(browser, removed.headers["location"])
        assert "The watch is removed." in page
        assert "Nothing yet. Watch a question" in page
        assert "was superseded" in page


async def test_a_search_is_watched_with_what_narrows_it(desk: Desk) -> None:
    async with open_http(desk, ANN) as browser:
        asked = find_form(await read(browser, "/?q=gate+code&in=knowledge"), "create_watch")
        assert asked == {"kind": "search", "subject": "gate code", "toolsets": "knowledge"}
        await send(browser, "create_watch", **asked, match="partial")
        [made] = (await browser.get("/watches")).json()["watches"]
        assert (made["subject"], made["toolsets"], made["match"]) == ("gate code", ["knowledge"], "partial")


async def test_what_a_browser_has_shown_is_read_there_and_not_in_another_or_for_another_agent(desk: Desk) -> None:
    async with open_http(desk, ANN) as browser, open_http(desk, ANN) as other, open_http(desk, BOB) as bob:
        for each in (browser, bob):
            await send(each, "create_watch", kind="search", subject="gate code", match="strong")
        for number in range(3):
            await store(bob, f"Gate code {number}")
        assert await look(desk) == 6
        assert "3 unread" in await read(browser, "/")
        page = await read(browser, "/console/watches")
        assert ("3 unread" in page, page.count("<strong>unread</strong>")) == (True, 3)
        assert "unread" not in await read(browser, "/")
        assert "unread" not in await read(browser, "/console/watches")
        await store(bob, "Gate code 3")
        await look(desk)
        assert "1 unread" in await read(browser, "/")
        assert "4 unread" in await read(other, "/console/watches")
        bob.cookies.update(browser.cookies)
        assert "4 unread" in await read(bob, "/")


async def test_what_one_watch_told_is_shown_alone_and_stays_unread(desk: Desk) -> None:
    async with open_http(desk, ANN) as browser:
        for subject in ("gate code", "lift schedule"):
            await send(browser, "create_watch", kind="search", subject=subject, match="strong")
        for title in ("Gate code", "Lift schedule"):
            await store(browser, title)
        assert await look(desk) == 2
        [gate, _] = (await browser.get("/watches")).json()["watches"]
        page = await read(browser, f"/console/watches?watch={gate['id']}")
        assert ">Gate code</a>" in page
        assert ">Lift schedule</a>" not in page
        assert "2 unread" in await read(browser, "/")


async def test_who_may_read_nothing_has_no_such_page(desk: Desk) -> None:
    async with open_http(desk, Principal("acme", "eve", frozenset())) as browser:
        assert (await browser.get("/console/watches")).status_code == 403
        assert "/console/watches" not in await read(browser, "/")
