"""When a call was first sent that comes again: the forwarder repeats what the end of a desk left without an answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from refdesk.core.writing.idempotency import REPEATED
from refdesk.forwarder.journal import ASKED_AT

if TYPE_CHECKING:
    from collections.abc import Mapping


def read(meta: object) -> datetime | None:
    """Return when the caller says a request was first sent, at most `REPEATED` ago; `None` where it says nothing."""
    said = cast("Mapping[str, Any]", meta or {}).get(ASKED_AT)
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    now = datetime.now(UTC).timestamp()
    return datetime.fromtimestamp(max(now - REPEATED.total_seconds(), min(now, said)), UTC)
