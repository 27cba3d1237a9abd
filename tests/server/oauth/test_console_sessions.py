"""Staying signed in to the console: access tokens are renewed behind it, and what renews them is never given away."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlsplit

import anyio
import pytest

from refdesk import errors
from refdesk.core.clock import FixedClock
from refdesk.server.oauth import sessions
from refdesk.server.oauth.configuration import read_oauth
from tests.emulators.issuer import TOKEN_SECONDS, RunningIssuer
from tests.server.conftest import URL
from tests.server.echo import make_settings
from tests.server.oauth.samples import make_claims
from tests.server.oauth.test_console_sign_in import BACK, CHOSEN, CLIENT, SECRET, WANTED, Browser
from tests.server.oauth.test_sign_in import bearer, open_for, search, serve
from tests.server.test_console import sign_in as sign_in_with_key
from tests.server.test_keys import make_key as make_api_key

DUE = timedelta(seconds=TOKEN_SECONDS) - sessions.LEAD
PAST = timedelta(seconds=TOKEN_SECONDS + 120)


@asynccontextmanager
async def open_browser(home: Path, issuer: RunningIssuer, **chosen: object) -> AsyncGenerator[Browser]:
    clock = FixedClock(datetime.now(UTC))
    await register(issuer, clock)
    async with open_for(home, issuer, **CHOSEN, **chosen) as desk, serve(desk, clock) as server:
        yield Browser(server, issuer, clock)


@pytest.fixture
async def browser(tmp_path: Path, issuer: RunningIssuer) -> AsyncGenerator[Browser]:
    async with open_browser(tmp_path, issuer) as opened:
        assert (await opened.go()).status_code == 200
        yield opened


async def register(issuer: RunningIssuer, clock: FixedClock, **more: object) -> None:
    now = int(clock.now().timestamp())
    await issuer.register(CLIENT, BACK, SECRET, **{"refreshes": True, "now": now, **more})


async def advance(browser: Browser, by: timedelta, **more: object) -> None:
    """Let time pass for the server and for the issuer."""
    browser.clock.advance(by)
    await register(browser.issuer, browser.clock, **more)


async def list_sent(issuer: RunningIssuer, path: str) -> list[dict[str, str]]:
    """Return the forms that were sent to an address of the issuer's."""
    asked = [request for request in await issuer.requests() if str(request["path"]).endswith(path)]
    return [dict(parse_qsl(str(request["body"]))) for request in asked]


