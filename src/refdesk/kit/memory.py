"""The memory of this process: how much it is, and giving back what is free."""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

if sys.platform != "win32":
    import resource

ROLLUP = Path("/proc/self/smaps_rollup")


def measure() -> int | None:
    """Return the bytes of this process, what it shares with others divided among them; `None` where nobody says it."""
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", ROLLUP.read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else None
    except OSError:
        return _get_peak()


def give_back() -> None:
    """Give the system back what was freed. The C library keeps it, and a load of a model leaves tens of megabytes."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _get_peak() -> int | None:
    """Return the most that it has taken, where that is all the system says."""
    if sys.platform == "win32":
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
