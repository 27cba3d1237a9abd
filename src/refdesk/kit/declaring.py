"""Declarations shared by operations on the documents of several toolsets."""

from __future__ import annotations

ERRORS = {
    "INVALID_INPUT": "An argument is missing, malformed or out of range.",
    "UNAUTHENTICATED": "The request carries no valid credential.",
    "PERMISSION_DENIED": "The credential lacks the scopes that it takes; details name them.",
    "STORE_UNAVAILABLE": "The storage engine failed; try again.",
}
