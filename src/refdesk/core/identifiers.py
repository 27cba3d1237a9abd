"""Identifier generation, injected so that tests are deterministic."""

from __future__ import annotations

from itertools import count

import uuid_utils


class Uuid7Identifiers:
    """UUIDs of version 7 (RFC 9562), which sort by the instant they were made."""

    def new(self) -> str:
        """See `Identifiers.new`."""
        return str(uuid_utils.uuid7())


class SequentialIdentifiers:
    """Valid UUIDs of version 7 that count up from one, for tests."""

    def __init__(self) -> None:
        self._counter = count(1)

    def new(self) -> str:
        """See `Identifiers.new`."""
        return f"00000000-0000-7000-8000-{next(self._counter):012x}"
