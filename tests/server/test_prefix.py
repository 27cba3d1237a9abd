"""A path prefix is taken off requests and put before the addresses of answers, and never mistaken for an address."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from refdesk import errors
from refdesk.server import http, prefix
from refdesk.server.console.rendering import add_prefix as add_to_link
from tests.server.echo import echo_desk


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("/desk", "/"),
        ("/desk/", "/"),
        ("/desk/console/browse", "/console/browse"),
        ("/desk/desk/x", "/desk/x"),
        ("/desktop", "/desktop"),
        ("/health", "/health"),
    ],
)
def test_it_is_taken_off_once(sent: str, meant: str) -> None:
    assert prefix.strip_prefix({"path": sent, "raw_path": sent.encode()}, "/desk")["path"] == meant
    assert prefix.strip_prefix({"path": sent}, "") == {"path": sent}


@pytest.mark.parametrize(
    ("status", "name", "value", "sent"),
    [
        (303, "location", "/console/sign-in?next=%2F", "/desk/console/sign-in?next=%2F"),
        (303, "location", "https://id.example.com/authorize", "https://id.example.com/authorize"),
        (307, "location", "http://a.example/docs?x=1", "/desk/docs?x=1"),
        (200, "refresh", "0; url=/console/feed", "0; url=/desk/console/feed"),
        (200, "set-cookie", "k=v; HttpOnly; Path=/; SameSite=strict", "k=v; HttpOnly; Path=/desk; SameSite=strict"),
        (200, "set-cookie", "k=v; Path=/console/sign-in", "k=v; Path=/desk/console/sign-in"),
        (200, "set-cookie", 'k=""; Path=/', 'k=""; Path=/desk'),
        (200, "etag", '"/x"', '"/x"'),
    ],
)
def test_it_is_put_before_addresses_in_headers(status: int, name: str, value: str, sent: str) -> None:
    message = {"type": "http.response.start", "status": status, "headers": [(name.encode(), value.encode())]}
    assert prefix.add_prefix(message, "/desk")["headers"] == [(name.encode(), sent.encode())]
    assert prefix.add_prefix(message, "") == message


def test_it_is_put_before_links_to_this_server_alone() -> None:
    links = ("/docs", "//other.example/docs", "https://other.example/", "#part", "")
    assert [add_to_link("/desk", link) for link in links] == ["/desk/docs", *links[1:]]


async def test_no_address_of_the_server_begins_like_one_that_is_allowed(tmp_path: Path) -> None:
    async with echo_desk(tmp_path) as desk:
        app = http.build_app(desk, None, sse=True).app
        assert isinstance(app, Starlette)
        own = {route.path.split("/")[1] for route in app.routes if isinstance(route, Route | Mount)} - {""}
        assert len(own) > 5
        for first in own:
            with pytest.raises(errors.ConfigurationError, match=f"/{first}"):
                prefix.check_prefix(f"/{first}/x", desk.toolsets)
        prefix.check_prefix("/desk", desk.toolsets)
