"""Builds the HNSW indexes of large collections in a background thread, while searches continue."""

from __future__ import annotations

import threading
from typing import Protocol

PATIENCE_SECONDS = 10.0
"""How long closing waits for the step at hand, which takes a fraction of a second."""


class Growable(Protocol):
    """What can be made faster step by step."""

    def extend_graphs(self, limit: int = ...) -> int:
        """Do one step; return how much is left."""
        ...


class Grower:
    """Builds one index at a time; requests meanwhile are dropped, and repeated by the next search."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def grow(self, index: Growable) -> None:
        """Begin to grow the index if anything is left to do, and nothing else is being grown. Returns at once."""
        with self._lock:
            if self._stopping.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            if index.extend_graphs(0):
                self._thread = threading.Thread(target=self._run, args=(index,), name="refdesk-graphs", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Return when what is being grown is finished."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Stop after the step at hand."""
        with self._lock:
            self._stopping.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_SECONDS)

    def _run(self, index: Growable) -> None:
        while not self._stopping.is_set() and index.extend_graphs():
            pass
