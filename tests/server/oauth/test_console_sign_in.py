"""Signing in to the console with an issuer: what goes to and fro, and what whoever means no good gets out of it."""

from __future__ import annotations

import logging
import sys
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlencode, urljoin, urlsplit

import httpx2
import pytest

from refdesk.app import Desk
from refdesk.cli.doctor import check_sign_in
from refdesk.core.clock import FixedClock
from refdesk.server.console import issuer_sign_in
from refdesk.server.console.issuer_sign_in import MOST_BEGUN
from refdesk.server.oauth import code_flow
from tests.emulators.issuer import EVERYWHERE, RunningIssuer, running_issuer
from tests.server.conftest import URL
from tests.server.echo import make_settings
from tests.server.oauth.samples import make_claims
from tests.server.oauth.test_sign_in import open_for, serve
from tests.server.test_console import sign_in as sign_in_with_key
from tests.server.test_keys import make_key as make_api_key

BEGIN, BACK = "/console/sign-in/issuer", f"{URL}/console/sign-in/return"
WANTED = "/console/browse/knowledge?age=7d"
CLIENT, SECRET = "refdesk console", "a secret: 100%"
CHOSEN: dict[str, object] = {
    "oauth_audience": f"{URL}/mcp",
    "oauth_console_client_id": CLIENT,
    "oauth_console_client_secret": SECRET,
}


@dataclass(frozen=True)
class Browser:
    """A browser, as far as cookies and redirects go: it sends none that is for the same site along from another."""

    server: httpx2.AsyncClient
    issuer: RunningIssuer
    clock: FixedClock

    @property
    def kept(self) -> str:
        """What the browser keeps of the only sign-in that it has begun."""
        [kept] = [value for name, value in self.server.cookies.items() if name.startswith("refdesk_sign_in_")]
        return kept

    async def begin(self, then: str = WANTED) -> str:
        """Return where the issuer is asked."""
        sent = await self.server.get(BEGIN, params={"next": then})
        assert (sent.status_code, sent.headers["referrer-policy"]) == (303, "no-referrer")
        return sent.headers["location"]

    async def answer(self, address: str, answer: str = "yes") -> str:
        """Return where the issuer sends back to."""
        async with httpx2.AsyncClient() as http:
            page = await http.get(address)
            assert page.status_code == 200, page.text
            link = page.text.partition(f'id="{answer}" href="')[2].partition('"')[0].replace("&amp;", "&")
            return (await http.get(urljoin(address, link))).headers["location"]

    async def go(self, then: str = WANTED, answer: str = "yes") -> httpx2.Response:
        """Sign in, and return what the browser is told when it is back."""
        return await self.server.get(await self.answer(await self.begin(then), answer))

    async def read_problem(self, back: httpx2.Response) -> str:
        """Return what a person is told, and how, when nobody was signed in."""
        assert (back.status_code, back.headers["referrer-policy"]) == (303, "no-referrer")
        assert back.headers["cache-control"] == "no-store"
        assert "refdesk_key" not in back.headers.get("set-cookie", "")
        place = urlsplit(back.headers["location"])
        assert (place.netloc, place.path) == ("", "/console/sign-in")
        page = await self.server.get(back.headers["location"])
        assert page.status_code == 200
        assert page.headers["referrer-policy"] == "same-origin"
        return page.text.partition('role="alert">')[2].partition("<")[0]


@pytest.fixture
async def desk(tmp_path: Path, issuer: RunningIssuer) -> AsyncGenerator[Desk]:
    async with open_for(tmp_path, issuer, **CHOSEN) as opened:
        yield opened


@pytest.fixture
async def browser(desk: Desk, issuer: RunningIssuer) -> AsyncGenerator[Browser]:
    await issuer.register(CLIENT, BACK, SECRET)
    clock = FixedClock(datetime.now(UTC))
    async with serve(desk, clock) as server:
        yield Browser(server, issuer, clock)


