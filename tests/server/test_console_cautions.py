"""Cautions in the console: on hits, on pages of either side, with the passages of both, and settled there."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncGenerator

import httpx2
import pytest

from refdesk.app import Desk
from refdesk.model import Principal
from refdesk.server.console.cautions import split_caution
from tests.server.conftest import open_http
from tests.server.test_console_forms import send
from tests.server.test_console_pages import read
from tests.toolsets.impact.test_operations import NOTE, RECORD, WRITER, desk, examine
from tests.toolsets.knowledge.test_disputes import ONE, OTHER

__all__ = ["desk"]

READER = Principal("acme", "bob", frozenset({"knowledge:read"}))


@pytest.fixture
async def browser(desk: Desk) -> AsyncGenerator[httpx2.AsyncClient]:
    async with open_http(desk, Principal("acme", "ann", frozenset(WRITER))) as client:
        yield client


def find_cautions(page: str) -> list[tuple[str, list[str]]]:
    """Return what a page says is to be heeded, without marks, and where that leads."""
    found = re.findall(r'<p class="notice caution">(.*?)</p>', page, re.DOTALL)
    return [
        (html.unescape(" ".join(re.sub("<[^>]+>", "", each).split())), re.findall(r'href="([^"]+)"', each))
        for each in found
    ]


async def store(browser: httpx2.AsyncClient, note: dict[str, str]) -> str:
    return (await browser.post("/knowledge", json=note)).json()["id"]


async def test_a_hit_and_both_pages_tell_what_an_announcement_changes_and_lead_to_both_sides(
    desk: Desk, browser: httpx2.AsyncClient
) -> None:
    note = await store(browser, NOTE)
    await examine(desk)
    of_note = f"/console/read/get_knowledge?id={note}"
    [hit, *_] = find_cautions(await read(browser, "/?q=Standard_D4s_v3+crawlers&in=knowledge"))
    assert "retires what this relies on from 2027-05-31 on." in hit[0]
    assert "list_impacts" not in hit[0]
    assert hit[1] == [f"{of_note}#impacts"]
    page = await read(browser, of_note)
    [(said, led)] = find_cautions(page)
    assert ("2027-05-31" in said, led) == (True, ["#impacts"])
    section = page.partition('id="impacts"')[2]
    assert "31 May 2027" in section
    assert f'href="/console/read/search_azure_updates?id={RECORD["id"]}"' in section
    [(said, led)] = find_cautions(await read(browser, f"/console/read/search_azure_updates?id={RECORD['id']}"))
    assert said.startswith("1 thing here relies on what this changes.")
    assert led == ["#impacts"]
    form = await read(browser, f"/console/do/judge_impact?announcement={RECORD['id']}&toolset=knowledge&id={note}")
    assert all(html.escape(str(title)) in form for title in (NOTE["title"], RECORD["title"])), "what relies on what"


async def test_what_contradicts_an_entry_is_shown_with_both_passages_until_it_is_settled(
    desk: Desk, browser: httpx2.AsyncClient
) -> None:
    one, other = await store(browser, ONE), await store(browser, OTHER)
    await examine(desk)
    page = await read(browser, f"/console/read/get_knowledge?id={one}")
    [(said, led)] = find_cautions(page)
    assert (said.startswith("Contradicted by another entry."), led) == (True, ["#cases"])
    section = page.partition('id="cases"')[2].partition("</section>")[0]
    assert "100 requests a minute" in section
    assert "60 requests a minute" in section
    assert f'href="/console/read/get_knowledge?id={other}"' in section
    assert f"/console/do/settle_case?oneId={one}&amp;otherId={other}" in section
    async with open_http(desk, READER) as reader:
        assert "/console/do/settle_case" not in await read(reader, f"/console/read/get_knowledge?id={one}")
    form = await read(browser, f"/console/do/settle_case?oneId={one}&otherId={other}")
    assert all(html.escape(note["title"]) in form for note in (ONE, OTHER))
    done = await send(
        browser, "settle_case", oneId=one, otherId=other, verdict="both_hold", reason="The second for <partners>."
    )
    page = await read(browser, done.headers["location"])
    assert "The case is as you said." in page
    assert find_cautions(page) == []
    assert "both hold by ann: The second for &lt;partners&gt;." in page
    await send(browser, "settle_case", oneId=one, otherId=other, verdict="dismiss")
    assert 'id="cases"' not in await read(browser, f"/console/read/get_knowledge?id={one}")


def test_each_sentence_leads_to_what_shows_it() -> None:
    told = (
        "Of 2 announcements the worst breaks what this relies on: list_impacts. "
        "Contradicted by a, b: list_cases. Says the same as c, d. Somebody else said so."
    )
    assert split_caution(told, "/page?id=1") == [
        ("Of 2 announcements the worst breaks what this relies on.", "/page?id=1#impacts"),
        ("Contradicted by 2 other entries.", "/page?id=1#cases"),
        ("Another entry says the same.", "/console/read/get_knowledge?id=c"),
        ("Somebody else said so.", ""),
    ]
    [(said, led)] = split_caution("An announcement renames what this relies on: announcement 499.", "")
    assert (said, led) == (
        "An announcement renames what this relies on.",
        "/console/read/search_azure_updates?id=499",
    )
