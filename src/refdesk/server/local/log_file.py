"""The log of a desk that clients started, to which its stdout and stderr are redirected: one file, and the one before
it."""

from __future__ import annotations

import os

MOST_BYTES = 4_000_000


def open_log(path: str, most_bytes: int = MOST_BYTES) -> None:
    """Redirect stdout and stderr to the log; rotate a full log first, replacing the one before it.

    Raises:
        OSError: The log cannot be written.
    """
    if _measure(path) > most_bytes:
        os.replace(path, f"{path}.old")
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(number, 1)
    os.dup2(number, 2)
    os.close(number)


def _measure(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
