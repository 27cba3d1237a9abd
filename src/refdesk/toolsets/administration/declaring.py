"""What all operations of administration declare."""

from __future__ import annotations

ADMIN = frozenset({"admin"})

ERRORS = {
    "INVALID_INPUT": "An argument is malformed or out of range.",
    "UNAUTHENTICATED": "The request carries no valid credential.",
    "PERMISSION_DENIED": "The credential lacks the scope admin.",
    "STORE_UNAVAILABLE": "The storage engine failed; try again.",
}
