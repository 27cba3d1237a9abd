"""A file in a place that cannot be written, such as a read-only file system: it is read, and nothing is stored.

SQLite cannot share such a file: its log may have to be read into it first, and beside it nothing can be made. So what
is there is copied to the folder for temporary files when it is opened, its log included, and read there, with a search
index of its own. Nobody changes what is read-only; whoever makes it writable again starts anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

from refdesk.errors import StoreError
from refdesk.stores.sqlite.failures import translated

if TYPE_CHECKING:
    from refdesk.protocols import Store

OBSTACLE = (
    "The store can only be read: its file or folder is on a read-only file system, or this user has no right to write "
    "there. Nothing can be stored until it can be written and the server is started again."
)
_COPIED = ("", "-wal")


def is_read_only(path: Path) -> bool:
    """Return whether there is a file at the path, in a place that this process cannot write."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


@contextmanager
def copied(path: Path) -> Generator[Path]:
    """Yield where a copy of the file and its log is, as long as the block lasts.

    Raises:
        StoreError: It cannot be read, or there is no room for it.
    """
    with TemporaryDirectory(prefix="refdesk-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / path.name
        with translated():
            for suffix in _COPIED:
                part = Path(f"{path}{suffix}")
                if part.exists():
                    shutil.copyfile(part, f"{copy}{suffix}")
        yield copy


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ReadOnlyStore:
    """A store that refuses to write; what it is derived from is written nowhere else either."""

    store: Store
    obstacle: str = OBSTACLE

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self.store, name)

    def transaction(self) -> NoReturn:
        """Refuse."""
        raise StoreError(self.obstacle)

    def loading(self) -> NoReturn:
        """Refuse."""
        raise StoreError(self.obstacle)

    async def scrub(self) -> bool:
        """Refuse."""
        raise StoreError(self.obstacle)

    async def check(self) -> None:
        """Return when the store can be read."""
        await self.store.get_change_mark()