async def test_a_person_is_asked_at_the_issuer_and_let_in(browser: Browser) -> None:
    led = await browser.server.get(WANTED)
    page = await browser.server.get(led.headers["location"])
    link = f"{URL}{BEGIN}?{urlencode({'next': WANTED})}"
    assert f'href="{link}">Sign in with {urlsplit(browser.issuer.url).netloc}</a>' in page.text
    address = await browser.answer(await browser.begin())
    back = await browser.server.get(address)
    assert (back.status_code, back.headers["refresh"]) == (200, f"0; url={WANTED}")
    assert parse_qs(urlsplit(address).query)["code"][0] not in back.text
    assert (back.headers["cache-control"], back.headers["referrer-policy"]) == ("no-store", "no-referrer")
    kept, before, gone = back.headers.get_list("set-cookie")
    assert all(part in kept for part in ("refdesk_key=eyJ", "HttpOnly", "SameSite=strict", "Path=/"))
    assert all(part in before for part in ('refdesk_session=""', "Max-Age=0", "Path=/"))
    assert all(part in gone for part in ("refdesk_sign_in_", '=""', "Max-Age=0", "Path=/console/sign-in"))
    assert "eyJ" not in back.text
    shown = await browser.server.get(WANTED)
    assert (shown.status_code, "Sign out oauth-" in shown.text) == (200, True)
    await browser.server.post("/console/sign-out")
    assert (await browser.server.get(WANTED)).status_code == 303


async def test_what_the_issuer_is_asked_for(browser: Browser) -> None:
    sent = await browser.server.get(BEGIN, params={"next": WANTED})
    cookie = sent.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=lax", "Path=/console/sign-in", "Max-Age=600"))
    assert "Secure" not in cookie
    place = urlsplit(sent.headers["location"])
    asked = dict(parse_qsl(place.query))
    metadata = (await browser.server.get("/.well-known/oauth-protected-resource")).json()
    assert f"{place.scheme}://{place.netloc}{place.path}" == f"{browser.issuer.url}/authorize"
    assert (asked["redirect_uri"], asked["client_id"]) == (BACK, CLIENT)
    assert (asked["resource"], asked["scope"].split()) == (metadata["resource"], metadata["scopes_supported"])
    state, verifier, _ = browser.kept.split(".")
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
    assert (asked["state"], asked["code_challenge"], asked["code_challenge_method"]) == (state, challenge, "S256")
    again = dict(parse_qsl(urlsplit(await browser.begin()).query))
    assert {again["state"], again["code_challenge"]}.isdisjoint({state, challenge})


async def test_cookies_are_secure_where_the_console_is_reached_over_tls(tmp_path: Path, issuer: RunningIssuer) -> None:
    home = "https://desk.example.com"
    chosen = {"oauth_audience": f"{URL}/mcp", "oauth_console_client_id": "app", "public_url": home}
    await issuer.register("app", f"{home}/console/sign-in/return", claims={"aud": f"{URL}/mcp"})
    clock = FixedClock(datetime.now(UTC))
    hosts = {"allowed_hosts": "desk.example.com"}
    async with open_for(tmp_path, issuer, **chosen, **hosts) as desk, serve(desk, clock) as server:
        page = await server.get("/console/sign-in")
        assert f'href="{home}{BEGIN}?' in page.text
        server.base_url = home
        back = await Browser(server, issuer, clock).go()
        cookies = back.headers.get_list("set-cookie")
        assert [cookie.endswith("; Secure") for cookie in cookies] == [True] * 3
        assert (await server.get(WANTED)).status_code == 200


async def test_a_public_client_needs_no_secret(tmp_path: Path, issuer: RunningIssuer) -> None:
    await issuer.register("app", BACK)
    chosen = {"oauth_audience": f"{URL}/mcp", "oauth_console_client_id": "app"}
    clock = FixedClock(datetime.now(UTC))
    async with open_for(tmp_path, issuer, **chosen) as desk, serve(desk, clock) as server:
        assert (await Browser(server, issuer, clock).go()).status_code == 200


async def test_who_has_a_token_that_expired_is_one_click_from_where_they_were(browser: Browser) -> None:
    await browser.go()
    browser.clock.advance(timedelta(minutes=7))
    led = await browser.server.get(WANTED)
    assert (led.status_code, "Max-Age=0" in led.headers["set-cookie"]) == (303, True)
    page = await browser.server.get(led.headers["location"])
    assert "your sign-in has expired" in page.text
    assert f"{BEGIN}?{urlencode({'next': WANTED})}" in page.text


async def test_what_a_browser_kept_before_does_not_stand_in_the_way(browser: Browser) -> None:
    browser.server.cookies.set("refdesk_key", await browser.issuer.sign(make_claims(exp=1)))
    assert (await browser.go()).status_code == 200


async def test_keys_open_as_before(desk: Desk, browser: Browser) -> None:
    back = await sign_in_with_key(browser.server, await make_api_key(desk), WANTED)
    assert (back.status_code, back.headers["location"]) == (303, WANTED)
    assert (await browser.server.get(WANTED)).status_code == 200


