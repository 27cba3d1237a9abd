"""What can go wrong with the REST API, beside what can go wrong with any service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from sample_world import faults
from sample_world.faults import TransportFault
from sample_world.salesforce.errors import ApiError

FaultKind = TransportFault | Literal["refuse", "answer"]
ErrorName = Literal[
    "session_expired",
    "session_not_for_rest",
    "request_limit",
    "concurrent_limit",
    "api_disabled_for_org",
    "api_currently_disabled",
    "insufficient_access",
    "malformed_search",
    "query_timeout",
    "not_found",
    "unknown_exception",
    "server_unavailable",
]

ERRORS: Mapping[ErrorName, ApiError] = {
    "session_expired": ApiError(401, "INVALID_SESSION_ID", "Session expired or invalid"),
    "session_not_for_rest": ApiError(401, "INVALID_SESSION_ID", "This session is not valid for use with the REST API"),
    "request_limit": ApiError(403, "REQUEST_LIMIT_EXCEEDED", "TotalRequests Limit exceeded."),
    "concurrent_limit": ApiError(
        403, "REQUEST_LIMIT_EXCEEDED", "ConcurrentRequests (Concurrent API Requests) Limit exceeded."
    ),
    "api_disabled_for_org": ApiError(403, "API_DISABLED_FOR_ORG", "The REST API is not enabled for this Organization."),
    "api_currently_disabled": ApiError(403, "API_CURRENTLY_DISABLED", "API is currently disabled for this user."),
    "insufficient_access": ApiError(403, "INSUFFICIENT_ACCESS_OR_READONLY", "insufficient access rights on object id"),
    "malformed_search": ApiError(400, "MALFORMED_SEARCH", "No search term found."),
    "query_timeout": ApiError(400, "QUERY_TIMEOUT", "Your query request was running for too long."),
    "not_found": ApiError(404, "NOT_FOUND", "The requested resource does not exist"),
    "unknown_exception": ApiError(500, "UNKNOWN_EXCEPTION", "An unexpected error occurred. ErrorId: 1719-84 (sample)"),
    "server_unavailable": ApiError(503, "SERVER_UNAVAILABLE", "Server is too busy. Please try again later."),
}


class FaultRule(faults.FaultRule, frozen=True):
    """One fault of the REST API; `path` tells its resources apart, as `/parameterizedSearch` or `/oauth2/token`.

    Attributes:
        fault: What happens, beside what every emulator knows:

            - `refuse`: answer as the service does when it refuses: `error` names the answer.
            - `answer`: answer with `status` and the JSON value `body`.
    """

    fault: FaultKind
    status: Annotated[int, Field(ge=200, le=599)] = 503
    error: ErrorName = "server_unavailable"
    body: object = None


_RULES = TypeAdapter(list[FaultRule])


def parse_rules(value: object) -> list[FaultRule]:
    """Return the rules in a JSON list.

    Raises:
        ValueError: it is no list of rules; pydantic's error says where.
    """
    return _RULES.validate_python(value)
