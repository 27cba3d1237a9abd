"""What people do in the console: each form is an operation, done as its sender, from this server's own pages alone."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from tests.server.conftest import URL, open_http
from tests.server.echo import make_settings
from tests.server.test_keys import CANARY

WRITER = Principal(
    "acme", "ann", frozenset({"knowledge:read", "knowledge:write", "skills:read", "skills:write", "admin"})
)
READER = Principal("acme", "bob", frozenset({"knowledge:read"}))
OWN = {"origin": URL}
TALK = (
    "Customer: My parcel tracker shows a zebra instead of the map.\n"
    "Agent: Please clear the cache under Settings, then open the map again.\n"
    "Customer: That worked, thank you!"
)
OTHER_TALK = (
    "Customer: I was charged twice for my subscription this month.\n"
    "Agent: I have refunded the second payment; open Billing to see it.\n"
    "Customer: I see it, thanks!"
)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    settings = make_settings(tmp_path, store=f"sqlite:///{tmp_path / 'desk.sqlite3'}", embedder="hashing")
    async with open_desk(settings, load_toolsets(("knowledge", "skills"))) as opened:
        yield opened


@pytest.fixture
async def browser(desk: Desk) -> AsyncGenerator[httpx2.AsyncClient]:
    async with open_http(desk, WRITER) as client:
        yield client


async def send(browser: httpx2.AsyncClient, act: str, **filled: str) -> httpx2.Response:
    """Send a form as a browser does: every field of it, with what is filled in."""
    address = f"/console/do/{act}"
    form = await browser.get(address, params=filled)
    assert form.status_code == 200, form.text
    return await browser.post(address, data={**read_fields(form.text), **filled}, headers=OWN)


def read_fields(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


async def store(browser: httpx2.AsyncClient, title: str = "Refund limit", **more: str) -> str:
    done = await send(browser, "store_knowledge", title=title, body="Up to 500 EUR.\r\nNo more.", **more)
    assert done.status_code == 303, done.text
    return done.headers["location"].partition("id=")[2].partition("&")[0]


async def read(browser: httpx2.AsyncClient, id: str) -> Mapping[str, Any]:
    return (await browser.get(f"/knowledge/{id}")).json()


async def follow_undo(browser: httpx2.AsyncClient, done: httpx2.Response) -> httpx2.Response:
    """Undo what was done, as the page that doing it led to offers."""
    page = await browser.get(done.headers["location"])
    [address] = re.findall(r'<a href="(/console/do/[^"]+)">Undo</a>', page.text)
    address = address.replace("&amp;", "&")
    form = await browser.get(address)
    return await browser.post(address.partition("?")[0], data=read_fields(form.text), headers=OWN)


async def test_an_entry_is_stored_with_what_the_form_says_and_a_form_sent_twice_stores_it_once(
    browser: httpx2.AsyncClient,
) -> None:
    filled = {"title": "Refund limit", "body": "Up to 500 EUR.\r\nNo more.", "tags": "Refunds, our policy,"}
    form = await browser.get("/console/do/store_knowledge")
    data = {**read_fields(form.text), **filled, "confidence": "90", "expiresAt": "2099-01-01T00:00:00Z"}
    first, again = [await browser.post("/console/do/store_knowledge", data=data, headers=OWN) for _ in range(2)]
    assert (first.status_code, first.headers["location"]) == (303, again.headers["location"])
    id = first.headers["location"].partition("id=")[2].partition("&")[0]
    note = await read(browser, id)
    assert (note["body"], note["tags"], note["confidence"]) == (
        "Up to 500 EUR.\nNo more.",
        ["refunds", "our-policy"],
        90,
    )
    assert (note["author"], note["expiresAt"][:10]) == ("ann", "2099-01-01")


async def test_who_goes_back_to_a_form_that_was_sent_and_writes_something_else_stores_that_too(
    browser: httpx2.AsyncClient,
) -> None:
    form = await browser.get("/console/do/store_knowledge")
    data = {**read_fields(form.text), "title": "Refund limit", "body": "Up to 500 EUR."}
    first = await browser.post("/console/do/store_knowledge", data=data, headers=OWN)
    other = await browser.post("/console/do/store_knowledge", data={**data, "title": "Fees"}, headers=OWN)
    assert (first.status_code, other.status_code) == (303, 303), other.text
    assert first.headers["location"] != other.headers["location"]


async def test_a_form_is_not_done_as_somebody_who_signed_in_since_it_was_opened(desk: Desk) -> None:
    keys, scopes = (await desk.get_base()).keys, ("knowledge:read", "knowledge:write")
    [ann, bob] = [(await keys.create(org=org, agent=a, scopes=scopes))[1] for a, org in (("ann", "acme"), ("bob", "x"))]
    async with open_http(desk, None) as browser:
        await browser.post("/console/sign-in", data={"key": ann})
        form = (await browser.get("/console/do/store_knowledge")).text
        mine = {**read_fields(form), "title": "For acme alone", "body": "Ours."}
        await browser.post("/console/sign-in", data={"key": bob})
        told = await browser.post("/console/do/store_knowledge", data=mine, headers=OWN)
        assert told.status_code == 409
        assert "opened as ann of acme, and now bob of x is signed in" in told.text
        assert 'value="For acme alone"' in told.text
        assert "0 notes" in (await browser.get("/console/browse/knowledge")).text
        again = {**mine, **read_fields(told.text)}
        assert (await browser.post("/console/do/store_knowledge", data=again, headers=OWN)).status_code == 303


async def test_a_form_that_is_refused_says_why_and_keeps_what_was_filled_in(browser: httpx2.AsyncClient) -> None:
    form = await browser.get("/console/do/store_knowledge")
    data = {**read_fields(form.text), "title": "", "body": "Kept <b>text</b>"}
    refused = await browser.post("/console/do/store_knowledge", data=data, headers=OWN)
    assert refused.status_code == 400
    assert 'role="alert"' in refused.text
    assert "Kept &lt;b&gt;text&lt;/b&gt;" in refused.text


async def test_editing_begins_with_what_holds_keeps_the_version_before_and_is_undone(
    browser: httpx2.AsyncClient,
) -> None:
    id = await store(browser, tags="refunds", expiresAt="2099-01-01T00:00:00Z")
    form = (await browser.get("/console/do/edit_knowledge", params={"id": id})).text
    assert "Up to 500 EUR.\nNo more.</textarea>" in form
    assert 'value="refunds"' in form
    done = await send(
        browser, "edit_knowledge", id=id, title="Refund limit", body="Up to 200 EUR.\r\nNo more.", tags="", expiresAt=""
    )
    new = await read(browser, done.headers["location"].partition("id=")[2].partition("&")[0])
    assert (new["body"], new["tags"], "expiresAt" in new) == ("Up to 200 EUR.\nNo more.", [], False)
    page = (await browser.get(done.headers["location"])).text
    assert "<del>500</del><ins>200</ins>" in page
    assert "<del>refunds</del>" in page
    undone = await follow_undo(browser, done)
    assert undone.status_code == 303
    assert "supersededBy" not in await read(browser, id)
    assert (await browser.get(f"/knowledge/{new['id']}")).status_code == 404
    assert (await follow_undo(browser, undone)).status_code == 303
    assert (await read(browser, id))["headId"] == new["id"], "undoing the undoing brings the edit back"


async def test_entries_are_withdrawn_restored_and_replaced(browser: httpx2.AsyncClient) -> None:
    id, other = await store(browser), await store(browser, "Refund limit of Plus")
    page = await browser.get("/console/do/withdraw_knowledge", params={"id": id})
    assert "Refund limit" in page.text
    done = await send(browser, "withdraw_knowledge", id=id)
    gone = await browser.get("/console/read/get_knowledge", params={"id": id})
    assert (gone.status_code, "/console/do/restore_knowledge" in gone.text) == (404, True)
    await follow_undo(browser, done)
    assert (await browser.get("/console/read/get_knowledge", params={"id": id})).status_code == 200
    done = await send(browser, "supersede_knowledge", oldId=id, newId=other)
    assert (await read(browser, id))["supersededBy"] == other
    shown = (await browser.get("/console/read/get_knowledge", params={"id": id})).text
    assert "Read what holds now" in shown
    assert "/console/do/edit_knowledge" not in shown
    await follow_undo(browser, done)
    assert "supersededBy" not in await read(browser, id)


async def test_skills_are_learned_reported_on_merged_and_taken_apart(browser: httpx2.AsyncClient) -> None:
    learned = await send(browser, "create_skill", conversation=TALK, resolution_confirmed="yes")
    learned_too = await send(browser, "create_skill", conversation=OTHER_TALK)
    skill, other = (
        done.headers["location"].partition("skill_id=")[2].partition("&")[0] for done in (learned, learned_too)
    )
    reported = await send(browser, "report_outcome", skill_id=skill, outcome="resolved")
    assert (await browser.get(f"/skills/{skill}")).json()["times_confirmed"] == 2
    await follow_undo(browser, reported)
    assert (await browser.get(f"/skills/{skill}")).json()["times_confirmed"] == 1
    form = await browser.get("/console/do/merge_skills", params={"skill_id": skill})
    assert re.findall(r'<option value="([^"]+)"', form.text) == [other]
    merged = await send(browser, "merge_skills", skill_id=skill, other_id=other)
    assert (await browser.get(f"/skills/{other}")).status_code == 404
    await follow_undo(browser, merged)
    assert (await browser.get(f"/skills/{other}")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{}, {"origin": "null"}, {"origin": "https://elsewhere.example"}, {"sec-fetch-site": "same-site"}, {"origin": ""}],
)
async def test_forms_from_elsewhere_do_nothing(browser: httpx2.AsyncClient, headers: Mapping[str, str]) -> None:
    id = await store(browser)
    refused = await browser.post("/console/do/withdraw_knowledge", data={"id": id}, headers=headers)
    assert refused.status_code == 403
    assert (await read(browser, id))["id"] == id


async def test_an_origin_that_may_call_sends_no_forms(tmp_path: Path) -> None:
    friend = "https://friend.example"
    settings = make_settings(
        tmp_path, store=f"sqlite:///{tmp_path / 'desk.sqlite3'}", embedder="hashing", allowed_origins=(friend,)
    )
    async with open_desk(settings, load_toolsets(("knowledge",))) as desk, open_http(desk, WRITER) as browser:
        id = await store(browser)
        refused = await browser.post("/console/do/withdraw_knowledge", data={"id": id}, headers={"origin": friend})
        assert refused.status_code == 403


async def test_looking_at_a_form_does_nothing_and_reading_is_no_use_of_a_skill(browser: httpx2.AsyncClient) -> None:
    id = await store(browser)
    await browser.get("/console/do/withdraw_knowledge", params={"id": id})
    assert (await read(browser, id))["id"] == id
    learned = await send(browser, "create_skill", conversation=TALK)
    for _ in range(3):
        await browser.get(learned.headers["location"])
    skill = learned.headers["location"].partition("skill_id=")[2].partition("&")[0]
    assert (await browser.get(f"/skills/{skill}")).json()["times_used"] == 1


async def test_who_may_only_read_is_offered_no_form_and_refused_each(desk: Desk, browser: httpx2.AsyncClient) -> None:
    id = await store(browser)
    async with open_http(desk, READER) as other:
        for address in ("/", "/console/browse/knowledge", f"/console/read/get_knowledge?id={id}"):
            page = await other.get(address)
            # Whoever reads may watch; nothing else is offered.
            offered = set(re.findall(r"/console/do/(\w+)", page.text)) - {"create_watch"}
            assert (page.status_code, offered) == (200, set[str]())
        for method in ("GET", "POST"):
            refused = await other.request(
                method, "/console/do/withdraw_knowledge", params={"id": id}, headers=OWN if method == "POST" else {}
            )
            assert (refused.status_code, "knowledge:write" in refused.text) == (403, True)


async def test_a_server_that_only_reads_offers_no_form(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, store=f"sqlite:///{tmp_path / 'desk.sqlite3'}", embedder="hashing")
    async with open_desk(settings, load_toolsets(("knowledge",))) as desk, open_http(desk, WRITER) as browser:
        id = await store(browser)
    reading = make_settings(
        tmp_path, store=f"sqlite:///{tmp_path / 'desk.sqlite3'}", embedder="hashing", read_only=True
    )
    async with open_desk(reading, load_toolsets(("knowledge",))) as desk, open_http(desk, WRITER) as browser:
        page = await browser.get("/console/read/get_knowledge", params={"id": id})
        assert (page.status_code, "/console/do/" in page.text) == (200, False)
        assert (await browser.get("/console/do/store_knowledge")).status_code == 403


async def test_what_is_done_is_on_record_as_done_in_the_console(desk: Desk, browser: httpx2.AsyncClient) -> None:
    await store(browser)
    last = (await browser.get("/audit")).json()["entries"][0]["act"]
    assert (last["action"], last["transport"]) == ("store_knowledge", "console")


async def test_there_is_no_form_for_what_the_table_lacks(browser: httpx2.AsyncClient) -> None:
    for name in ("nothing", "get_knowledge", "erase"):
        assert (await browser.get(f"/console/do/{name}")).status_code == 404


async def test_an_address_says_no_more_than_what_can_be_done(browser: httpx2.AsyncClient) -> None:
    page = await browser.get("/", params={"did": f"<b>{CANARY}</b>", "undo": "id=x"})
    assert (page.status_code, CANARY in page.text) == (200, False)
    page = await browser.get("/", params={"did": "store_knowledge", "undo": 'id="><script>'})
    assert "<script>" not in page.text.replace('<script src="/assets/console.js" defer></script>', "")


async def test_shelves_are_paged_and_narrowed(browser: httpx2.AsyncClient) -> None:
    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(store_one, browser, f"Note {number}", "even" if number % 2 == 0 else "odd")
    first = await browser.get("/console/browse/knowledge")
    second = await browser.get("/console/browse/knowledge?page=2")
    titles = [re.findall(r'class="result" [^>]*>(Note \d+)<', page.text) for page in (first, second)]
    assert (len(titles[0]), len(titles[1]), len({*titles[0], *titles[1]})) == (25, 5, 30)
    even = await browser.get("/console/browse/knowledge?tag=even&author=ann&age=7d")
    assert len(re.findall(r'class="result"', even.text)) == 15
    assert "15 notes" in even.text
    for odd in ("page=0", "page=x", "page=99999999999", "age=never", "tag=%00"):
        assert (await browser.get(f"/console/browse/knowledge?{odd}")).status_code in (200, 400)
    led = await browser.get("/console/browse")
    assert led.headers["location"] == "/console/browse/knowledge"
    assert (await browser.get("/console/browse/nothing")).status_code == 404


async def store_one(browser: httpx2.AsyncClient, title: str, tag: str) -> None:
    await browser.post("/knowledge", json={"title": title, "body": "x", "tags": [tag]})


async def test_what_is_stored_is_shown_in_the_direction_of_its_script(browser: httpx2.AsyncClient) -> None:
    title, body = "سياسة الاسترداد", "تتم الموافقة على المبالغ حتى 200 يورو."
    done = await send(browser, "store_knowledge", title=title, body=body)
    page = (await browser.get(done.headers["location"])).text
    assert f'<h1 dir="auto">{title}</h1>' in page
    assert re.search(rf'<div class="text" dir="auto">\s*<p>{body}', page)
    for address in ("/", "/console/browse/knowledge"):
        found = (await browser.get(address)).text
        assert re.search(rf'<h[23] dir="auto"><a class="result"[^>]*>{title}', found)
        assert '<input id="q" name="q" type="search" dir="auto"' in found


async def test_who_edits_what_somebody_else_has_edited_meanwhile_is_told_and_loses_nothing(
    desk: Desk, browser: httpx2.AsyncClient
) -> None:
    id = await store(browser)
    form = (await browser.get("/console/do/edit_knowledge", params={"id": id})).text
    mine = {**read_fields(form), "title": "Refund limit", "body": "Up to 500 EUR, by card alone.", "tags": "cards"}
    await send(browser, "edit_knowledge", id=id, title="Refund limit", body="Up to 200 EUR.\r\nNo more.")
    told = await browser.post("/console/do/edit_knowledge", data=mine, headers=OWN)
    assert (told.status_code, 'role="alert"' in told.text) == (409, True)
    assert "ann has stored another version" in told.text
    assert "<del>500</del><ins>200</ins>" in told.text
    assert "Up to 500 EUR, by card alone.</textarea>" in told.text
    assert 'value="cards"' in told.text
    done = await browser.post("/console/do/edit_knowledge", data={**mine, **read_fields(told.text)}, headers=OWN)
    assert done.status_code == 303, done.text
    new = await read(browser, done.headers["location"].partition("id=")[2].partition("&")[0])
    assert (new["body"], len(new["chain"])) == ("Up to 500 EUR, by card alone.", 3)


async def test_who_edits_what_was_withdrawn_meanwhile_keeps_the_text(browser: httpx2.AsyncClient) -> None:
    id = await store(browser)
    form = (await browser.get("/console/do/edit_knowledge", params={"id": id})).text
    await send(browser, "withdraw_knowledge", id=id)
    mine = {**read_fields(form), "title": "Refund limit", "body": "Written for nothing?"}
    told = await browser.post("/console/do/edit_knowledge", data=mine, headers=OWN)
    assert (told.status_code, "was withdrawn" in told.text) == (409, True)
    assert "Written for nothing?</textarea>" in told.text


async def test_a_form_sent_after_the_sign_in_has_ended_is_shown_again_with_what_was_written(desk: Desk) -> None:
    keys = (await desk.get_base()).keys
    create = partial(keys.create, org="acme", agent="ann", scopes=("knowledge:read", "knowledge:write"))
    made, secret = await create()
    async with open_http(desk, None) as browser:
        await browser.post("/console/sign-in", data={"key": secret})
        form = (await browser.get("/console/do/store_knowledge")).text
        mine = {**read_fields(form), "title": "Long thought", "body": "An hour's <work>", "tags": "kept"}
        await keys.revoke(made.id)
        for again in (False, True):
            told = await browser.post("/console/do/store_knowledge", data=mine, headers=OWN)
            assert (told.status_code, "not signed in any more" in told.text) == (200, True)
            assert "An hour&#39;s &lt;work&gt;</textarea>" in told.text
            assert ('value="Long thought"' in told.text, 'value="kept"' in told.text) == (True, True)
            assert read_fields(told.text) == read_fields(form)
            assert ("Max-Age=0" in told.headers["set-cookie"], "refdesk_key" in browser.cookies) == (True, False), again
        refused = await browser.post("/console/do/store_knowledge", data=mine, headers={"origin": "https://x.example"})
        assert (refused.status_code, "An hour" in refused.text) == (403, False)
        _, secret = await create()
        await browser.post("/console/sign-in", data={"key": secret})
        done = await browser.post("/console/do/store_knowledge", data=mine, headers=OWN)
        assert (done.status_code, "get_knowledge" in done.headers["location"]) == (303, True)


async def test_whose_key_is_refused_where_everybody_may_call_stores_nothing_as_somebody_else(desk: Desk) -> None:
    async with open_http(desk, WRITER) as browser:
        await browser.post("/console/sign-in", data={"key": CANARY})
        mine = {"title": "Under my own name", "body": "Or not at all."}
        told = await browser.post("/console/do/store_knowledge", data=mine, headers=OWN)
        assert (told.status_code, "not signed in any more" in told.text) == (200, True)
        assert "0 notes" in (await browser.get("/console/browse/knowledge")).text


@pytest.mark.parametrize("title", ["<script>", "<!-- x -->", "<img src=x onerror=alert(1)>", "![x](y)"])
async def test_a_title_that_looks_like_markup_is_shown_as_text_everywhere_and_edited_as_it_is(
    browser: httpx2.AsyncClient, title: str
) -> None:
    shown = title.replace("<", "&lt;").replace(">", "&gt;")
    first = await store(browser, title)
    done = await send(browser, "edit_knowledge", id=first, title=title, body=f"No more than {title}.")
    page = (await browser.get(done.headers["location"])).text
    head, body = page.split("</head>")
    assert f"<title>{shown} – refdesk</title>" in head
    assert f'<h1 dir="auto">{shown}</h1>' in body
    assert f'<strong aria-current="true">{shown}</strong>' in body
    for address in ("/", "/console/browse/knowledge"):
        assert f">{shown}</a>" in (await browser.get(address)).text
    id = done.headers["location"].partition("id=")[2].partition("&")[0]
    form = (await browser.get("/console/do/edit_knowledge", params={"id": id})).text
    assert f'value="{shown}"' in form
    assert f"No more than {shown}.</textarea>" in form
    asked = (await browser.get("/console/do/withdraw_knowledge", params={"id": id})).text
    assert f'<p class="subject">{shown}</p>' in asked


async def test_each_shelf_offers_what_fills_it_and_says_how_while_it_is_empty(browser: httpx2.AsyncClient) -> None:
    notes, skills = [(await browser.get(f"/console/browse/{name}")).text for name in ("knowledge", "skills")]
    assert ("store_knowledge." in notes, '"/console/do/store_knowledge?"' in notes) == (True, True)
    assert ("learned from support conversations" in skills, '"/console/do/create_skill?"' in skills) == (True, True)


async def test_an_entry_that_nobody_has_changed_is_not_said_to_be_changed(browser: httpx2.AsyncClient) -> None:
    id = await store(browser)
    page = (await browser.get("/console/read/get_knowledge", params={"id": id})).text
    assert ("<dt>Written</dt>" in page, "<dt>Changed</dt>" in page) == (True, False)
