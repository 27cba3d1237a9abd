"""The console in a real browser: accessible, quiet, small, usable by keys and without a script; nothing stored runs."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from tests.acceptance.console_world import World, open_world
from tests.acceptance.driver import install, visit, walk
from tests.acceptance.processes import WAIT_SECONDS, run, start
from tests.acceptance.test_browser import host_page

pytestmark = pytest.mark.timeout(600)

FIRST_PAGE_BYTES = 100_000
HOSTILE = """
# A heading

Text with **weight**, `code`, [a page](https://example.com/a), [a trap](javascript:alert(1)) and a picture
![x](https://elsewhere.example/x.png "x").

<script>alert(2)</script><img src=x onerror=alert(3)><svg onload=alert(4)>

| name | value |
|------|-------|
| a    | <b onclick=alert(5)>1</b> |
"""
WIDE = "\n\n".join(
    (
        "|".join(f"column{number}" for number in range(40)) + "\n" + "|".join("-" * 40) + "\n" + "|".join("x" * 40),
        "```\n" + "x" * 2000 + "\n```",
        "\n".join("  " * depth + f"- depth {depth}" for depth in range(40)),
        ">" * 40 + " quoted",
    )
)
LOOKS = [["light", 1280], ["dark", 390]]
"""Colours do not depend on the width, nor the layout on the colours."""

TITLE = "Refund limit <script>alert(6)</script> \u202e"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    """A server that takes every caller, with notes that mean no good beside the others."""
    with open_world(tmp_path_factory.mktemp("home")) as opened:
        for title in (TITLE, "Refund form", "Refund by card"):
            task = {"taskId": TITLE, "kind": "produced"}
            note = {"title": title, "body": HOSTILE, "tags": ["traps"], "taskRef": task}
            id = opened.post("/knowledge", note)["id"]
        opened.post(f"/knowledge/{id}/edit", {"title": "Refund by card, again", "body": f"{HOSTILE}{TITLE}"})
        opened.post("/knowledge", {"title": "Zanzibar, wide and deep", "body": WIDE})
        yield opened


@pytest.fixture(scope="module")
def url(world: World) -> str:
    return world.url


@pytest.fixture(scope="module")
def driver(pytestconfig: pytest.Config) -> Path:
    return install(pytestconfig)


def read(url: str, path: str) -> str:
    answer = httpx2.get(url + path, timeout=WAIT_SECONDS)
    assert answer.status_code == 200, answer.text
    return answer.text


def find_entry(url: str, question: str = "weight+trap+picture") -> str:
    [address, *_] = re.findall(r'href="(/console/read/get_knowledge\?[^"]+)"', read(url, f"/?q={question}"))
    return address


def list_pages(world: World) -> list[str]:
    note, skill = f"id={world.note}", f"skill_id={world.skill}"
    return [
        *("/", "/?q=refund", "/?q=%3Cscript%3Ealert(7)%3C/script%3E", "/console/sign-in", "/docs", "/console/feed"),
        # Both looks: what fits a wide page may not fit a narrow one.
        *[find_entry(world.url, "zanzibar+deep")] * 2,
        *(find_entry(world.url), f"/console/read/get_knowledge?{note}", f"/console/read/get_skill?{skill}"),
        *(f"/console/read/search_azure_updates?id={world.update}", "/console/show/azure-updates/stats"),
        *(f"/console/browse/{toolset}" for toolset in ("knowledge", "skills", "azure-updates")),
        *(f"/console/desk{part}" for part in ("", "/keys", "/audit")),
        *(f"/console/do/{act}?{note}" for act in ("edit_knowledge", "withdraw_knowledge")),
        *(f"/console/do/{act}?{skill}" for act in ("report_outcome", "merge_skills", "update_skill")),
        *("/console/do/sync_toolset", "/console/gaps", "/console/gaps?status=answered", "/console/do/judge_gap?id=x"),
        *("/console/watches", "/console/do/create_watch?kind=entry&subject=x", "/console/do/pause_watch?id=x"),
        "/console/do/delete_watch?id=x",
    ]


def judge(driver: Path, world: World, looks: list[list[Any]], *, in_turns: bool) -> dict[str, Any]:
    """Visit every page, and return what was said of them; nothing is wrong with any."""
    pages = [world.url + path for path in list_pages(world)]
    plan: dict[str, object] = {"pages": pages, "looks": looks, "inTurns": in_turns, "key": world.key}
    said = visit(driver, {**plan, "keys": f"{world.url}/?q=refund"})
    assert len(said["visits"]) == len(pages) * (1 if in_turns else len(looks))
    wrong = {
        f"{each['url']} {each['scheme']} {each['width']}": found
        for each in said["visits"]
        if (found := [*each["violations"], *each["errors"], *each["wide"]])
    }
    assert wrong == {}
    return said


def test_every_page_is_accessible_and_quiet_and_fits(world: World, driver: Path) -> None:
    said = judge(driver, world, LOOKS, in_turns=True)
    assert max(each["bytes"] for each in said["visits"] if each["url"] == f"{world.url}/") < FIRST_PAGE_BYTES
    keys = said["keys"]
    assert keys["first"] == keys["back"] == keys["opened"] != keys["second"]
    assert (keys["search"], keys["typed"], keys["dialog"], keys["closed"]) == ("q", "j?", True, True)
    assert keys["errors"] == []


def crawl(world: World) -> list[str]:
    """Return the pages above and whatever they lead to, and so on: one of each that differs by more than values."""
    waiting, found = list_pages(world), dict[tuple[str, ...], str]()
    with httpx2.Client(base_url=world.url, cookies={"refdesk_key": world.key}, timeout=WAIT_SECONDS) as client:
        while waiting:
            address = html.unescape(waiting.pop())
            parts = urlsplit(address)
            form = (parts.path, *sorted(name for name, _ in parse_qsl(parts.query)))
            if form not in found and not parts.path.startswith(("/console/events", "/console/sign-out")):
                found[form] = address
                waiting += re.findall(r'href="(/(?:console[^"#]*|\?[^"#]*)?)"', client.get(address).text)
    return list(dict.fromkeys([*list_pages(world), *found.values()]))


@pytest.mark.soak
def test_every_page_that_any_leads_to_is_so(world: World, driver: Path) -> None:
    pages = [world.url + path for path in [*crawl(world), "/console/nowhere"]]
    assert len(pages) > len(list_pages(world)) + 10
    said = visit(driver, {"pages": pages, "looks": [["light", 320]], "inTurns": True, "key": world.key})
    wrong = {each["url"]: [*each["violations"], *each["wide"]] for each in said["visits"]}
    assert {url: found for url, found in wrong.items() if found} == {}


@pytest.mark.soak
def test_every_page_is_so_light_and_dark_wide_and_narrow(world: World, driver: Path) -> None:
    judge(driver, world, [[scheme, width] for scheme in ("light", "dark") for width in (1280, 390)], in_turns=False)


def test_an_open_page_shows_what_others_write(url: str, driver: Path) -> None:
    note = json.dumps({"title": "Written by somebody else", "body": "Just now.", "tags": ["live"]})
    said = walk(
        driver,
        [
            ["open", f"{url}/console/browse/knowledge?tag=live"],
            ["post", f"{url}/knowledge", note],
            ["wait", "::-p-text(Written by somebody else)"],
            ["read", "#news"],
        ],
    )
    assert said == ["The page shows what has changed."]


def test_an_open_page_of_who_has_signed_out_elsewhere_leads_to_where_one_signs_in(driver: Path, tmp_path: Path) -> None:
    scopes = ["--scope", "knowledge:read", "--scope", "knowledge:write"]
    made = run(["keys", "create", "--org", "acme", "--agent", "ann", *scopes, "--json"], tmp_path)
    serve = ["-m", "refdesk", "serve", "--toolset", "knowledge", "--port", "0"]
    with start(serve, tmp_path, REFDESK_EMBEDDER="hashing") as server:
        address, key = server.read_log("listening")["url"], json.loads(made.stdout)["key"]
        said = walk(
            driver,
            [
                ["keep", "refdesk_key", key, address],
                ["open", f"{address}/console/browse/knowledge?age=7d"],
                ["keep", "refdesk_key", "expired", address],
                ["post", f"{address}/knowledge", json.dumps({"title": "Ours", "body": "Alone."}), key],
                ["wait", "h1::-p-text(Sign in)"],
                ["where"],
            ],
        )
    assert said[0].startswith("/console/sign-in?next=%2Fconsole%2Fbrowse%2Fknowledge%3Fage%3D7d")


def test_the_checks_see_what_is_planted(driver: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<html><body><img src=missing.png><input><p style='width: 3000px'>x</p><script>x()</script></html>")
    [seen] = visit(driver, {"pages": [bad.as_uri()], "looks": [["light", 390]]})["visits"]
    assert {each.partition(":")[0] for each in seen["violations"]} >= {"image-alt", "label", "html-has-lang"}
    assert any("not defined" in each for each in seen["errors"])
    assert seen["wide"]


def test_a_person_stores_edits_withdraws_and_undoes_without_a_script(url: str, driver: Path) -> None:
    said = walk(
        driver,
        [
            ["open", f"{url}/console/browse/knowledge"],
            ["follow", ".heading .button"],
            ["write", "input[name=title]", "Opening hours"],
            ["write", "textarea", "We open at nine."],
            ["write", "input[name=tags]", "office"],
            ["follow", "form.act button"],
            ["read", "h1, .done, .text"],
            ["follow", "aside .actions a[href*=edit_knowledge]"],
            ["write", "textarea", "We open at ten."],
            ["follow", "form.act button"],
            ["read", "#history del, #history ins"],
            ["follow", ".done a"],
            ["follow", "form.act button"],
            ["read", ".text"],
            ["follow", "a.grave"],
            ["follow", "form.act button"],
            ["read", ".done"],
            ["open", f"{url}/console/browse/knowledge?tag=office"],
            ["read", ".list, .rows .facts"],
        ],
        script=False,
    )
    assert said[0].split("\n")[:2] == ["The entry is stored.", "Undo"]
    assert "Opening hours" in said[0]
    assert said[1:3] == ["nine\nten", "We open at nine."]
    assert said[3].startswith("The entry is withdrawn.")
    assert said[4].startswith("0 notes")


def test_a_person_watches_a_search_and_hears_of_what_matches(url: str, driver: Path) -> None:
    note = json.dumps({"title": "The lift is out of order", "body": "Until Friday."})
    said = walk(
        driver,
        [
            ["open", f"{url}/?q=lift+out+of+order"],
            ["follow", ".actions a"],
            ["follow", "form.act button"],
            ["read", ".done"],
            ["post", f"{url}/knowledge", note],
            ["wait", "::-p-text(The lift is out of order)"],
            ["read", "[aria-labelledby=told-title] h3"],
            ["follow", ".actions a.grave"],
            ["follow", "form.act button"],
            ["read", ".done"],
        ],
    )
    assert said == ["It is watched from now on.\nUndo", "The lift is out of order came", "The watch is removed."]


def test_a_person_signs_in_and_out_without_a_script(driver: Path, tmp_path: Path) -> None:
    made = run(["keys", "create", "--org", "acme", "--agent", "ann", "--scope", "knowledge:read", "--json"], tmp_path)
    serve = ["-m", "refdesk", "serve", "--toolset", "knowledge", "--port", "0"]
    with start(serve, tmp_path, REFDESK_EMBEDDER="hashing") as server:
        address = server.read_log("listening")["url"]
        said = walk(
            driver,
            [
                ["open", f"{address}/console/browse/knowledge?age=7d"],
                ["where"],
                ["write", "input[name=key]", json.loads(made.stdout)["key"]],
                ["follow", "main button"],
                ["where"],
                ["read", "nav button"],
                ["follow", "nav button"],
                ["read", "nav"],
            ],
            script=False,
        )
    assert said[0].startswith("/console/sign-in")
    assert said[1:3] == ["/console/browse/knowledge?age=7d", "Sign out ann"]
    assert "Sign in" in said[3]


@pytest.mark.parametrize("script", [True, False])
def test_a_link_of_another_site_opens_for_who_is_signed_in(driver: Path, tmp_path: Path, script: bool) -> None:
    made = run(["keys", "create", "--org", "acme", "--agent", "ann", "--scope", "knowledge:read", "--json"], tmp_path)
    serve = ["-m", "refdesk", "serve", "--toolset", "knowledge", "--port", "0"]
    pages = tmp_path / "pages"
    pages.mkdir()
    with start(serve, tmp_path, REFDESK_EMBEDDER="hashing") as server, host_page(pages) as other:
        address = server.read_log("listening")["url"]
        (pages / "index.html").write_text(
            f'<!doctype html><link rel="icon" href="data:,"><a href="{address}/console/browse/knowledge?age=7d">x</a>'
        )
        said = walk(
            driver,
            [
                ["keep", "refdesk_key", json.loads(made.stdout)["key"], address],
                ["open", other.replace("127.0.0.1", "localhost")],
                ["follow", "a"],
                ["wait", "h1::-p-text(Browse)"],
                ["where"],
                ["read", "nav button"],
            ],
            script=script,
        )
    assert said == ["/console/browse/knowledge?age=7d", "Sign out ann"]


@pytest.mark.parametrize("script", [True, False])
def test_a_form_outlives_the_sign_in(driver: Path, tmp_path: Path, script: bool) -> None:
    scopes = ["--scope", "knowledge:read", "--scope", "knowledge:write"]
    made = run(["keys", "create", "--org", "acme", "--agent", "ann", *scopes, "--json"], tmp_path)
    serve = ["-m", "refdesk", "serve", "--toolset", "knowledge", "--port", "0"]
    with start(serve, tmp_path, REFDESK_EMBEDDER="hashing") as server:
        address, key = server.read_log("listening")["url"], json.loads(made.stdout)["key"]
        said = walk(
            driver,
            [
                ["keep", "refdesk_key", key, address],
                ["open", f"{address}/console/do/store_knowledge"],
                ["write", "input[name=title]", "An hour of work"],
                ["write", "textarea", "Every word of it."],
                ["keep", "refdesk_key", "expired", address],
                ["follow", "form.act button"],
                ["check"],
                ["read", "[role=alert]"],
                ["keep", "refdesk_key", key, address],
                ["follow", "form.act button"],
                ["read", "h1, .text"],
            ],
            script=script,
        )
    assert said[0] == ""
    assert said[1].startswith("You are not signed in any more")
    assert said[2] == "An hour of work\nEvery word of it."


def test_pages_say_everything_without_a_script(url: str) -> None:
    found = read(url, "/?q=weight+trap+picture")
    assert found.count('class="result"') >= 3
    assert "knowledge" in found
    assert "Who was asked" in found
    shown = read(url, find_entry(url))
    assert "As agents read it" in shown
    assert "<strong>weight</strong>" in shown
    assert '<a href="https://example.com/a" rel="noopener noreferrer nofollow">a page</a>' in shown


def test_nothing_that_is_stored_becomes_markup(url: str) -> None:
    for page in (read(url, "/?q=weight+trap+picture"), read(url, find_entry(url))):
        assert re.findall(r"<script(?! src=\"/assets/)", page) == []
        assert re.findall(r"<(?:img(?! src=./assets/)|iframe|b |svg(?! class=.(?:rail|star)))", page) == []
        assert re.findall(r"<[^>]*(?:\shref=.javascript|\son\w+=)", page) == []
        assert "\u202e" not in page


def test_a_wide_table_scrolls_and_breaks_no_word(url: str, driver: Path) -> None:
    said = walk(
        driver, [["open", url + find_entry(url, "zanzibar+deep")], ["read", ".text th"], ["broken", ".text th"]]
    )
    assert "column39" in said[0]
    assert said[1] == ""


def test_an_operation_is_tried_by_keyboard_and_a_mistake_is_answered(url: str, driver: Path) -> None:
    form = "#post-knowledge-search form.try"
    flow: list[list[str]] = [
        ["open", f"{url}/docs"],
        ["write", f"{form} textarea", '{"query": "refund"}'],
        ["press", "Tab"],
        ["press", "Enter"],
        ["wait", f"{form} .answer:not([hidden])"],
        ["read", f"{form} .took, {form} .answer"],
        ["focused"],
        ["write", f"{form} textarea", "{nonsense"],
        ["press", "Tab"],
        ["press", "Enter"],
        ["wait", f"{form} .took::-p-text(400 in)"],
        ["read", f"{form} .answer"],
    ]
    said = visit(driver, {"flow": {"script": True, "steps": flow}})["flow"]["said"]
    assert said[0].startswith("200 in ")
    assert '"results": [' in said[0]
    assert said[1] == "Send"
    assert "INVALID_INPUT" in said[2]
