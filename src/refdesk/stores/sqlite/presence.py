"""Whether the files that are open are still those that the store's path names.

SQLite goes on writing to a file that was moved, replaced or deleted, and what is committed then ends up in a file that
nobody will open again. Opening and closing the file to check would drop SQLite's locks, so only its name is looked up.
"""

from __future__ import annotations

import os
from pathlib import Path

from refdesk.errors import StoreError

_SUFFIXES = ("", "-wal", "-shm")
"""The file itself, the log of recent commits, and the memory that processes share: all three must stay in place."""


class Presence:
    """The identities of the files when they were opened."""

    def __init__(self, path: Path) -> None:
        self._paths = [f"{path}{suffix}" for suffix in _SUFFIXES]
        self._known: list[tuple[int, int]] | None = None

    @property
    def is_known(self) -> bool:
        """Whether the files were noted."""
        return self._known is not None

    def note(self) -> None:
        """Remember the files as they are now; call it once all of them are open."""
        self._known = self._identify()

    def require(self) -> None:
        """Return if the files are still the same, or were never noted.

        Raises:
            StoreError: One was moved, replaced or deleted.
        """
        if self._known is not None and self._identify() != self._known:
            raise StoreError(
                "The store's file was moved, replaced or deleted while it was in use: nothing written from now on "
                "would be kept, and what was just asked for is not. Stop every process that uses it, put the right "
                "file in its place, and start again."
            )

    def _identify(self) -> list[tuple[int, int]]:
        try:
            found = [os.stat(path) for path in self._paths]
        except OSError:
            return []
        return [(each.st_dev, each.st_ino) for each in found]
