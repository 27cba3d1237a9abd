"""Reads instants as sources write them."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from refdesk.core.background.records import InvalidRecordError


def read_instant(text: str) -> datetime:
    """Return the instant in UTC, from ISO 8601 or the format of mail and feeds (RFC 5322); without an offset it is UTC.

    Raises:
        InvalidRecordError: It is neither.
    """
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            instant = read(text.strip())
            return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            continue
    raise InvalidRecordError("its date is no instant")
