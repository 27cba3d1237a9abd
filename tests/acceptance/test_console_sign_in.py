"""Signing in to the console with an issuer, in a real browser: the server and the issuer as processes."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import anyio.to_thread
import pytest

from tests.acceptance.driver import install, walk
from tests.acceptance.processes import run, start
from tests.acceptance.test_sign_in import find_port
from tests.emulators.issuer import RunningIssuer, running_issuer

pytestmark = pytest.mark.timeout(600)

WANTED = "/console/browse/knowledge?age=7d"
BY_ISSUER = "main .actions a"


@dataclass(frozen=True)
class World:
    """A server that people of an issuer may sign in to, and a browser."""

    url: str
    issuer: RunningIssuer
    driver: Path
    home: Path

    async def walk(self, *steps: list[str], script: bool = True) -> list[str]:
        return await anyio.to_thread.run_sync(partial(walk, self.driver, list(steps), script=script))


@asynccontextmanager
async def open_world(home: Path, driver: Path) -> AsyncGenerator[World]:
    port = find_port()
    url = f"http://127.0.0.1:{port}"
    # Another host, so that it is another site to the browser: two ports of one host are not.
    async with running_issuer("/realms/desk", "localhost") as issuer:
        await issuer.register("console", f"{url}/console/sign-in/return")
        variables = {
            "REFDESK_EMBEDDER": "hashing",
            "REFDESK_OAUTH_ISSUER": issuer.url,
            "REFDESK_OAUTH_AUDIENCE": f"{url}/mcp",
            "REFDESK_OAUTH_AGENT_PREFIX": "sso:",
            "REFDESK_OAUTH_CONSOLE_CLIENT_ID": "console",
        }
        arguments = ["-m", "refdesk", "serve", "--toolset", "knowledge", "--port", str(port)]
        with start(arguments, home, **variables) as server:
            server.read_log("listening")
            yield World(url, issuer, driver, home)
            server.process.terminate()
            log = server.close()[2]
            assert "eyJ" not in log
            assert "code=" not in log


@pytest.fixture(scope="module")
async def world(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    driver = install(pytestconfig)
    async with open_world(tmp_path_factory.mktemp("home"), driver) as opened:
        yield opened


@pytest.mark.parametrize("script", [True, False])
async def test_a_person_signs_in_with_the_issuer_and_is_where_they_wanted_to_go(world: World, script: bool) -> None:
    said = await world.walk(
        ["open", f"{world.url}{WANTED}"],
        ["check"],
        ["read", BY_ISSUER],
        ["follow", BY_ISSUER],
        ["click", "#yes"],
        ["wait", "nav button"],
        ["where"],
        ["read", "nav button"],
        ["follow", "nav .home, .home"],
        ["read", "nav button"],
        ["follow", "nav button"],
        ["open", f"{world.url}{WANTED}"],
        ["where"],
        script=script,
    )
    assert said[0] == ""
    assert said[1] == f"Sign in with {world.issuer.url.split('/')[2]}"
    assert said[2:5] == [WANTED, "Sign out sso:ann", "Sign out sso:ann"]
    assert said[5].startswith("/console/sign-in?")


async def test_who_refuses_may_sign_in_with_a_key_on_the_same_page(world: World) -> None:
    made = run(["keys", "create", "--org", "acme", "--agent", "bob", "--scope", "knowledge:read", "--json"], world.home)
    said = await world.walk(
        ["open", f"{world.url}{WANTED}"],
        ["follow", BY_ISSUER],
        ["follow", "#no"],
        ["check"],
        ["read", "[role=alert]"],
        ["write", "input[name=key]", json.loads(made.stdout)["key"]],
        ["follow", "main form button"],
        ["where"],
        ["read", "nav button"],
    )
    assert said[0] == ""
    assert "access was denied" in said[1]
    assert said[2:] == [WANTED, "Sign out bob"]


async def test_a_token_that_has_expired_leads_back_by_one_click(world: World) -> None:
    now = int(time.time())
    facts = {"iss": world.issuer.url, "aud": f"{world.url}/mcp", "sub": "ann", "client_id": "console", "org_id": "acme"}
    expired = await world.issuer.sign({**facts, "scope": "knowledge:read", "iat": now - 900, "exp": now - 600})
    said = await world.walk(
        ["keep", "refdesk_key", expired, world.url],
        ["open", f"{world.url}{WANTED}"],
        ["read", "[role=alert]"],
        ["follow", BY_ISSUER],
        ["click", "#yes"],
        ["wait", "nav button"],
        ["where"],
    )
    assert "your sign-in has expired" in said[0]
    assert said[1] == WANTED


async def test_a_browser_that_began_nothing_takes_nobody_elses_answer(world: World) -> None:
    forged = urlencode({"code": "x", "state": "s" * 43, "iss": world.issuer.url})
    said = await world.walk(
        ["open", f"{world.url}/console/sign-in/return?{forged}"],
        ["where"],
        ["read", "[role=alert]"],
        ["open", f"{world.url}{WANTED}"],
        ["where"],
    )
    assert said[0] == "/console/sign-in?next=%2F&problem=lost"
    assert "not begun in this browser" in said[1]
    assert said[2].startswith("/console/sign-in?")
