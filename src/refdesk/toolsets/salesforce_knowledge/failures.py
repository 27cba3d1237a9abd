"""Salesforce failures and their mapping to the eight error codes of the contract.

Within the client a failure stays as Salesforce reported it (`RefusedError`, `UnreachableError`), because what happens
next depends on it; `to_error` turns it into one of the contract's codes at the very end. Salesforce's own messages
quote statements and names, so only its error codes go into messages and the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from refdesk import errors

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]{1,63}")

INVALID_INPUT_CODES = frozenset({"MALFORMED_ID", "INVALID_QUERY_FILTER_OPERATOR"})
MALFORMED_SEARCH_CODES = frozenset({"MALFORMED_SEARCH", "INVALID_SEARCH", "MALFORMED_QUERY", "SEARCH_TERM_TOO_SHORT"})
MISSING_TYPE_CODES = frozenset({"INVALID_TYPE"})
LIMIT_CODES = frozenset({"REQUEST_LIMIT_EXCEEDED", "RATE_LIMIT_EXCEEDED", "TOO_MANY_REQUESTS"})
RETIRED_CODES = frozenset({"UNSUPPORTED_API_VERSION", "GONE"})


class SalesforceError(errors.WorldError):
    """Salesforce failed, was unavailable, returned an invalid response, or refused what refdesk sent."""

    code = "SF_API_ERROR"


class AuthError(errors.WorldError):
    """Salesforce does not take the credentials that refdesk is configured with, or there are none."""

    code = "AUTH_ERROR"


class KnowledgeDisabledError(errors.WorldError):
    """The org has no Salesforce Knowledge, or refdesk's user in it may not read articles."""

    code = "KNOWLEDGE_DISABLED"


class RateLimitExceededError(errors.LimitExceededError):
    """The org's allowance of API requests is used up."""

    code = "RATE_LIMIT_EXCEEDED"


@dataclass(slots=True, eq=False)
class RefusedError(Exception):
    """Salesforce answered with a refusal that repeating the request would not change.

    Attributes:
        status: The HTTP status.
        codes: Salesforce's error codes, as far as they look like codes.
        is_passing: Whether it is a limit on simultaneous requests, which may be over in a moment.
        is_final: Whether it is about a session and a new token would not help.
        retry_after: Seconds that Salesforce asks to wait, or that refdesk waits by itself.
    """

    status: int
    codes: tuple[str, ...] = ()
    is_passing: bool = False
    is_final: bool = False
    retry_after: float | None = None

    def __str__(self) -> str:
        return f"HTTP {self.status} {', '.join(self.codes)}".strip()

    def has(self, codes: frozenset[str]) -> bool:
        """Return whether Salesforce gave one of the codes."""
        return not codes.isdisjoint(self.codes)

    @property
    def is_limit(self) -> bool:
        """Whether the allowance of requests is used up, for the day or for the moment."""
        return self.status == 429 or self.has(LIMIT_CODES)


@dataclass(slots=True, eq=False)
class UnreachableError(Exception):
    """Salesforce did not answer, or not usably, but may do so next time.

    Attributes:
        reason: A few words for the log and the message, without anything secret.
        is_answered: Whether something answered, so that another way of asking may work.
        retry_after: Seconds that Salesforce asks to wait.
    """

    reason: str
    is_answered: bool = False
    retry_after: float | None = None

    def __str__(self) -> str:
        return self.reason


def read_codes(data: object) -> tuple[str, ...]:
    """Return the error codes of a body: a list of `{errorCode}` objects, or the token endpoint's `{error}`."""
    entries = cast("list[object]", data) if isinstance(data, list) else [data]
    objects = [cast("dict[str, object]", entry) for entry in entries[:5] if isinstance(entry, dict)]
    codes = (entry.get("errorCode") or entry.get("error") for entry in objects)
    return tuple(dict.fromkeys(code for code in codes if isinstance(code, str) and _CODE.fullmatch(code)))


def to_error(failure: RefusedError | UnreachableError) -> errors.RefdeskError:
    """Return the error for a caller."""
    if isinstance(failure, UnreachableError):
        details = {"retryAfterSeconds": round(failure.retry_after, 1)} if failure.retry_after else None
        return SalesforceError(f"Salesforce cannot be used now: {failure.reason}. Try again later.", details=details)
    details = _describe(failure)
    if failure.is_limit:
        return RateLimitExceededError(
            "Salesforce takes no more API requests for now: the org's allowance is used up. Ask again later, and ask "
            "an administrator if it happens often.",
            retry_after_seconds=failure.retry_after,
            details=details,
        )
    if failure.status == 401:
        return AuthError(_explain_session(failure), details=details)
    if failure.status == 403:
        return errors.PermissionDeniedError(_explain_permission(failure), details=details)
    if failure.status == 404:
        return SalesforceError(_NOT_THERE, details=details)
    if failure.has(INVALID_INPUT_CODES):
        return errors.InvalidInputError("Salesforce does not take this id or value; check it.", details=details)
    return SalesforceError(_explain_refusal(failure), details=details)


_NOT_THERE = (
    "Salesforce has no such interface at this address: check REFDESK_SALESFORCE_INSTANCE_URL and "
    "REFDESK_SALESFORCE_API_VERSION."
)


def _describe(failure: RefusedError) -> dict[str, object]:
    details: dict[str, object] = {"status": failure.status}
    return details | ({"salesforceErrorCodes": list(failure.codes)} if failure.codes else {})


def _explain_session(failure: RefusedError) -> str:
    if failure.is_final:
        return "Salesforce gives sessions that may not use the REST API: an administrator must give the app that right."
    return (
        "Salesforce does not accept refdesk's session, and a new one did not help or cannot be had: whoever runs "
        "refdesk must renew its Salesforce credentials."
    )


def _explain_permission(failure: RefusedError) -> str:
    if failure.codes and failure.codes[0].startswith("API_"):
        return "The Salesforce org does not allow use of its API: an administrator must enable it."
    return "The Salesforce user that refdesk runs as may not do this: an administrator must give it the right."


def _explain_refusal(failure: RefusedError) -> str:
    if failure.status == 410 or failure.has(RETIRED_CODES):
        return "Salesforce has retired this API version: whoever runs refdesk must set REFDESK_SALESFORCE_API_VERSION."
    if 300 <= failure.status < 400:
        return (
            "Salesforce points to another address, which is not followed: whoever runs refdesk must set "
            "REFDESK_SALESFORCE_INSTANCE_URL to the org's My Domain address."
        )
    return "Salesforce refused what refdesk sent. Ask in other words; if it stays, report it with these details."
