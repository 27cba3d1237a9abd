"""Small files beside the store's file that say what it may no longer be able to say itself, once it is damaged."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refdesk.stores.sqlite.driver import Connection

ERASED, MOVED = "-erased", "-moved"
"""Their suffixes: of the list of what was erased, and of where the store was moved to."""


def find_path(connection: Connection) -> Path:
    """Return the path of the file that a connection is to."""
    ((path,),) = connection.execute("SELECT file FROM pragma_database_list WHERE name = 'main'")
    return Path(path)


def write_beside(path: Path, suffix: str, content: bytes) -> None:
    """Write the file with this suffix beside a store's file, for its owner only, as a whole and onto the disk."""
    # Several processes, and several threads of one, may write it at once: each uses a temporary file of its own.
    partial = Path(f"{path}{suffix}.{os.getpid()}-{threading.get_ident()}.partial")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(f"{path}{suffix}")
