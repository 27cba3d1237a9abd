"""What the settings of signing in mean, and which of them cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from refdesk import errors
from refdesk.server.oauth.configuration import OAuth, may_be_asked, read_oauth
from tests.server.echo import make_settings

ISSUER = "https://id.example.com/realms/desk"
AUDIENCE = "https://desk.example.com/mcp"


def read(home: Path, **chosen: object) -> OAuth:
    oauth = read_oauth(make_settings(home, **{"oauth_issuer": ISSUER, "oauth_audience": AUDIENCE, **chosen}))
    assert oauth is not None
    return oauth


def test_without_an_issuer_nobody_signs_in(tmp_path: Path) -> None:
    assert read_oauth(make_settings(tmp_path)) is None


def test_two_settings_suffice(tmp_path: Path) -> None:
    oauth = read(tmp_path)
    assert (oauth.issuer, oauth.audiences, oauth.resource) == (ISSUER, {AUDIENCE}, AUDIENCE)
    assert (oauth.org, oauth.org_claim, oauth.agent_claim, oauth.scope_claims) == (
        None,
        "org_id",
        "sub",
        ("scope", "scp"),
    )


def test_agents_of_two_issuers_have_two_prefixes_unless_someone_wants_otherwise(tmp_path: Path) -> None:
    mine, other = read(tmp_path).agent_prefix, read(tmp_path, oauth_issuer=f"{ISSUER}2").agent_prefix
    assert mine.startswith("oauth-")
    assert mine != other
    assert read(tmp_path, oauth_agent_prefix="none").agent_prefix == ""
    assert read(tmp_path, oauth_agent_prefix="sso:").agent_prefix == "sso:"


def test_the_public_address_stands_above_the_audience(tmp_path: Path) -> None:
    public = {"public_url": "https://desk.example.com/team/"}
    assert read(tmp_path, **public).resource == "https://desk.example.com/team/mcp"
    assert read(tmp_path, oauth_audience="api://desk, 1-2-3", **public).audiences == {"api://desk", "1-2-3"}
    assert read(tmp_path, oauth_audience=f"1-2-3,{AUDIENCE}").resource == AUDIENCE


def test_scopes_are_asked_for_as_they_come_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    assert read(tmp_path, oauth_scope_prefix="desk/").asked_prefix == "desk/"
    asked = read(tmp_path, oauth_asked_scope_prefix="api://desk/")
    assert (asked.scope_prefix, asked.asked_prefix) == ("", "api://desk/")


def test_the_console_is_a_client_where_browsers_reach_the_server(tmp_path: Path) -> None:
    assert read(tmp_path).console is None
    chosen: dict[str, object] = {"oauth_console_client_id": "console"}
    for more, base in (
        ({}, "https://desk.example.com"),
        ({"public_url": "https://d.example/x/"}, "https://d.example/x"),
    ):
        console = read(tmp_path, **chosen, **more).console
        assert console is not None
        assert (console.id, console.secret, console.base) == ("console", None, base)
    secret = read(tmp_path, **chosen, oauth_console_client_secret="canary-secret")
    assert secret.console is not None
    assert "canary-secret" not in repr(secret)


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({"oauth_console_client_secret": "x"}, "REFDESK_OAUTH_CONSOLE_CLIENT_ID"),
        ({"oauth_console_client_id": "x", "oauth_issuer": None, "oauth_audience": ""}, "REFDESK_OAUTH_ISSUER"),
        ({"oauth_console_client_id": "x", "oauth_audience": "https://desk.example.com/api"}, "REFDESK_PUBLIC_URL"),
    ],
)
def test_half_of_the_consoles_settings_is_refused(tmp_path: Path, chosen: dict[str, object], named: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=named):
        read(tmp_path, **chosen)


def test_orgs_are_read_as_pairs(tmp_path: Path) -> None:
    assert read(tmp_path, oauth_orgs="org_A=acme, x=y=other,").orgs == {"org_A": "acme", "x=y": "other"}


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({"oauth_audience": ""}, "REFDESK_OAUTH_AUDIENCE"),
        ({"oauth_issuer": None}, "REFDESK_OAUTH_ISSUER"),
        ({"oauth_issuer": "http://id.example.com"}, "REFDESK_OAUTH_ISSUER"),
        ({"oauth_issuer": "https://u:p@id.example.com"}, "REFDESK_OAUTH_ISSUER"),
        ({"oauth_issuer": "https://id.example.com/?x=1"}, "REFDESK_OAUTH_ISSUER"),
        ({"oauth_issuer": "https://id.example.com/#x"}, "REFDESK_OAUTH_ISSUER"),
        *(
            ({"oauth_issuer": None, "oauth_audience": "", name: "x=y"}, f"REFDESK_{name.upper()}.*REFDESK_OAUTH_ISSUER")
            for name in ("oauth_orgs", "oauth_more_scopes", "oauth_console_client_secret", "oauth_console_more_scopes")
        ),
        ({"oauth_jwks_url": "http://id.example.com/jwks"}, "REFDESK_OAUTH_JWKS_URL"),
        ({"oauth_audience": "api://desk"}, "REFDESK_PUBLIC_URL"),
        ({"oauth_audience": "http://desk.example.com/mcp"}, "REFDESK_PUBLIC_URL"),
        ({"public_url": "http://desk.example.com"}, "REFDESK_PUBLIC_URL"),
        ({"oauth_org": "acme", "oauth_org_claim": "org_id"}, "REFDESK_OAUTH_ORG"),
        ({"oauth_org": "acme", "oauth_orgs": "a=b"}, "REFDESK_OAUTH_ORG"),
        *(({"oauth_orgs": orgs}, "REFDESK_OAUTH_ORGS") for orgs in ("acme", "=acme", "a=", "a=B", "a=b,a=c", "a=*")),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(tmp_path: Path, chosen: dict[str, object], named: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=named) as raised:
        read(tmp_path, **chosen)
    assert "u:p" not in raised.value.message


@pytest.mark.parametrize(
    "url", ["https://id.example.com/x", "http://127.0.0.1:8080", "http://[::1]/", "http://localhost"]
)
def test_https_may_be_asked_and_this_machine(url: str) -> None:
    assert may_be_asked(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://id.example.com",
        "http://127.0.0.1.example",
        "http://10.0.0.1",
        "ftp://localhost",
        "https://",
        'https://id.example.com/"x',
        "https://id.example.com/a b",
        "https://id.example.com/\n",
        "https://id.example.com/#",
        "https://id.éxample.com",
        "https:///x",
        "",
    ],
)
def test_nothing_else_may_be_asked(url: str) -> None:
    assert not may_be_asked(url)
