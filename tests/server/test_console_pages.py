"""The console's pages of the feed, of announcements, of skills, and of those who run the desk."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from sample_world.azure_updates.process import RunningEmulator, running_emulator
from tests.server.conftest import open_http
from tests.server.echo import make_settings
from tests.server.test_console_forms import TALK, send
from tests.server.test_keys import make_key

READS = frozenset({"updates:read", "knowledge:read", "skills:read"})
RUNNER = Principal("acme", "root", READS | {"skills:write", "admin"})
READER = Principal("acme", "ann", READS)


@pytest.fixture(scope="module")
async def feed(anyio_backend: str) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator() as emulator:
        yield emulator


@pytest.fixture
async def desk(tmp_path: Path, feed: RunningEmulator) -> AsyncGenerator[Desk]:
    await feed.set_world(day=1)
    store = f"sqlite:///{tmp_path / 'desk.sqlite3'}"
    settings = make_settings(tmp_path, store=store, azure_updates_url=feed.url)
    async with open_desk(
        settings, load_toolsets(("azure-updates", "knowledge", "skills")), in_background=False
    ) as opened:
        yield opened


@pytest.fixture
async def browser(desk: Desk) -> AsyncGenerator[httpx2.AsyncClient]:
    async with open_http(desk, RUNNER) as client:
        yield client


async def read(browser: httpx2.AsyncClient, address: str) -> str:
    page = await browser.get(address)
    assert page.status_code == 200, page.text
    return page.text


async def sync(browser: httpx2.AsyncClient) -> None:
    done = await browser.post("/syncs", json={"toolset": "azure-updates", "full": True})
    assert done.json()["outcome"] == "succeeded"


async def test_gaps_are_listed_and_judged_on_a_page_of_their_own(desk: Desk) -> None:
    async with open_http(desk, RUNNER) as browser:
        question = "who waters the <plants> on the third floor"
        await browser.post("/knowledge/search", json={"query": question})
        keeper = desk.make_gap_keeper(await desk.get_base())
        assert keeper is not None
        await keeper.run_until_done()
        page = await read(browser, "/console/gaps")
        assert "who waters the &lt;plants&gt; on the third floor" in page
        assert "asked 1 ×" in page
        found = re.search(r"/console/do/judge_gap\?id=([\w-]+)", page)
        assert found is not None
        form = await read(browser, f"/console/do/judge_gap?id={found[1]}")
        assert "who waters the &lt;plants&gt; on the third floor" in form, "the form says which gap it is about"
        done = await send(browser, "judge_gap", id=found[1], verdict="dismiss", reason="A plant of plastic.")
        assert done.headers["location"].startswith("/console/gaps")
        assert "The gap is as you said." in await read(browser, done.headers["location"])
        assert "A plant of plastic." in await read(browser, "/console/gaps?status=dismissed")
        assert "There are none." in await read(browser, "/console/gaps?status=nonsense&page=999999999999")


async def test_a_sync_begins_when_its_form_is_sent_and_shows_on_the_desk(browser: httpx2.AsyncClient) -> None:
    done = await send(browser, "sync_toolset", toolset="azure-updates")
    assert done.headers["location"] == "/console/desk?did=sync_toolset"
    assert "The sync runs" in await read(browser, done.headers["location"])


async def test_the_feed_says_what_is_coming_and_what_changed(
    browser: httpx2.AsyncClient, feed: RunningEmulator
) -> None:
    assert "never synced" in await read(browser, "/console/feed")
    await sync(browser)
    await feed.set_world(day=2)
    await sync(browser)
    page = await read(browser, "/console/feed")
    assert "7 added" in page
    assert page.count("<circle") > 5
    listed = re.search(r'<dl class="coming">(.*?)</dl>', page, re.DOTALL)
    assert listed is not None
    assert "Retirement: " in listed[1]
    changed = re.findall(r'mark changed">changed</span> <a href="([^"]+)"', page)
    shown = await read(browser, changed[0])
    assert "How it changed" in shown
    assert "<del>" in shown
    assert "<ins>" in shown


async def test_a_skill_shows_how_it_went_and_what_supports_it(browser: httpx2.AsyncClient) -> None:
    learned = await send(browser, "create_skill", conversation=TALK)
    address = learned.headers["location"].partition("&")[0]
    skill = address.partition("skill_id=")[2]
    assert "Nobody has reported yet" in await read(browser, address)
    for outcome in ("resolved", "failed"):
        await send(browser, "report_outcome", skill_id=skill, outcome=outcome)
    refined = TALK.replace("open the map again", "restart the app twice")
    assert (await send(browser, "update_skill", skill_id=skill, conversation=refined)).status_code == 303
    page = await read(browser, address)
    assert (page.count('class="resolved"'), page.count('class="failed"')) == (1, 1)
    assert "2 reports" in page
    assert "What version 2 changed" in page
    assert "Learned from 2 conversations" in page


async def test_who_runs_the_desk_sees_its_work_its_keys_and_what_was_done(
    desk: Desk, browser: httpx2.AsyncClient
) -> None:
    secret = await make_key(desk, "ann", scopes=("knowledge:read",))
    work = await read(browser, "/console/desk")
    for words in ("Syncs", "Embeddings", "Quotas", "knowledge stored"):
        assert words in work
    keys = await read(browser, "/console/desk/keys")
    assert ("ann" in keys, "knowledge:read" in keys, secret in keys) == (True, True, False)
    log = await read(browser, "/console/desk/audit")
    assert "keys.create" in log
    assert "of: ann" in log, "an act that touched no document says what it was done to"
    assert "keys.create" not in await read(browser, "/console/desk/audit?action=store_knowledge")
    assert (await send(browser, "retry_embeddings")).headers["location"].startswith("/console/desk")


async def test_the_audit_log_leads_to_what_was_touched_and_counts_what_it_does_not_name(desk: Desk) -> None:
    async with open_http(desk, Principal("acme", "ann", READS | {"knowledge:write", "admin"})) as browser:
        note = (await browser.post("/knowledge", json={"title": "Refund limit", "body": "500 EUR"})).json()["id"]
        things = [
            {"type": "entity", "name": f"Limit {n}", "entityType": "rule", "observations": ["x"]} for n in range(5)
        ]
        lines = "\n".join(json.dumps(thing) for thing in things)
        done = await browser.post("/knowledge/import", json={"format": "mcp-memory", "text": lines})
        assert done.status_code == 200, done.text
        log = await read(browser, "/console/desk/audit")
        assert f'href="/console/read/get_knowledge?id={note}"' in log
        assert "and 2 more" in log


async def test_others_are_told_what_it_takes(desk: Desk) -> None:
    async with open_http(desk, READER) as browser:
        work = await read(browser, "/console/desk")
        assert "refdesk open" in work
        assert "Quotas" not in work
        for address in ("/console/desk/keys", "/console/desk/audit"):
            assert (await browser.get(address)).status_code == 403
        assert "/console/do/" not in await read(browser, "/console/feed")


async def test_an_address_that_is_none_is_answered_by_a_page(browser: httpx2.AsyncClient) -> None:
    for address in ("/console/nowhere", "/console/desk/keys/of/others", "/console/"):
        missing = await browser.get(address)
        assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "There is no such page." in missing.text
        assert 'name="q"' in missing.text, "from there one can search on"


async def test_a_server_of_one_toolset_shows_why_each_result_matches(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, store=f"sqlite:///{tmp_path / 'one.sqlite3'}")
    writer = Principal("acme", "ann", frozenset({"knowledge:read", "knowledge:write"}))
    async with (
        open_desk(settings, load_toolsets(("knowledge",)), in_background=False) as alone,
        open_http(alone, writer) as browser,
    ):
        await browser.post("/knowledge", json={"title": "Refund limit", "body": "A lead approves 800 EUR."})
        assert "approves 800 EUR" in await read(browser, "/?q=refund+limit")
