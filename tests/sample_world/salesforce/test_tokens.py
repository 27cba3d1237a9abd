"""Who is given a token, and what is said to those who are not."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from functools import cache

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sample_world.salesforce.tokens import CLIENT_ID, CLIENT_SECRET, USERNAME, Sessions, TokenError

ORIGIN = "https://marrowby.my.example"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CREDENTIALS = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


@cache
def make_key(number: int = 0) -> rsa.RSAPrivateKey:
    assert number >= 0
    return rsa.generate_private_key(public_exponent=65_537, key_size=2048)


def make_sessions() -> Sessions:
    public = make_key().public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return Sessions(ORIGIN, pem.decode())


def sign(
    claims: Mapping[str, object] | None = None, key: rsa.RSAPrivateKey | str | None = None, algorithm: str = "RS256"
) -> dict[str, str]:
    default = {"iss": CLIENT_ID, "sub": USERNAME, "aud": ORIGIN, "exp": int(time.time()) + 120}
    payload = {name: value for name, value in {**default, **(claims or {})}.items() if value is not None}
    assertion = jwt.encode(payload, make_key() if key is None else key, algorithm=algorithm)
    return {"grant_type": BEARER, "assertion": assertion}


def refuse(form: dict[str, str], authorization: str = "") -> tuple[str, str]:
    with pytest.raises(TokenError) as caught:
        make_sessions().grant(form, authorization)
    return caught.value.error, caught.value.description


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_the_right_credentials_are_given_a_token_that_is_good() -> None:
    sessions = make_sessions()
    granted = sessions.grant(CREDENTIALS)
    assert granted.keys() >= {"access_token", "instance_url", "id", "token_type", "issued_at", "signature", "scope"}
    assert (granted["instance_url"], granted["token_type"]) == (ORIGIN, "Bearer")
    assert sessions.is_good(f"Bearer {granted['access_token']}")
    assert sessions.is_good(f"OAuth {granted['access_token']}")
    assert not sessions.is_good(granted["access_token"])
    assert not sessions.is_good("Bearer ")
    assert sessions.grant(CREDENTIALS)["access_token"] != granted["access_token"]


def test_credentials_may_come_in_the_header() -> None:
    sessions = make_sessions()
    assert sessions.grant({"grant_type": "client_credentials"}, basic(f"{CLIENT_ID}:{CLIENT_SECRET}"))
    assert refuse({"grant_type": "client_credentials"}, basic(f"{CLIENT_ID}:x"))[0] == "invalid_client"
    assert refuse({"grant_type": "client_credentials"}, "Basic é")[0] == "invalid_client"


def test_wrong_credentials_are_told_apart() -> None:
    assert refuse({**CREDENTIALS, "client_id": "x"}) == ("invalid_client_id", "client identifier invalid")
    assert refuse({**CREDENTIALS, "client_secret": "é"}) == ("invalid_client", "invalid client credentials")
    assert refuse({**CREDENTIALS, "grant_type": "password"}) == ("invalid_grant", "authentication failure")
    assert refuse({**CREDENTIALS, "grant_type": "device"}) == ("unsupported_grant_type", "grant type not supported")
    assert refuse({})[0] == "unsupported_grant_type"


@pytest.mark.parametrize("audience", [ORIGIN, "https://login.salesforce.com", [ORIGIN]])
def test_a_right_assertion_is_given_a_token(audience: object) -> None:
    sessions = make_sessions()
    granted = sessions.grant(sign({"aud": audience}))
    assert sessions.is_good(f"Bearer {granted['access_token']}")


@pytest.mark.parametrize(
    ("claims", "answer"),
    [
        ({"iss": "x"}, ("invalid_client_id", "client identifier invalid")),
        ({"iss": None}, ("invalid_client_id", "client identifier invalid")),
        ({"aud": "https://test.salesforce.com"}, ("invalid_grant", "audience is invalid")),
        ({"aud": None}, ("invalid_grant", "invalid assertion")),
        ({"sub": "somebody@else.example"}, ("invalid_grant", "user hasn't approved this consumer")),
        ({"sub": None}, ("invalid_grant", "invalid assertion")),
        ({"exp": 1}, ("invalid_grant", "invalid assertion")),
        ({"exp": None}, ("invalid_grant", "invalid assertion")),
        ({"exp": 99_999_999_999}, ("invalid_grant", "invalid assertion")),
        ({"exp": "soon"}, ("invalid_grant", "invalid assertion")),
    ],
)
def test_an_assertion_with_a_wrong_claim_is_refused(claims: dict[str, object], answer: tuple[str, str]) -> None:
    assert refuse(sign(claims)) == answer


def test_only_the_right_key_and_algorithm_sign_an_assertion() -> None:
    wrong = ("invalid_grant", "invalid assertion")
    assert refuse(sign(key=make_key(1))) == wrong
    assert refuse(sign(algorithm="RS512")) == wrong
    assert refuse(sign(key="x" * 64, algorithm="HS256")) == wrong
    assert refuse(sign(key="", algorithm="none")) == wrong
    assert refuse({"grant_type": BEARER, "assertion": "x.y.z"}) == wrong
    assert refuse({"grant_type": BEARER}) == wrong


def test_expired_sessions_are_bad_until_a_new_token_is_given() -> None:
    sessions = make_sessions()
    first = f"Bearer {sessions.first_token}"
    assert sessions.is_good(first)
    sessions.expire()
    assert not sessions.is_good(first)
    assert sessions.is_good(f"Bearer {sessions.grant(CREDENTIALS)['access_token']}")
    sessions.restore()
    assert sessions.is_good(first)