async def test_a_state_that_is_not_the_browsers_opens_nothing_and_spoils_nothing(browser: Browser) -> None:
    address = await browser.answer(await browser.begin())
    await browser.issuer.forget_requests()
    told = parse_qs(urlsplit(address).query)
    for changed in ({"state": "forged"}, {"state": "ä"}, {"state": ""}, {"state": told["state"][0][:-1]}, {}):
        query = {"code": told["code"][0], "iss": told["iss"][0], **changed}
        said = await browser.read_problem(await browser.server.get(BACK, params=query))
        assert "not begun in this browser" in said
    assert await browser.issuer.count("/token") == 0
    assert (await browser.server.get(address)).status_code == 200


async def test_tabs_that_sign_in_at_the_same_time_each_come_back_to_where_they_were(browser: Browser) -> None:
    wanted = [f"{WANTED}?tab={n}" for n in range(MOST_BEGUN)]
    asked = [await browser.begin(then) for then in wanted]
    for address, then in zip(asked, wanted, strict=True):
        back = await browser.server.get(await browser.answer(address))
        assert (back.status_code, back.headers.get("refresh")) == (200, f"0; url={then}")
    assert not [name for name in browser.server.cookies if name.startswith("refdesk_sign_in_")]


async def test_a_browser_keeps_a_few_sign_ins_that_it_began_and_forgets_the_oldest(browser: Browser) -> None:
    asked = [await browser.begin() for _ in range(MOST_BEGUN + 2)]
    assert len(browser.server.cookies) == MOST_BEGUN
    assert "not begun" in await browser.read_problem(await browser.server.get(await browser.answer(asked[0])))
    assert (await browser.server.get(await browser.answer(asked[-1]))).status_code == 200
    assert (await browser.server.get(await browser.answer(asked[2]))).status_code == 200


async def test_somebody_elses_answer_signs_nobody_in(browser: Browser) -> None:
    """The attacker's own code and state, sent to a browser that began nothing: it would work as the attacker."""
    address = await browser.answer(await browser.begin())
    browser.server.cookies.clear()
    assert "not begun in this browser" in await browser.read_problem(await browser.server.get(address))
    assert await browser.issuer.count("/token") == 0


@pytest.mark.parametrize("kept", ["", "a.b.c", f"{'a' * 43}.{'b' * 43}.!", f"{'a' * 43}.{'b' * 43}", "x" * 5000])
async def test_a_cookie_that_is_none_of_ours_is_none(browser: Browser, kept: str) -> None:
    headers = [("cookie", f"refdesk_sign_in_{'a' * 8}={kept}")]
    back = await browser.server.get(BACK, params={"code": "x", "state": "a" * 43}, headers=headers)
    assert "not begun in this browser" in await browser.read_problem(back)


async def test_a_code_counts_once(browser: Browser, caplog: pytest.LogCaptureFixture) -> None:
    address = await browser.answer(await browser.begin())
    name, kept = f"refdesk_sign_in_{browser.kept[:8]}", browser.kept
    assert (await browser.server.get(address)).status_code == 200
    await browser.server.post("/console/sign-out")
    assert "not begun in this browser" in await browser.read_problem(await browser.server.get(address))
    with caplog.at_level(logging.WARNING):
        again = await browser.server.get(address, headers={"cookie": f"{name}={kept}"})
    assert "token is refused here, or none was made" in await browser.read_problem(again)
    [entry] = [record for record in caplog.records if record.message == "sign-in failed"]
    assert vars(entry)["reason"] == "The issuer made no token: invalid_grant."


async def test_who_goes_back_after_signing_in_is_not_told_that_they_are_not_signed_in(browser: Browser) -> None:
    address = await browser.answer(await browser.begin())
    assert (await browser.server.get(address)).status_code == 200
    led = await browser.server.get((await browser.server.get(address)).headers["location"])
    assert (led.status_code, led.headers["location"]) == (303, "/")


async def test_a_code_that_another_browser_brought_is_worth_nothing(browser: Browser) -> None:
    """Its challenge was made from another verifier: a code that was stolen on its way cannot be put in here."""
    stolen = parse_qs(urlsplit(await browser.answer(await browser.begin())).query)["code"][0]
    mine = parse_qs(urlsplit(await browser.begin()).query)["state"][0]
    query = {"code": stolen, "state": mine, "iss": browser.issuer.url}
    assert "none was made" in await browser.read_problem(await browser.server.get(BACK, params=query))


async def test_another_issuers_answer_opens_nothing(browser: Browser) -> None:
    await browser.issuer.register(CLIENT, BACK, SECRET, iss="https://other.example.com")
    assert "another issuer" in await browser.read_problem(await browser.go())
    assert await browser.issuer.count("/token") == 0


