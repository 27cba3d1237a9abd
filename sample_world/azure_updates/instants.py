"""Instants as the feed writes them: up to seven fractional digits, which `datetime` cannot hold."""

from __future__ import annotations

import re
from datetime import UTC, datetime

TICKS_PER_SECOND = 10_000_000

_INSTANT = re.compile(
    r"(?P<minute>\d{4}-\d\d-\d\dT\d\d:\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,12}))?)?(?P<zone>Z|[+-]\d\d:\d\d)"
)
_EPOCH = datetime(1, 1, 1, tzinfo=UTC)


def to_ticks(value: object) -> int | None:
    """Return the instant in steps of 100 ns since the year 1, or `None` when `value` is no instant with a zone.

    Digits beyond the seventh are cut. The step is that of OData's `Edm.DateTimeOffset` on the .NET services that serve
    the feed.
    """
    match = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    zone = "+00:00" if match["zone"] == "Z" else match["zone"]
    try:
        whole = datetime.fromisoformat(f"{match['minute']}:{match['second'] or '00'}{zone}")
        since = whole - _EPOCH
    except (ValueError, OverflowError):
        return None
    fraction = int((match["fraction"] or "0").ljust(7, "0")[:7])
    return (since.days * 86_400 + since.seconds) * TICKS_PER_SECOND + fraction
