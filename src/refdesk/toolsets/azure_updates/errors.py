"""The scopes that operations need, and the errors that callers can meet."""

from __future__ import annotations

SCOPES = frozenset({"updates:read"})

ERRORS = {
    "INVALID_INPUT": "An argument has the wrong type, is out of range, is unknown, or the days are reversed.",
    "UNAUTHENTICATED": "The request carries no valid credential.",
    "PERMISSION_DENIED": "The credential lacks the scope `updates:read`.",
    "STORE_UNAVAILABLE": "The storage engine failed; try again later.",
}
READ_ERRORS = {code: ERRORS[code] for code in ("UNAUTHENTICATED", "PERMISSION_DENIED", "STORE_UNAVAILABLE")}
