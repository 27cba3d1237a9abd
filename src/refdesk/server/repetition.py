"""When a repeated call was first sent: the forwarder repeats calls that a desk left unanswered when it ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from refdesk.core.writing.idempotency import REPEATED
from refdesk.forwarder.journal import ASKED_AT

if TYPE_CHECKING:
    from collections.abc import Mapping


def read(meta: object) -> datetime | None:
    """Return when the caller says a request was first sent, at most `REPEATED` ago; `None` if it does not say."""
    said = cast("Mapping[str, Any]", meta or {}).get(ASKED_AT)
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    now = datetime.now(UTC).timestamp()
    return datetime.fromtimestamp(max(now - REPEATED.total_seconds(), min(now, said)), UTC)