@pytest.mark.parametrize("names_itself", [True, False])
async def test_an_issuer_that_says_it_names_itself_has_to(browser: Browser, names_itself: bool) -> None:
    await browser.issuer.describe(authorization_response_iss_parameter_supported=names_itself)
    told = dict(parse_qsl(urlsplit(await browser.answer(await browser.begin())).query))
    del told["iss"]
    back = await browser.server.get(BACK, params=told)
    if names_itself:
        assert "another issuer" in await browser.read_problem(back)
    else:
        assert back.status_code == 200


async def test_a_code_of_another_issuer_is_no_code_here(browser: Browser) -> None:
    async with running_issuer("/realms/other") as other:
        await other.register(CLIENT, BACK, SECRET)
        asked = await browser.begin()
        theirs = await browser.answer(asked.replace(browser.issuer.url, other.url))
    told = dict(parse_qsl(urlsplit(theirs).query))
    assert "another issuer" in await browser.read_problem(await browser.server.get(BACK, params=told))
    asked = await browser.begin()
    told |= {"iss": browser.issuer.url, "state": parse_qs(urlsplit(asked).query)["state"][0]}
    assert "none was made" in await browser.read_problem(await browser.server.get(BACK, params=told))


@pytest.mark.parametrize(
    "address",
    [
        *("https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example", "/docs", "javascript:alert(1)"),
        *(
            "/console/sign-in/return?code=x",
            "/console\r\nrefresh: 0; url=//elsewhere.example",
            "/console/" + "x" * 9000,
        ),
    ],
)
async def test_signing_in_leads_nowhere_else(browser: Browser, address: str) -> None:
    assert (await browser.go(address)).headers["refresh"] == "0; url=/"


async def test_where_to_go_on_is_written_as_an_address(browser: Browser) -> None:
    back = await browser.go('/console/browse/knowledge?tag=ä ;"<b>')
    assert back.headers["refresh"] == "0; url=/console/browse/knowledge?tag=%C3%A4%20;%22%3Cb%3E"
    assert "<b>" not in back.text


async def test_who_refuses_is_told_so(browser: Browser) -> None:
    assert "access was denied" in await browser.read_problem(await browser.go(answer="no"))
    assert await browser.issuer.count("/token") == 0
    state = parse_qs(urlsplit(await browser.begin()).query)["state"][0]
    for more in ({"error": "<script>alert(1)</script>"}, {}, {"code": "x" * 5000}):
        query = {"state": state, "iss": browser.issuer.url, **more}
        headers = {"cookie": f"refdesk_sign_in_{state[:8]}={kept_of(state)}"}
        said = await browser.read_problem(await browser.server.get(BACK, params=query, headers=headers))
        assert "sent you back with an error" in said


