"""How much memory this process takes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROLLUP = Path("/proc/self/smaps_rollup")


def measure() -> int | None:
    """Return the bytes of this process, what it shares with others divided among them; `None` where nobody says it."""
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", ROLLUP.read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else None
    except OSError:
        return _get_peak()


def _get_peak() -> int | None:
    """Return the most that it has taken, where that is all the system says."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
