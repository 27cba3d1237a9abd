"""Which tokens open something: the issuer's, for this server, in force, and no others."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from refdesk import errors
from refdesk.core.clock import FixedClock
from refdesk.model import Principal
from refdesk.server.oauth.tokens import LEEWAY, MOST_BYTES, TokenCheck
from refdesk.server.orgs import OrglessError
from tests.core.fakes import NOW
from tests.emulators.signing import ALGORITHMS, Key, encode, make_key, make_rsa, sign
from tests.server.oauth.samples import AUDIENCE, ISSUER, make_check, make_claims

RSA, EC, ED = make_key("rsa", "RS256"), make_key("ec", "ES256"), make_key("ed", "EdDSA")
KEYS = [RSA, EC, ED]
NOW_SECONDS = int(NOW.timestamp())
SLACK = LEEWAY.total_seconds()


async def opens(token: str, check: TokenCheck | None = None) -> bool:
    try:
        await (check or make_check(KEYS)).identify(token)
    except errors.UnauthenticatedError:
        return False
    return True


async def test_a_token_says_who_calls() -> None:
    caller = await make_check(KEYS).identify(RSA.sign(make_claims()))
    assert caller.principal == Principal("acme", "oauth-1:ann", frozenset({"knowledge:read"}))
    assert (caller.issuer, caller.client) == (ISSUER, "app")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_every_asymmetric_algorithm_is_accepted(algorithm: str) -> None:
    key = make_key("k", algorithm)
    assert await opens(key.sign(make_claims()), make_check([key]))


async def test_a_token_that_another_library_makes_is_accepted() -> None:
    for key in KEYS:
        token = jwt.encode(make_claims(), key.private, key.algorithm, {"kid": key.id})
        assert await opens(token)


@pytest.mark.parametrize("typ", [None, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
async def test_the_type_may_be_that_of_access_tokens_or_of_any_token(typ: str | None) -> None:
    assert await opens(RSA.sign(make_claims(), typ=typ))


@pytest.mark.parametrize("typ", ["id+jwt", "dpop+jwt", "logout+jwt", "secevent+jwt", "", "JWE", 1, ["at+jwt"], {}])
async def test_any_other_type_is_refused(typ: object) -> None:
    assert not await opens(RSA.sign(make_claims(), typ=typ))


def confused(algorithm: str) -> list[str]:
    """Tokens that a symmetric algorithm has signed with what everybody knows of the issuer's key."""
    public = RSA.private.public_key()
    known = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(RSA.to_jwk()).encode(),
        b"",
    ]
    signed = (
        f"{encode(json.dumps({'alg': algorithm, 'kid': 'rsa'}).encode())}.{encode(json.dumps(make_claims()).encode())}"
    )
    signer = jwt.get_algorithm_by_name(algorithm)
    # The library would not take a public key for a secret; an attacker's would.
    return [f"{signed}.{encode(signer.sign(signed.encode(), secret))}" for secret in known]


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_a_public_key_is_never_a_secret(algorithm: str) -> None:
    for token in confused(algorithm):
        assert not await opens(token)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, "ES256K", "RSA1_5", 5, [], {}, ["RS256"]])
async def test_no_other_algorithm_is_accepted(algorithm: object) -> None:
    token = RSA.sign(make_claims(), alg=algorithm)
    assert not await opens(token)
    assert not await opens(token.rpartition(".")[0] + ".")


@pytest.mark.parametrize(
    ("key", "algorithm"), [(RSA, "ES256"), (RSA, "EdDSA"), (EC, "RS256"), (EC, "ES384"), (ED, "RS256")]
)
async def test_a_keys_kind_must_fit_the_algorithm(key: Key, algorithm: str) -> None:
    assert not await opens(key.sign(make_claims(), alg=algorithm))


async def test_a_key_that_is_for_one_algorithm_checks_no_other() -> None:
    other = Key("rsa", "RS512", RSA.private)
    assert await opens(other.sign(make_claims()), make_check([other]))
    assert not await opens(other.sign(make_claims()))


async def test_the_key_of_that_id_must_have_signed() -> None:
    assert not await opens(RSA.sign(make_claims(), kid="unknown"))
    assert not await opens(RSA.sign(make_claims(), kid="ec"))
    assert not await opens(make_key("rsa", "ES256").sign(make_claims(), alg="RS256"))
    assert not await opens(Key("rsa", "RS256", make_rsa("thief", 2048)).sign(make_claims()))
    ids: list[object] = [1, ["rsa"], {"rsa": 1}, True, ""]
    for id in ids:
        assert not await opens(RSA.sign(make_claims(), kid=id))


