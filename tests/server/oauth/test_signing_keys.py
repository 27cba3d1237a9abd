"""What can be used of a set of keys."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from refdesk.server.oauth.signing_keys import KINDS, read_keys
from tests.emulators.signing import ALGORITHMS, Key, make_key

GOOD = make_key("good", "ES256").to_jwk()


def ids(*keys: object) -> list[str | None]:
    return [key.id for key in read_keys({"keys": list(keys)})]


def test_every_kind_of_key_is_read_and_fits_its_own_algorithms_only() -> None:
    assert set(KINDS) == set(ALGORITHMS)
    for algorithm in ALGORITHMS:
        [bound] = read_keys({"keys": [make_key("k", algorithm).to_jwk()]})
        assert [name for name in ALGORITHMS if bound.fits(name)] == [algorithm]
        [free] = read_keys({"keys": [make_key("k", algorithm).to_jwk() | {"alg": None}]})
        assert {KINDS[name] for name in ALGORITHMS if free.fits(name)} == {KINDS[algorithm]}


def bad_keys() -> list[object]:
    elliptic, rsa_key = make_key("bad", "ES256").to_jwk(), make_key("bad", "RS256").to_jwk()
    small = Key("bad", "RS256", rsa.generate_private_key(public_exponent=65537, key_size=1024)).to_jwk()
    changed: list[dict[str, Any]] = [
        {"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"},
        *(elliptic | more for more in ({"x": "AA"}, {"x": None}, {"y": 5}, {"crv": "secp256k1"}, {"crv": "P-384"})),
        *(
            elliptic | more
            for more in ({"use": "enc"}, {"use": ["enc"]}, {"key_ops": ["sign"]}, {"kty": "RSA"}, {"kty": ["EC"]})
        ),
        *(rsa_key | more for more in ({"n": ""}, {"n": "!"}, {"e": "AQ"}, {"e": None}, {"kty": "EC"})),
        small,
        {"kty": "OKP", "crv": "Ed448", "x": "AA"},
        {"kty": "OKP", "crv": "X25519", "x": GOOD["x"]},
        {},
    ]
    return [*changed, None, 1, "key", [], [GOOD]]


@pytest.mark.parametrize("bad", bad_keys())
def test_a_key_that_cannot_be_used_is_passed_over(bad: object) -> None:
    assert ids(bad, GOOD) == ["good"]
    with pytest.raises(ValueError, match="no key"):
        ids(bad)


@pytest.mark.parametrize("document", [{}, {"keys": None}, {"keys": {}}, {"keys": "x"}, {"keys": 1}])
def test_what_is_no_set_of_keys_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no set"):
        read_keys(document)


def test_private_members_of_a_key_are_not_read() -> None:
    [key] = read_keys({"keys": [GOOD | {"d": "AAAA", "k": "AAAA", "x5c": ["?"], "x5u": "file:///etc/passwd"}]})
    assert not hasattr(key.public, "private_numbers")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["kty", "crv", "x", "y", "n", "e", "use", "key_ops", "alg", "kid"]), JSON))
def test_whatever_a_key_says_the_others_are_read(changed: dict[str, object]) -> None:
    for base in (GOOD, make_key("bad", "RS256").to_jwk(), {}):
        assert "good" in ids({**base, **changed}, GOOD)
