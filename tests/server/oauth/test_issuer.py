"""Reading what an issuer publishes, from one in a process of its own that may do anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from refdesk import errors
from refdesk.server.oauth.issuer import Issuer, describe_at
from tests.emulators.issuer import RunningIssuer
from tests.server.oauth.conftest import PATH


async def fail(issuer: Issuer) -> str:
    """Return why its keys could not be read."""
    with pytest.raises(errors.WorldError) as raised:
        await issuer.fetch()
    return raised.value.message


def test_an_issuer_is_asked_where_the_specification_says() -> None:
    assert describe_at("https://id.example.com") == [
        "https://id.example.com/.well-known/oauth-authorization-server",
        "https://id.example.com/.well-known/openid-configuration",
    ]
    assert describe_at("https://id.example.com/") == describe_at("https://id.example.com")
    assert describe_at("https://id.example.com/a/b/") == [
        "https://id.example.com/.well-known/oauth-authorization-server/a/b",
        "https://id.example.com/.well-known/openid-configuration/a/b",
        "https://id.example.com/a/b/.well-known/openid-configuration",
    ]


@pytest.mark.parametrize(("place", "asked"), [("oauth", 1), ("inserted", 2), ("openid", 3)])
async def test_keys_are_found_wherever_the_issuer_describes_itself(
    issuer: RunningIssuer, place: str, asked: int
) -> None:
    await issuer.describe(at=[place])
    published = await Issuer(issuer.url).fetch()
    assert [key.id for key in published.keys] == ["rsa-1", "ec-1"]
    assert published.source == f"{issuer.url}/jwks"
    assert len(await issuer.requests()) == asked + 1
    assert all("authorization" not in str(request["headers"]) for request in await issuer.requests())


async def test_with_the_address_of_the_keys_the_issuer_is_asked_for_nothing_else(issuer: RunningIssuer) -> None:
    published = await Issuer("https://id.example.com", f"{issuer.url}/jwks").fetch()
    assert len(published.keys) == 2
    assert [request["path"] for request in await issuer.requests()] == [f"{PATH}/jwks"]


@pytest.mark.parametrize(
    ("said", "age"),
    [
        ("max-age=300", 300),
        ("public, Max-Age=60, must-revalidate", 60),
        ("max-age=0", 0),
        ("no-store", None),
        ("s-maxage=9", None),
        ("max-age=-1", None),
        ("max-age=x", None),
        ("max-age=99999999999", None),
    ],
)
async def test_an_issuer_says_how_long_its_keys_may_be_kept(issuer: RunningIssuer, said: str, age: int | None) -> None:
    await issuer.set_keys(["rsa-1"], cache_control=said)
    assert (await Issuer(issuer.url).fetch()).max_age == (None if age is None else timedelta(seconds=age))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"issuer": "http://127.0.0.1:1"}, "another issuer"),
        ({"issuer": None}, "another issuer"),
        ({"jwks_uri": "http://keys.example/jwks"}, "no address of keys"),
        ({"jwks_uri": "https://keys.example/jwks"}, "no address of keys"),  # the issuer itself is asked in the clear
        ({"jwks_uri": "file:///etc/passwd"}, "no address of keys"),
        ({"jwks_uri": "https://user:pass@keys.example/"}, "no address of keys"),
        ({"jwks_uri": "https://[::1"}, "no address of keys"),
        ({"jwks_uri": None}, "no address of keys"),
        ({"jwks_uri": 5}, "no address of keys"),
    ],
)
async def test_a_description_that_cannot_be_trusted_is_not_used(
    issuer: RunningIssuer, said: Mapping[str, Any], reason: str
) -> None:
    await issuer.describe(**said)
    assert reason in await fail(Issuer(issuer.url))
    assert await issuer.count("/jwks") == 0


async def test_an_issuer_over_https_names_no_keys_over_plain_http(issuer: RunningIssuer) -> None:
    source = Issuer("https://id.example.com")
    described = {"issuer": source.name, "jwks_uri": f"{issuer.url}/jwks"}
    with pytest.raises(Exception, match="no address of keys"):
        source._read_jwks_url(described)  # pyright: ignore[reportPrivateUsage]


SLOW: dict[str, Any] = {"request_seconds": 0.2, "total_seconds": 5.0}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"fault": "status", "status": 503}, "HTTP 503"),
        ({"fault": "status", "status": 404}, "HTTP 404"),
        ({"fault": "redirect", "location": "http://127.0.0.1:1/"}, "HTTP 302"),
        ({"fault": "reset"}, r"no answer \(ReadError\)"),
        ({"fault": "truncate"}, r"no answer \(RemoteProtocolError\)"),
        ({"fault": "hang"}, r"no answer (within|\(ReadTimeout\))"),
        ({"fault": "drip", "chunk_bytes": 1, "delay_seconds": 0.1}, "no answer within 0.2 seconds"),
        ({"fault": "invalid_json"}, "no JSON"),
        ({"fault": "wrong_content_type"}, "no JSON"),
        ({"fault": "huge", "size_bytes": 2**20}, "larger than 512 KiB"),
        ({"fault": "gzip"}, "packed"),
        ({"fault": "huge", "size_bytes": 2**24, "gzip": True}, "packed"),
    ],
)
@pytest.mark.parametrize("path", ["/.well-known/", "/jwks"])
async def test_whatever_an_issuer_does_it_ends_in_time_and_with_a_reason(
    issuer: RunningIssuer, fault: dict[str, Any], reason: str, path: str
) -> None:
    await issuer.set_faults([{**fault, "path": path}])
    said = await fail(replace(Issuer(issuer.url), **(SLOW if fault["fault"] in ("hang", "drip") else {})))
    assert re.search(reason, said)
    await issuer.set_faults([])
    assert len((await Issuer(issuer.url).fetch()).keys) == 2


async def test_all_requests_together_have_a_limit_too(issuer: RunningIssuer) -> None:
    await issuer.set_faults([{"fault": "hang"}])
    said = await fail(replace(Issuer(issuer.url), request_seconds=30.0, total_seconds=0.2))
    assert "no answer within 0.2 seconds" in said


async def test_an_issuer_that_is_not_there_is_an_error_that_names_it() -> None:
    said = await fail(Issuer("http://127.0.0.1:9"))
    assert "http://127.0.0.1:9" in said
    assert "ConnectError" in said


async def test_a_set_without_a_key_to_use_is_an_error(issuer: RunningIssuer) -> None:
    await issuer.set_keys([])
    assert "no key" in await fail(Issuer(issuer.url))