def read_all(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_who_is_signed_in_stays_so_past_the_end_of_the_access_token(browser: Browser) -> None:
    first = browser.server.cookies["refdesk_key"]
    for number in range(3):
        await advance(browser, PAST)
        shown = await browser.server.get(WANTED)
        assert (shown.status_code, "Sign out oauth-" in shown.text) == (200, True)
        [kept] = shown.headers.get_list("set-cookie")
        assert all(part in kept for part in ("refdesk_key=eyJ", "HttpOnly", "SameSite=strict", "Path=/"))
        assert len(await list_sent(browser.issuer, "/token")) == 2 + number
    assert browser.server.cookies["refdesk_key"] != first


async def test_a_token_is_renewed_when_it_is_about_to_end_and_not_before(browser: Browser) -> None:
    await advance(browser, DUE - timedelta(seconds=5))
    assert "set-cookie" not in (await browser.server.get(WANTED)).headers
    await advance(browser, timedelta(seconds=10))
    assert "set-cookie" in (await browser.server.get(WANTED)).headers
    assert "set-cookie" not in (await browser.server.get(WANTED)).headers
    [_, renewed] = await list_sent(browser.issuer, "/token")
    assert (renewed["grant_type"], renewed["resource"]) == ("refresh_token", f"{URL}/mcp")


async def test_the_browser_never_has_what_renews_it(
    tmp_path: Path, issuer: RunningIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with open_browser(tmp_path, issuer) as browser:
            answers = [await browser.go()]
            for _ in range(2):
                await advance(browser, PAST)
                answers.append(await browser.server.get(WANTED))
            answers.append(await browser.server.post("/console/sign-out"))
    secrets = [form["refresh_token"] for form in await list_sent(issuer, "/token") if "refresh_token" in form]
    secrets += [form["token"] for form in await list_sent(issuer, "/revoke")]
    assert len(set(secrets)) == 3
    given = "".join(answer.text + str(answer.headers) for answer in answers)
    logged = "".join(str(vars(record)) for record in caplog.records if record.name.startswith("refdesk"))
    stored = read_all(tmp_path)
    for secret in secrets:
        assert secret not in given
        assert secret not in logged
        assert secret.encode() not in stored
    session = next(each for each in answers[0].headers.get_list("set-cookie") if each.startswith("refdesk_session="))
    assert all(part in session for part in ("HttpOnly", "SameSite=strict", "Path=/"))


async def test_tabs_that_ask_at_once_renew_once(browser: Browser) -> None:
    """A refresh token counts once: one that is brought again ends the session at the issuer."""
    await advance(browser, PAST)
    statuses: list[int] = []

    async def ask() -> None:
        statuses.append((await browser.server.get(WANTED)).status_code)

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(ask)
    assert statuses == [200] * 10
    assert len(await list_sent(browser.issuer, "/token")) == 2
    await advance(browser, PAST)
    assert (await browser.server.get(WANTED)).status_code == 200


async def test_new_keys_of_the_issuer_sign_nobody_out_whatever_tokens_others_send(browser: Browser) -> None:
    for n in range(5):
        claims = make_claims(iss=browser.issuer.url)
        wrong = bearer(await browser.issuer.sign(claims, kid=f"random-{n}"))
        assert (await search(browser.server, wrong)).status_code == 401
    await browser.issuer.set_keys(["rsa-2"], made={"rsa-2": "RS256"})
    await advance(browser, DUE + timedelta(seconds=1))
    for _ in range(2):
        assert (await browser.server.get(WANTED)).status_code == 200
        await advance(browser, PAST)


async def test_a_tab_that_goes_away_takes_no_token_along(browser: Browser) -> None:
    await advance(browser, PAST)
    await browser.issuer.set_faults([{"fault": "drip", "path": "/token", "chunk_bytes": 200, "delay_seconds": 0.1}])
    with anyio.CancelScope() as tab:
        async with anyio.create_task_group() as group:
            group.start_soon(browser.server.get, WANTED)
            while len(await list_sent(browser.issuer, "/token")) < 2:  # noqa: ASYNC110 - of another process
                await anyio.sleep(0.01)
            tab.cancel()
    await browser.issuer.set_faults([])
    assert (await browser.server.get(WANTED)).status_code == 200
    assert len(await list_sent(browser.issuer, "/token")) == 2


async def test_signing_out_gives_the_token_back(browser: Browser) -> None:
    kept = dict(browser.server.cookies)
    out = await browser.server.post("/console/sign-out")
    assert {each.partition("=")[0] for each in out.headers.get_list("set-cookie")} == {"refdesk_key", "refdesk_session"}
    assert all("Max-Age=0" in each for each in out.headers.get_list("set-cookie"))
    [given_back] = await list_sent(browser.issuer, "/revoke")
    assert given_back["token_type_hint"] == "refresh_token"
    assert not browser.server.cookies
    await advance(browser, PAST)
    browser.server.cookies.update(kept)
    assert (await browser.server.get(WANTED)).status_code == 303
    assert len(await list_sent(browser.issuer, "/token")) == 1


async def test_signing_out_works_after_the_end_of_the_token_and_while_the_issuer_is_away(browser: Browser) -> None:
    await advance(browser, PAST)
    await browser.issuer.set_faults([{"fault": "status", "path": "/revoke", "status": 503}])
    assert (await browser.server.post("/console/sign-out")).status_code == 303
    assert not browser.server.cookies
    assert len(await list_sent(browser.issuer, "/revoke")) == 1


async def test_when_the_issuer_ends_the_session_so_does_the_console(browser: Browser) -> None:
    await advance(browser, PAST)
    await browser.issuer.set_faults([{"fault": "status", "path": "/token", "status": 400}])
    first = await browser.server.get(WANTED)
    assert (first.status_code, "again=1" in first.headers["location"]) == (303, True)
    await browser.issuer.set_faults([])
    assert (await browser.server.get(WANTED)).status_code == 303


@pytest.mark.parametrize("fault", ["reset", "status"])
async def test_an_issuer_that_is_away_signs_nobody_out(browser: Browser, fault: str) -> None:
    await advance(browser, DUE + timedelta(seconds=1))
    await browser.issuer.set_faults([{"fault": fault, "path": "/token", "status": 503}])
    for _ in range(3):
        assert (await browser.server.get(WANTED)).status_code == 200
    assert len(await list_sent(browser.issuer, "/token")) == 2, "it is asked again for each page"
    await advance(browser, PAST)
    assert (await browser.server.get(WANTED)).status_code == 303
    await browser.issuer.set_faults([])
    await advance(browser, sessions.AFTER_FAILURE)
    assert (await browser.server.get(WANTED)).status_code == 200, "it goes on once the issuer is back"


async def test_a_renewal_whose_token_cannot_be_checked_yet_signs_nobody_out(browser: Browser) -> None:
    """The issuer has used up the refresh token by then, and gives the next one once."""
    await browser.issuer.set_keys(["rsa-2"], made={"rsa-2": "RS256"})
    await browser.issuer.set_faults([{"fault": "status", "path": "/jwks", "status": 503}])
    await advance(browser, DUE + timedelta(seconds=1))
    assert (await browser.server.get(WANTED)).status_code == 200, "the token before goes on while it may"
    await browser.issuer.set_faults([])
    await advance(browser, PAST)
    assert (await browser.server.get(WANTED)).status_code == 200
    forms = [form for form in await list_sent(browser.issuer, "/token") if "refresh_token" in form]
    assert len({form["refresh_token"] for form in forms}) == len(forms) == 2


async def test_a_token_of_somebody_else_renews_nothing(browser: Browser) -> None:
    await advance(browser, PAST, claims={"sub": "eve"})
    assert (await browser.server.get(WANTED)).status_code == 303
    await advance(browser, timedelta(0))
    assert (await browser.server.get(WANTED)).status_code == 303


async def test_a_key_ends_the_session_before_it(tmp_path: Path, issuer: RunningIssuer) -> None:
    clock = FixedClock(datetime.now(UTC))
    await register(issuer, clock)
    async with open_for(tmp_path, issuer, **CHOSEN) as desk, serve(desk, clock) as server:
        browser = Browser(server, issuer, clock)
        await browser.go()
        await sign_in_with_key(server, await make_api_key(desk), WANTED)
        assert "refdesk_session" not in server.cookies
        assert len(await list_sent(issuer, "/revoke")) == 1
        await advance(browser, PAST)
        shown = await server.get(WANTED)
        assert (shown.status_code, "Sign out ann" in shown.text) == (200, True)


async def test_who_signs_in_without_a_session_has_none_of_who_was_there_before(browser: Browser) -> None:
    await register(browser.issuer, browser.clock, refreshes=False, claims={"sub": "bob"})
    back = await browser.go()
    assert any('refdesk_session=""' in each and "Max-Age=0" in each for each in back.headers.get_list("set-cookie"))
    await advance(browser, PAST)
    assert (await browser.server.get(WANTED)).status_code == 303


@pytest.mark.parametrize("name", ["", "x", "ä", "x" * 5000])
async def test_a_name_that_is_no_sessions_opens_nothing(browser: Browser, name: str) -> None:
    browser.server.cookies.clear()
    headers = [(b"cookie", f"refdesk_session={name}".encode())]
    assert (await browser.server.get(WANTED, headers=headers)).status_code == 303


async def test_the_console_alone_asks_for_offline_access(tmp_path: Path, issuer: RunningIssuer) -> None:
    chosen = {"oauth_console_more_scopes": "offline_access", "oauth_more_scopes": "organization"}
    async with open_browser(tmp_path, issuer, **chosen) as browser:
        [asked] = parse_qs(urlsplit(await browser.begin()).query)["scope"]
        metadata = (await browser.server.get("/.well-known/oauth-protected-resource")).json()
    assert asked.split() == [*metadata["scopes_supported"], "offline_access"]


def test_more_scopes_of_a_console_that_is_no_client_are_refused(tmp_path: Path) -> None:
    chosen = {"oauth_issuer": "https://id.example.com", "oauth_audience": f"{URL}/mcp", "oauth_org": "acme"}
    more = {"oauth_console_more_scopes": "offline_access"}
    with pytest.raises(errors.ConfigurationError, match="CONSOLE_CLIENT_ID"):
        read_oauth(make_settings(tmp_path, **chosen, **more))
    with pytest.raises(errors.ConfigurationError, match="CONSOLE_MORE_SCOPES lists names"):
        read_oauth(make_settings(tmp_path, **chosen, oauth_console_client_id="app", oauth_console_more_scopes='a "b"'))


async def test_an_issuer_that_takes_nothing_back_is_not_asked_to(browser: Browser) -> None:
    await browser.issuer.describe(revocation_endpoint="http://elsewhere.example/revoke")
    browser.clock.advance(timedelta(hours=2))  # what it said of itself before is not kept so long
    assert (await browser.server.post("/console/sign-out")).status_code == 303
    assert await list_sent(browser.issuer, "/revoke") == []


async def test_sessions_that_nobody_uses_are_forgotten(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    await advance(browser, sessions.UNUSED)
    assert (await browser.server.get(WANTED)).status_code == 303
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 1)
    await browser.go()
    first = dict(browser.server.cookies)
    await browser.go()
    await advance(browser, PAST)
    assert (await browser.server.get(WANTED)).status_code == 200
    browser.server.cookies.clear()
    browser.server.cookies.update(first)
    assert (await browser.server.get(WANTED)).status_code == 303
