"""A proxy that is named is believed; nobody else is, and nothing that a client may have written itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.types import Scope

from refdesk.server.limits.proxies import TrustedProxies, read_proxies
from tests.server.conftest import open_http
from tests.server.echo import echo_desk
from tests.server.test_keys import bearer, make_key

PROXIES = read_proxies(["10.0.0.0/8", "2001:db8::1"])


def request(peer: str, *headers: tuple[str, str]) -> Scope:
    return {
        "type": "http",
        "client": (peer, 1),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }


@pytest.mark.parametrize(
    ("peer", "headers", "client"),
    [
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [("x-forwarded-for", "192.0.2.7")], "192.0.2.7"),
        ("::ffff:10.0.0.1", [("x-forwarded-for", "192.0.2.7")], "192.0.2.7"),
        ("10.0.0.1", [("x-forwarded-for", "6.6.6.6, 192.0.2.7")], "192.0.2.7"),
        ("10.0.0.1", [("x-forwarded-for", "6.6.6.6, 192.0.2.7, 10.9.9.9")], "192.0.2.7"),
        ("10.0.0.1", [("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "192.0.2.7")], "192.0.2.7"),
        ("10.0.0.1", [("x-forwarded-for", "192.0.2.7:4711")], "192.0.2.7"),
        ("10.0.0.1", [("x-forwarded-for", "[2001:db8::7]:4711")], "2001:db8::7"),
        ("10.0.0.1", [("x-forwarded-for", "6.6.6.6, nonsense")], "10.0.0.1"),
        ("10.0.0.1", [("x-forwarded-for", "nonsense, 10.2.2.2")], "10.2.2.2"),
        ("10.0.0.1", [("x-forwarded-for", "")], "10.0.0.1"),
        ("10.0.0.1", [("forwarded", 'for=6.6.6.6, for="[2001:db8::7]:4711";proto=https')], "2001:db8::7"),
        ("10.0.0.1", [("forwarded", "proto=https;For=192.0.2.7")], "192.0.2.7"),
        ("10.0.0.1", [("forwarded", "for=_hidden")], "10.0.0.1"),
        ("10.0.0.1", [("forwarded", "for=6.6.6.6"), ("x-forwarded-for", "192.0.2.7")], "192.0.2.7"),
        ("2001:db8::1", [("x-forwarded-for", "192.0.2.7")], "192.0.2.7"),
        ("192.0.2.9", [("x-forwarded-for", "6.6.6.6")], "192.0.2.9"),
    ],
)
def test_the_client_is_the_last_whom_no_named_proxy_is(peer: str, headers: list[tuple[str, str]], client: str) -> None:
    assert PROXIES.find_client(request(peer, *headers)) == client


def test_nobody_is_believed_unless_named() -> None:
    assert TrustedProxies().find_client(request("127.0.0.1", ("x-forwarded-for", "6.6.6.6"))) == "127.0.0.1"


@pytest.mark.parametrize(
    ("peer", "headers", "scheme"),
    [
        ("10.0.0.1", [], "http"),
        ("10.0.0.1", [("x-forwarded-proto", "https")], "https"),
        ("10.0.0.1", [("x-forwarded-proto", "https, http")], "http"),
        ("10.0.0.1", [("x-forwarded-proto", "http"), ("x-forwarded-proto", "HTTPS")], "https"),
        ("10.0.0.1", [("x-forwarded-proto", "javascript")], "http"),
        ("10.0.0.1", [("forwarded", "for=192.0.2.7;proto=https")], "https"),
        ("10.0.0.1", [("forwarded", 'proto=https, for=10.1.1.1;Proto="http"')], "http"),
        ("10.0.0.1", [("forwarded", "proto=https"), ("x-forwarded-proto", "http")], "http"),
        ("192.0.2.9", [("x-forwarded-proto", "https"), ("forwarded", "proto=https")], "http"),
    ],
)
def test_the_nearest_named_proxy_says_whether_it_was_asked_over_tls(
    peer: str, headers: list[tuple[str, str]], scheme: str
) -> None:
    scope = request(peer, ("host", "desk.example.com"), *headers)
    scope.update(scheme="http")
    assert PROXIES.find_scheme(scope) == scheme


@pytest.mark.parametrize(
    ("settings", "said", "scheme"),
    [
        ({"trusted_proxies": ("127.0.0.1",)}, "https", "https"),
        ({"trusted_proxies": ("10.0.0.1",)}, "https", "http"),
        ({"public_url": "https://127.0.0.1:8350/"}, "http", "https"),
        ({"public_url": "https://desk.example.com"}, "https", "http"),
    ],
)
async def test_redirects_and_cookies_follow_what_the_client_spoke(
    tmp_path: Path, settings: dict[str, Any], said: str, scheme: str
) -> None:
    async with echo_desk(tmp_path, **settings) as desk, open_http(desk, None) as client:
        client.headers["x-forwarded-proto"] = said
        key = await make_key(desk)
        moved = await client.get("/mcp/", headers=bearer(key))
        assert moved.headers["location"] == f"{scheme}://127.0.0.1:8350/mcp"
        signed_in = await client.post("/console/sign-in", data={"key": key})
        [cookie] = [each for each in signed_in.headers.get_list("set-cookie") if key in each]
        assert ("Secure" in cookie) == (scheme == "https")
