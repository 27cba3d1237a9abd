"""An issuer's signing keys: the usable part of a JSON Web Key Set (RFC 7517), and the algorithms of each key.

Only the public members of a key are read, so a set that gives away private ones does no harm here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWS
from jwt.algorithms import OKPAlgorithm
from jwt.exceptions import PyJWTError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jwt.algorithms import AllowedPublicKeys

KINDS: Mapping[str, tuple[str, str | None]] = {
    **{f"{family}{size}": ("RSA", None) for family in ("RS", "PS") for size in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
"""The accepted algorithms, and the kind of key that each needs: its `kty` and its `crv` (RFC 7518, RFC 8037).

The last two are the same algorithm, under its old name and that of RFC 9864. All are asymmetric: whoever can check a
signature cannot make one.
"""

RSA_BITS = range(2048, 8192 + 1)
"""RFC 7518, section 3.3, wants 2048 at least; the upper bound keeps checking a signature cheap."""

_MEMBERS = {"RSA": ("n", "e"), "EC": ("x", "y"), "OKP": ("x",)}
_SIGNATURES = PyJWS(algorithms=list(KINDS))
_SIGNATURES.register_algorithm("Ed25519", OKPAlgorithm())  # the library knows only the old name


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One key.

    Attributes:
        id: As tokens name it (`kid`), if they do.
        kind: Its `kty` and `crv`.
        algorithm: The only one it may be used with, if the set says so.
    """

    id: str | None
    kind: tuple[str, str | None]
    algorithm: str | None
    public: AllowedPublicKeys

    def fits(self, algorithm: str) -> bool:
        """Return whether this key can make signatures of this algorithm."""
        return KINDS.get(algorithm) == self.kind and self.algorithm in (None, algorithm)

    def read(self, token: str, algorithm: str) -> bytes | None:
        """Return the payload of a token that this key has signed, or `None` if it has not."""
        try:
            return cast("bytes", _SIGNATURES.decode(token, self.public, algorithms=[algorithm]))
        except (PyJWTError, ValueError, TypeError, RecursionError):
            return None


def read_keys(document: Mapping[str, Any]) -> tuple[SigningKey, ...]:
    """Return the keys of a set with which signatures can be checked; others are skipped.

    Raises:
        ValueError: The document is not a set of keys, or none of them can be used.
    """
    listed: object = document.get("keys")
    if not isinstance(listed, list):
        raise ValueError("it is no set of keys")  # noqa: TRY004 - of the document, not of an argument
    found = [_read_key(cast("dict[str, Any]", one)) for one in cast("list[object]", listed) if isinstance(one, dict)]
    keys = tuple(key for key in found if key is not None)
    if not keys:
        raise ValueError("it has no key that signatures can be checked with")
    return keys


def choose_key(keys: tuple[SigningKey, ...], id: str | None, algorithm: str) -> SigningKey | None:
    """Return the key a token's header refers to: the first with its id or, if it names none, the only one that fits.

    `None` if there is no such key.
    """
    fitting = [key for key in keys if key.fits(algorithm) and id in (None, key.id)]
    return fitting[0] if fitting and (id is not None or len(fitting) == 1) else None


def _read_key(value: dict[str, Any]) -> SigningKey | None:
    kind = (value.get("kty"), value.get("crv") if value.get("kty") != "RSA" else None)
    default = next((name for name, needed in KINDS.items() if needed == kind), None)
    if default is None or not _is_for_signatures(value):
        return None
    members = {name: value.get(name) for name in ("kty", "crv", *_MEMBERS[KINDS[default][0]])}
    try:
        public = PyJWK({name: member for name, member in members.items() if member is not None}, default).key
    except (PyJWTError, ValueError, TypeError):
        return None
    if isinstance(public, RSAPublicKey) and public.key_size not in RSA_BITS:
        return None
    id, algorithm = value.get("kid"), value.get("alg")
    return SigningKey(
        id if isinstance(id, str) else None,
        KINDS[default],
        algorithm if isinstance(algorithm, str) else None,
        cast("AllowedPublicKeys", public),
    )


def _is_for_signatures(value: Mapping[str, Any]) -> bool:
    operations = value.get("key_ops")
    allowed = not isinstance(operations, list) or "verify" in cast("list[object]", operations)
    return value.get("use") in (None, "sig") and allowed
