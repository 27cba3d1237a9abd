"""HTTP replies: JSON in its compact form, and each error under its status."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import Response

from refdesk import errors
from refdesk.core import contracts
from refdesk.server import answers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from refdesk.core.operations import ErrorFormat


CHALLENGE = 'Bearer realm="refdesk"'


def reply(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as a JSON reply that must not be cached."""
    return reply_text(answers.to_text(value), status, headers)


def reply_text(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a text that is JSON as a reply that must not be cached."""
    return Response(
        text,
        status,
        media_type="application/json",
        headers={"cache-control": "no-store", **(headers or {})},
    )


def reply_error(error: errors.RefdeskError, form: ErrorFormat, status: int | None = None) -> Response:
    """Return an error under its status, in its toolset's form."""
    headers: dict[str, str] = {}
    if isinstance(error, errors.LimitExceededError) and error.retry_after_seconds is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_seconds)))
    if isinstance(error, errors.UnauthenticatedError):
        headers["www-authenticate"] = CHALLENGE
    if isinstance(error, errors.PermissionDeniedError) and error.details and "missingScopes" in error.details:
        headers["www-authenticate"] = want_scopes(cast("list[str]", error.details["missingScopes"]))
    body: dict[str, Any] = answers.error_to_json(error, form)
    return reply(body, status or status_of(error), headers)


def want_scopes(scopes: Iterable[str]) -> str:
    """Return the challenge to a caller whose key lacks scopes (RFC 6750, section 3.1)."""
    return f'Bearer realm="refdesk", error="insufficient_scope", scope="{" ".join(scopes)}"'


def status_of(error: errors.RefdeskError) -> int:
    """Return the HTTP status of an error."""
    return next((status for kind, status in contracts.STATUSES.items() if isinstance(error, kind)), 500)
