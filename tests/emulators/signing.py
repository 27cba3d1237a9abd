"""Signing keys and tokens by `cryptography` alone: nothing here is shared with what checks them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

CURVES: Mapping[str, tuple[ec.EllipticCurve, str]] = {
    "ES256": (ec.SECP256R1(), "P-256"),
    "ES384": (ec.SECP384R1(), "P-384"),
    "ES512": (ec.SECP521R1(), "P-521"),
}
HASHES: Mapping[str, hashes.HashAlgorithm] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *CURVES, "EdDSA", "Ed25519")


@dataclass(frozen=True)
class Key:
    """A key that signs by one algorithm; `extra` is put into its JSON form."""

    id: str | None
    algorithm: str
    private: PrivateKey
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_jwk(self) -> dict[str, Any]:
        """Return its public half (RFC 7517, RFC 7518, RFC 8037)."""
        named = {"kid": self.id} if self.id is not None else {}
        return {**_public_members(self.private), **named, "use": "sig", "alg": self.algorithm, **self.extra}

    def sign(self, claims: Mapping[str, Any] | bytes, **header: object) -> str:
        """Return a token; what `header` says stands above what it would be, and `None` leaves it out."""
        whole = {"typ": "at+jwt", "alg": self.algorithm, "kid": self.id, **header}
        payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        text = json.dumps({name: value for name, value in whole.items() if value is not None}).encode()
        signed = f"{encode(text)}.{encode(payload)}"
        return f"{signed}.{encode(sign(self.private, self.algorithm, signed.encode()))}"


def make_key(id: str | None, algorithm: str, **extra: object) -> Key:
    """Return a new key; those of RSA are the same for the same id, because making one takes long."""
    if algorithm in CURVES:
        return Key(id, algorithm, ec.generate_private_key(CURVES[algorithm][0]), extra)
    if algorithm.startswith("Ed"):
        return Key(id, algorithm, ed25519.Ed25519PrivateKey.generate(), extra)
    return Key(id, algorithm, make_rsa(id or "", 2048), extra)


@cache
def make_rsa(_name: str, bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def sign(private: PrivateKey, algorithm: str, text: bytes) -> bytes:
    """Return the signature of a text (RFC 7518, section 3; RFC 8037, section 3.1)."""
    if isinstance(private, ed25519.Ed25519PrivateKey):
        return private.sign(text)
    digest = HASHES[algorithm[2:]]
    if isinstance(private, ec.EllipticCurvePrivateKey):
        length = (private.curve.key_size + 7) // 8
        r, s = decode_dss_signature(private.sign(text, ec.ECDSA(digest)))
        return r.to_bytes(length, "big") + s.to_bytes(length, "big")
    if algorithm.startswith("PS"):
        return private.sign(text, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    return private.sign(text, padding.PKCS1v15(), digest)


def encode(data: bytes) -> str:
    """Return bytes as text, by the URL-safe alphabet and without padding (RFC 7515, section 2)."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _public_members(private: PrivateKey) -> dict[str, str]:
    if isinstance(private, ed25519.Ed25519PrivateKey):
        return {"kty": "OKP", "crv": "Ed25519", "x": encode(private.public_key().public_bytes_raw())}
    if isinstance(private, rsa.RSAPrivateKey):
        numbers = private.public_key().public_numbers()
        return {"kty": "RSA", "n": _encode_number(numbers.n), "e": _encode_number(numbers.e)}
    point, length = private.public_key().public_numbers(), (private.curve.key_size + 7) // 8
    curve = next(name for known, name in CURVES.values() if known.name == private.curve.name)
    return {"kty": "EC", "crv": curve, "x": _encode_number(point.x, length), "y": _encode_number(point.y, length)}


def _encode_number(number: int, length: int | None = None) -> str:
    return encode(number.to_bytes(length or (number.bit_length() + 7) // 8, "big"))
