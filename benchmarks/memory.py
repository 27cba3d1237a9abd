"""What memory a process has to itself: what nothing else uses and no file holds."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

INTERVAL_SECONDS = 0.05


def get_private_bytes(process: int | str = "self") -> int:
    """Return the process's anonymous resident memory: heap and stacks, without what is mapped from files."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise ValueError("This system does not tell.")


class Peak:
    """Watches this process's private memory while something runs."""

    def __init__(self) -> None:
        self.bytes = 0
        """The most that was seen."""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(INTERVAL_SECONDS):
            self.bytes = max(self.bytes, get_private_bytes())
