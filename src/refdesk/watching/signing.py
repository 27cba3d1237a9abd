"""Signing: deliveries are signed as Standard Webhooks specifies, so that any library for it can verify them.

Source: the Standard Webhooks specification, 1.0.0: HMAC-SHA256 over id, timestamp and body, joined by full stops.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"
BYTES = 32


def make_secret() -> str:
    """Return a new secret: 256 random bits."""
    return PREFIX + base64.b64encode(secrets.token_bytes(BYTES)).decode()


def sign(secret: str, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a delivery.

    Args:
        secret: A secret from `make_secret`.
        id: The id of the message, the same however often it is sent.
        timestamp: When it is sent, in seconds since 1970.
        body: The body that is sent.
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.new(key, b".".join((id.encode(), str(timestamp).encode(), body)), hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": id, "webhook-timestamp": str(timestamp), "webhook-signature": signature}
