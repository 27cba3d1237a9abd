"""A lock on a file: held by one process at a time, and released by the system however that process ends."""

from __future__ import annotations

import os
import sys
import time

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PAUSE_SECONDS = 0.02


class FileLock:
    """The lock on one file, which is created if it does not exist."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._number: int | None = None

    def take(self, seconds: float = 0.0) -> bool:
        """Take the lock; return whether it became free within this many seconds."""
        deadline = time.monotonic() + seconds
        while not self._try():
            if time.monotonic() >= deadline:
                return False
            time.sleep(PAUSE_SECONDS)
        return True

    def release(self) -> None:
        """Release the lock; the file stays."""
        if self._number is not None:
            os.close(self._number)
            self._number = None

    def is_in_place(self) -> bool:
        """Return whether the locked file is still the one at the path, so that others would run into the lock."""
        try:
            there, ours = os.stat(self.path), os.fstat(self._number if self._number is not None else -1)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def _try(self) -> bool:
        number = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(number)
        except OSError:
            os.close(number)
            return False
        self._number = number
        if self.is_in_place():
            return True
        self.release()  # the file was deleted or replaced between opening and locking it
        return False


def _lock(number: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