async def test_of_two_keys_with_one_id_the_first_that_fits_is_taken() -> None:
    twice = make_check([make_key("rsa", "ES256"), RSA, RSA])
    assert await opens(RSA.sign(make_claims()), twice)


async def test_a_token_that_names_no_key_is_checked_with_the_only_one_that_fits() -> None:
    assert await opens(RSA.sign(make_claims(), kid=None))
    two = make_check([RSA, Key("other", "RS256", make_rsa("other", 2048))])
    assert not await opens(RSA.sign(make_claims(), kid=None), two)


async def test_a_key_that_a_token_brings_along_is_not_looked_at() -> None:
    thief = Key("thief", "RS256", make_rsa("thief", 2048))
    brought: list[dict[str, Any]] = [
        {"jwk": thief.to_jwk()},
        {"jku": "https://thief.example/jwks"},
        {"x5u": "https://thief.example/chain"},
        {"x5c": ["MIIB"]},
    ]
    for more in brought:
        for id in ("thief", "rsa", None):
            assert not await opens(thief.sign(make_claims(), kid=id, **more))
        assert await opens(RSA.sign(make_claims(), **more))


@pytest.mark.parametrize("crit", [["exp"], ["b64"], [], None, "x"])
async def test_what_a_header_calls_critical_is_refused(crit: object) -> None:
    header = {"alg": "RS256", "kid": "rsa", "crit": crit, "b64": True}
    signed = f"{encode(json.dumps(header).encode())}.{encode(json.dumps(make_claims()).encode())}"
    assert not await opens(f"{signed}.{encode(sign(RSA.private, 'RS256', signed.encode()))}")


@pytest.mark.parametrize(
    "changed",
    [
        *({"iss": iss} for iss in (None, "", f"{ISSUER}/", ISSUER.upper(), "https://evil.example", [ISSUER], 1)),
        *({"aud": aud} for aud in (None, "", [0], "https://other.example", AUDIENCE + "/", [["x"]], {AUDIENCE: 1}, 7)),
        *({"exp": exp} for exp in (None, "2999999999", True, [1], float("inf"), float("nan"), 10**400, -1)),
        *({"nbf": nbf} for nbf in ("0", True, float("nan"), NOW_SECONDS + 3600)),
        *({"iat": iat} for iat in ("0", {"a": 1}, float("-inf"), NOW_SECONDS + 3600)),
        *({"sub": sub} for sub in (None, "", 5, ["ann"], {"a": 1})),
        {"cnf": {"jkt": "x"}},
    ],
)
async def test_a_claim_that_is_not_right_is_refused(changed: dict[str, object]) -> None:
    assert not await opens(RSA.sign(make_claims(**changed)))


@pytest.mark.parametrize("org", [None, "", "Acme", "a b", "*", "x" * 65, "acme\n", ["Acme", "B"], 3])
async def test_a_claim_that_names_no_org_here_opens_none(org: object) -> None:
    with pytest.raises(OrglessError):
        await make_check(KEYS).identify(RSA.sign(make_claims(org_id=org)))


@pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["https://other.example", AUDIENCE], ["x", 7, AUDIENCE]])
async def test_a_token_for_this_server_among_others_is_for_this_server(audience: object) -> None:
    assert await opens(RSA.sign(make_claims(aud=audience)))


async def test_a_token_ends_when_it_says_so_and_the_clocks_may_be_a_minute_apart() -> None:
    clock = FixedClock(NOW)
    check, token = make_check(KEYS, clock), RSA.sign(make_claims(exp=NOW_SECONDS + 300))
    clock.advance(timedelta(seconds=300 + SLACK - 1))
    assert await opens(token, check)
    clock.advance(timedelta(seconds=1))
    assert not await opens(token, check)
    for name in ("nbf", "iat"):
        assert await opens(RSA.sign(make_claims(**{name: NOW_SECONDS + SLACK})))
        assert not await opens(RSA.sign(make_claims(**{name: NOW_SECONDS + SLACK + 1})))
    assert await opens(RSA.sign(make_claims(exp=NOW_SECONDS + 0.5, iat=None)))


ID_TOKEN = {"client_id": None, "scope": None}