def kept_of(state: str) -> str:
    return f"{state}.{'v' * 43}."


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"aud": "https://elsewhere.example"}, "the access token is refused here"),
        ({"iss": "https://elsewhere.example"}, "the access token is refused here"),
        ({"exp": 1}, "the access token is refused here"),
        ({"org_id": None}, "you belong to no org of this server"),
        ({"org_id": ["acme", "other"]}, "you belong to several orgs"),
        ({"groups": ["x" * 100] * 40}, "too large for a browser to keep"),
    ],
)
async def test_a_token_that_opens_nothing_signs_nobody_in(
    browser: Browser, claims: dict[str, object], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    await browser.issuer.register(CLIENT, BACK, SECRET, claims=claims)
    with caplog.at_level(logging.DEBUG):
        address = await browser.answer(await browser.begin())
        back = await browser.server.get(address)
    assert said in await browser.read_problem(back)
    assert "refdesk_key" not in browser.server.cookies
    code = parse_qs(urlsplit(address).query)["code"][0]
    logged = "".join(str(vars(record)) for record in caplog.records if record.name.startswith("refdesk"))
    assert "sign-in failed" in logged
    for secret in (code, "eyJ", SECRET):
        assert secret not in logged
        assert secret not in back.text + str(back.headers)


async def test_the_longest_token_that_is_kept_opens_pages(browser: Browser) -> None:
    async def sign_in(padding: int) -> tuple[int, int]:
        await browser.issuer.register(CLIENT, BACK, SECRET, claims={"padding": "x" * padding})
        status = (await browser.go()).status_code
        return status, len(browser.server.cookies.get("refdesk_key") or "")

    _, least = await sign_in(0)
    _, longest = await sign_in((code_flow.MOST_TOKEN - least) * 3 // 4 - 3)
    assert code_flow.MOST_TOKEN - 10 < longest <= code_flow.MOST_TOKEN
    assert (await browser.server.get(WANTED)).status_code == 200
    assert (await sign_in((code_flow.MOST_TOKEN - least) * 3 // 4 + 9))[0] == 303


@pytest.mark.parametrize("fault", ["status", "redirect", "reset", "huge", "gzip", "invalid_json", "wrong_content_type"])
async def test_an_issuer_that_fails_is_said_to(browser: Browser, fault: str) -> None:
    address = await browser.answer(await browser.begin())
    await browser.issuer.set_faults([{"path": "/realms/desk/token", "fault": fault, "status": 500}])
    assert "does not answer now" in await browser.read_problem(await browser.server.get(address))


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://elsewhere.example"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "https://user@elsewhere.example/"},
        {"token_endpoint": "http://elsewhere.example/token"},
        {"token_endpoint": None},
        {"code_challenge_methods_supported": ["plain"]},
    ],
)
async def test_nobody_is_sent_where_the_issuer_may_not_be(
    browser: Browser, said: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    await browser.issuer.describe(at=EVERYWHERE, refused_scopes=(), **said)
    backs = [await browser.server.get(BEGIN, params={"next": WANTED}) for _ in range(2)]
    assert all(["does not answer now" in await browser.read_problem(back) for back in backs])
    assert [record.message for record in caplog.records].count("issuer not read") == 1
    assert [parse_qs(urlsplit(back.headers["location"]).query)["next"] for back in backs] == 2 * [[WANTED]]


async def test_the_issuer_is_asked_where_people_sign_in_once(browser: Browser) -> None:
    for _ in range(5):
        await browser.begin()
    assert await browser.issuer.count("/.well-known/oauth-authorization-server/realms/desk") == 1
    await browser.issuer.describe(at=[])
    browser.clock.advance(timedelta(hours=1))
    for _ in range(5):
        await browser.begin()
    assert await browser.issuer.count("/.well-known/oauth-authorization-server/realms/desk") == 2


async def test_whoever_comes_back_too_often_does_not_reach_the_issuer(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_sign_in, "MOST_RETURNS", 2)
    said: list[str] = []
    for _ in range(3):
        state = parse_qs(urlsplit(await browser.begin()).query)["state"][0]
        query = {"state": state, "code": "guessed", "iss": browser.issuer.url}
        said.append(await browser.read_problem(await browser.server.get(BACK, params=query)))
    assert ["too many attempts" in each for each in said] == [False, False, True]
    assert await browser.issuer.count("/token") == 2


async def test_without_a_client_everything_is_as_it_was(
    tmp_path: Path, issuer: RunningIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (issuer_sign_in.__name__, code_flow.__name__):
        monkeypatch.delitem(sys.modules, name)
    async with open_for(tmp_path, issuer) as desk, serve(desk, FixedClock(datetime.now(UTC))) as server:
        for address in (BEGIN, BACK):
            assert (await server.get(address)).status_code == 404
        assert "Sign in with" not in (await server.get("/console/sign-in?problem=denied")).text
    assert not {issuer_sign_in.__name__, code_flow.__name__} & sys.modules.keys()


async def test_the_doctor_says_where_people_are_sent_and_what_to_register(
    tmp_path: Path, issuer: RunningIssuer
) -> None:
    async def look() -> tuple[str, str, str]:
        settings = make_settings(tmp_path, **{"oauth_issuer": issuer.url, **CHOSEN})
        [check] = [each for each in await check_sign_in(settings) if each.name == "console"]
        return check.status, check.found, check.advice

    status, found, advice = await look()
    assert (status, f"{issuer.url}/authorize" in found, BACK in advice) == ("ok", True, True)
    await issuer.describe(authorization_endpoint=None)
    assert (await look())[0] == "fail"


@pytest.mark.parametrize("named", [None, ["acme", "other"]])
async def test_a_pasted_token_that_opens_no_org_leads_back_to_where_another_can_be_sent(
    browser: Browser, named: object
) -> None:
    token = await browser.issuer.sign(make_claims(iss=browser.issuer.url, aud=f"{URL}/mcp", exp=2**40, org_id=named))
    led = await sign_in_with_key(browser.server, token, WANTED)
    back = await browser.server.get(led.headers["location"])
    assert back.status_code == 303
    assert "refdesk_key" not in browser.server.cookies
    page = await browser.server.get(back.headers["location"])
    assert (page.status_code, 'name="key"' in page.text) == (200, True)
