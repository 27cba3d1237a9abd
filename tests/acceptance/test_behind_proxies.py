"""A server that a reverse proxy shows under a path: every page and every way to call it works there."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import anyio.to_thread
import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests.acceptance.console_world import SCOPES, write_notes
from tests.acceptance.driver import install, walk
from tests.acceptance.processes import WAIT_SECONDS, run, start
from tests.acceptance.reverse_proxies import PREFIX, run_proxy
from tests.acceptance.test_sign_in import Pocket, find_port
from tests.emulators.issuer import CLIENT, CLIENT_SECRET, running_issuer

pytestmark = pytest.mark.timeout(600)

KINDS = ("stripped", "kept", "nginx", "caddy")


@dataclass(frozen=True)
class World:
    """A server as clients reach it, and directly, with a key for it."""

    url: str
    direct: str
    key: str
    home: Path

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}


@pytest.fixture(scope="module", params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    home, port = tmp_path_factory.mktemp("home"), find_port()
    scopes = [part for scope in (*SCOPES, "admin") for part in ("--scope", scope)]
    made = run(["keys", "create", "--org", "acme", "--agent", "ann", *scopes, "--json"], home)
    key, url = json.loads(made.stdout)["key"], f"http://127.0.0.1:{port}{PREFIX}"
    variables = {"REFDESK_EMBEDDER": "hashing", "REFDESK_PUBLIC_URL": url, "REFDESK_TRUSTED_PROXIES": "127.0.0.1"}
    with start(["-m", "refdesk", "serve", "--port", "0", "--sse"], home, **variables) as server:
        direct: str = server.read_log("listening")["url"]
        with run_proxy(request.param, port, urlsplit(direct).netloc, home / "proxy"):
            write_notes(url, key)
            yield World(url, direct, key, home)


@pytest.fixture(scope="module")
def driver(pytestconfig: pytest.Config) -> Path:
    return install(pytestconfig)


def list_addresses(page: str) -> list[str]:
    """Return what a page links to, sends its forms to, or is made of, as addresses of its own host."""
    found = [html.unescape(each) for each in re.findall(r'\s(?:href|src|action)="([^"#]+)', page)]
    return [each for each in found if not urlsplit(each).scheme]


def test_every_address_that_any_page_leads_to_is_below_the_path_and_answers(world: World) -> None:
    waiting, seen = [f"{PREFIX}/", f"{PREFIX}/docs", f"{PREFIX}/console/nowhere"], set[tuple[str, ...]]()
    with httpx2.Client(cookies={"refdesk_key": world.key}, timeout=WAIT_SECONDS, follow_redirects=True) as client:
        while waiting:
            address = waiting.pop()
            parts = urlsplit(address)
            form = (parts.path, *sorted(name for name, _ in parse_qsl(parts.query)))
            if form in seen or parts.path.endswith("/sign-out"):
                continue
            seen.add(form)
            answer = client.get(urljoin(world.url, address))
            assert (answer.status_code == 404) == address.endswith("nowhere"), address
            if "text/html" in answer.headers["content-type"]:
                found = list_addresses(answer.text)
                assert [each for each in found if not each.startswith(f"{PREFIX}/")] == []
                waiting += found
    assert len(seen) > 25


def test_a_person_signs_in_searches_writes_and_signs_out(world: World, driver: Path) -> None:
    said = walk(
        driver,
        [
            ["open", f"{world.url}/console/browse/knowledge?age=7d"],
            ["where"],
            ["write", "input[name=key]", world.key],
            ["follow", "main button"],
            ["where"],
            ["follow", ".heading .button"],
            ["write", "input[name=title]", "Opening hours"],
            ["write", "textarea", "We open at nine."],
            ["follow", "form.act button"],
            ["read", "h1"],
            ["follow", "a.home"],
            ["write", "#q", "opening"],
            ["follow", "form.search button"],
            ["where"],
            ["follow", "a.result"],
            ["read", "h1"],
            ["follow", "nav button"],
            ["where"],
            ["read", "nav"],
        ],
        script=False,
    )
    assert said[0].startswith(f"{PREFIX}/console/sign-in?next=%2Fconsole%2Fbrowse")
    assert said[1] == f"{PREFIX}/console/browse/knowledge?age=7d"
    assert said[2] == "Opening hours"
    assert said[3] == f"{PREFIX}/?q=opening"
    assert said[4:6] == ["Opening hours", f"{PREFIX}/"]
    assert "Sign in" in said[6]


def test_an_open_page_hears_of_what_others_write_and_docs_try_an_operation(world: World, driver: Path) -> None:
    note = json.dumps({"title": "Written by somebody else", "body": "Just now.", "tags": ["live"]})
    said = walk(
        driver,
        [
            ["keep", "refdesk_key", world.key, f"{world.url}/"],
            ["open", f"{world.url}/console/browse/knowledge?tag=live"],
            ["post", f"{world.url}/knowledge", note, world.key],
            ["wait", "::-p-text(Written by somebody else)"],
            ["open", f"{world.url}/docs"],
            ["write", "#key", world.key],
            ["write", "#post-knowledge-search textarea", '{"query": "refund"}'],
            ["click", "#post-knowledge-search button"],
            ["wait", "#post-knowledge-search .answer:not([hidden])"],
            ["read", "#post-knowledge-search .took"],
        ],
    )
    assert said[0].startswith("200 in ")


def test_cookies_are_sent_below_the_path_alone(world: World) -> None:
    signed_in = httpx2.post(
        f"{world.url}/console/sign-in?next=/console/browse",
        data={"key": world.key},
        headers={"origin": world.url.removesuffix(PREFIX)},
    )
    assert signed_in.headers["location"] == f"{PREFIX}/console/browse"
    cookies = signed_in.headers.get_list("set-cookie")
    assert [re.search("(?i)path=([^;]*)", each)[1] for each in cookies] == [PREFIX] * 2  # pyright: ignore[reportOptionalSubscript]


def test_the_cookie_of_another_server_on_the_host_does_not_stand_in_the_way(world: World) -> None:
    cookies = {"cookie": f"refdesk_key={world.key}; refdesk_key=refdesk_of-the-other"}
    assert "Sign out ann" in httpx2.get(f"{world.url}/console/browse/knowledge", headers=cookies).text


def test_redirects_of_the_framework_stay_below_the_path(world: World) -> None:
    redirected = httpx2.get(f"{world.url}/docs/", headers=world.headers)
    assert redirected.headers["location"] == f"{PREFIX}/docs"


def test_the_local_link_signs_in(world: World) -> None:
    opened = run(["open", "--print"], world.home)
    address = opened.stdout.strip()
    assert address.startswith(f"{world.direct}{PREFIX}/console/sign-in?ticket=")
    with httpx2.Client(follow_redirects=True, timeout=WAIT_SECONDS) as client:
        assert "Sign out" in client.get(address).text


def test_what_machines_read_names_the_public_url(world: World) -> None:
    assert httpx2.get(f"{world.url}/openapi.json").json()["servers"] == [{"url": world.url}]
    feed = httpx2.get(f"{world.url}/watches/news.atom", headers=world.headers)
    assert f'href="{world.url}/watches/news.atom"' in feed.text


async def test_mcp_answers_over_both_transports(world: World) -> None:
    async with (
        httpx2.AsyncClient(headers=world.headers, timeout=WAIT_SECONDS) as http,
        Client(streamable_http_client(f"{world.url}/mcp", http_client=http)) as client,
    ):
        await check_search(client)
    async with Client(sse_client(f"{world.url}/sse", headers=world.headers)) as client:
        await check_search(client)


async def check_search(client: Client) -> None:
    found: Any = (await client.call_tool("search_knowledge", {"query": "customs form"})).structured_content
    assert found["results"][0]["title"] == "Shipping to Norway needs a customs form"


@pytest.mark.parametrize("kind", ["stripped", "kept"])
async def test_people_and_clients_sign_in_with_the_issuer(kind: str, driver: Path, tmp_path: Path) -> None:
    port, proxy_port = find_port(), find_port()
    url, wanted = f"http://127.0.0.1:{proxy_port}{PREFIX}", f"{PREFIX}/console/browse/knowledge?age=7d"
    # Another host, so that it is another site to the browser.
    async with running_issuer("/realms/desk", "localhost") as issuer:
        await issuer.register("console", f"{url}/console/sign-in/return")
        variables = {
            "REFDESK_EMBEDDER": "hashing",
            "REFDESK_PUBLIC_URL": url,
            "REFDESK_OAUTH_ISSUER": issuer.url,
            "REFDESK_OAUTH_AUDIENCE": f"{url}/mcp",
            "REFDESK_OAUTH_CONSOLE_CLIENT_ID": "console",
        }
        arguments = ["-m", "refdesk", "serve", "--toolset", "knowledge", "--port", str(port)]
        with start(arguments, tmp_path / "home", **variables) as server:
            server.read_log("listening")
            with run_proxy(kind, proxy_port, f"127.0.0.1:{port}", tmp_path / "proxy"):
                steps = [
                    ["open", urljoin(url, wanted)],
                    ["follow", "main .actions a"],
                    ["click", "#yes"],
                    ["wait", "nav button"],
                    ["where"],
                    ["follow", "nav button"],
                    ["where"],
                    ["read", "nav"],
                ]
                said = await anyio.to_thread.run_sync(walk, driver, steps)
                await check_that_a_client_finds_the_issuer(url, issuer.url)
    assert said[:2] == [wanted, f"{PREFIX}/"]
    assert "Sign in" in said[2]


async def check_that_a_client_finds_the_issuer(url: str, issuer: str) -> None:
    """Sign in by what a proxy lets through that knows of nothing but the path."""
    provider = ClientCredentialsOAuthProvider(f"{url}/mcp", Pocket(), CLIENT, CLIENT_SECRET, issuer=issuer)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=WAIT_SECONDS) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        assert "search_knowledge" in [tool.name for tool in (await client.list_tools()).tools]