@pytest.mark.parametrize(
    "changed",
    [
        {**ID_TOKEN, "nonce": "n", "at_hash": "h", "azp": "app"},  # OpenID Connect's own
        ID_TOKEN,  # Entra ID's for the same application: neither `scp` nor `azp`
        {"nonce": "n"},
        {"c_hash": "h"},
        {"typ": "ID", "azp": "app"},  # Keycloak
        {"typ": "Refresh"},
        {"typ": "Offline"},
        {"typ": "DPoP"},
        {"token_use": "id"},  # Cognito
    ],
)
async def test_an_id_token_is_no_access_token(changed: dict[str, object]) -> None:
    assert not await opens(RSA.sign(make_claims(**changed), typ="JWT"))
    assert not await opens(RSA.sign(make_claims(**changed), typ=None))


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": None, "azp": "app", "typ": "Bearer", "nonce": "n"},  # Keycloak, with the mapper for old clients
        {"client_id": None, "azp": "app", "scope": None, "scp": "knowledge:read"},  # Entra ID, version 2
        {"client_id": None, "appid": "app", "scope": None, "roles": ["knowledge:read"]},  # Entra ID, version 1
        {"client_id": None, "azp": "app"},  # Auth0
        {"token_use": "access"},
    ],
)
async def test_access_tokens_of_issuers_that_do_not_name_the_type_are_accepted(changed: dict[str, object]) -> None:
    assert await opens(RSA.sign(make_claims(**changed), typ="JWT"))


async def test_a_token_that_is_too_large_is_refused_before_it_is_read() -> None:
    def sized(padding: int) -> str:
        return RSA.sign(make_claims(pad="x" * padding))

    fitting = (MOST_BYTES - len(sized(0))) * 3 // 4 - 4
    assert len(sized(fitting)) <= MOST_BYTES
    assert await opens(sized(fitting))
    assert not await opens(sized(fitting + 100))


@pytest.mark.parametrize(
    "token",
    [
        *("", ".", "..", "...", "a.b", "a.b.c.d", "a.b.c.d.e", "é.é.é", "\ud800.b.c", " . . ", "e30.e30.e30"),
        *(f"{encode(text)}.e30.e30" for text in (b"", b"[]", b"1", b"null", b'"x"', b"[" * 9000, b"\xff", b'{"alg":')),
        f"{encode(b'{' + b'9' * 5000 + b'}')}.e30.x",
    ],
)
async def test_what_is_no_token_is_refused(token: str) -> None:
    assert not await opens(token)


@pytest.mark.parametrize("payload", [b"", b"[]", b"null", b"[" * 3000, b"\xff\xfe", b'{"exp":' + b"9" * 5000 + b"}"])
async def test_what_an_issuer_signs_must_be_claims(payload: bytes) -> None:
    assert not await opens(RSA.sign(payload))


TOKEN = ED.sign(make_claims())


@settings(deadline=None)
@given(st.integers(0, len(TOKEN) - 1), st.characters(codec="ascii"))
async def test_no_letter_of_a_token_can_be_changed(place: int, letter: str) -> None:
    changed = TOKEN[:place] + letter + TOKEN[place + 1 :]
    assert await opens(changed) == (changed == TOKEN)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
async def test_whatever_a_header_or_a_claim_is_it_is_refused_or_accepted(value: object) -> None:
    for name in ("alg", "kid", "typ", "crit"):
        await opens(ED.sign(make_claims(), **{name: value}))
    for name in make_claims():
        with suppress(errors.PermissionDeniedError):  # of several orgs the caller has to choose one
            await opens(ED.sign(make_claims(**{name: value})))


async def test_no_error_and_no_log_holds_a_token(caplog: pytest.LogCaptureFixture) -> None:
    thief = Key("rsa", "RS256", make_rsa("thief", 2048))
    for token in (thief.sign(make_claims()), RSA.sign(make_claims(exp=1)), RSA.sign(make_claims(org_id="Acme"))):
        with caplog.at_level(logging.DEBUG), pytest.raises(errors.CallerError) as raised:
            await make_check(KEYS).identify(token)
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__ or raised.value.__context__ is None
        for part in token.split("."):
            assert part not in str(raised.value) + caplog.text


async def test_a_key_of_few_bits_checks_nothing() -> None:
    weak = Key("weak", "RS256", rsa.generate_private_key(public_exponent=65537, key_size=1024))
    assert not await opens(weak.sign(make_claims()), make_check([weak, EC]))
