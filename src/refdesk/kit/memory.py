"""The memory of this process: how much it is, and giving back what is free."""

from __future__ import annotations

import ctypes
import gc
import mmap
import re
import sys
import threading
from pathlib import Path
from weakref import WeakSet

if sys.platform != "win32":
    import resource

ROLLUP = Path("/proc/self/smaps_rollup")
STATM = Path("/proc/self/statm")

NEW_OBJECTS = 10_000
"""So many more than before make the garbage collector look."""


def measure() -> int | None:
    """Return the bytes of this process, what it shares with others divided among them; `None` where nobody says it."""
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", ROLLUP.read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else None
    except OSError:
        return _get_peak()


def measure_resident() -> int | None:
    """Return the bytes that this process has in memory, shared or not, which the system knows without looking at each
    page; `None` where it does not say so: the most that there ever were would never be little again."""
    try:
        return int(STATM.read_bytes().split()[1]) * mmap.PAGESIZE
    except OSError:
        return None


_mapped: WeakSet[mmap.mmap] = WeakSet()
_turn = threading.Lock()


def note_mapped(mapping: mmap.mmap) -> None:
    """Take down that a file is mapped to be read only, so that its pages can be given back."""
    with _turn:
        _mapped.add(mapping)


def give_back_pages() -> None:
    """Give the system back pages of files that were only read: they stay in its cache, and come back when read.

    Whoever reads them just now loses nothing but some microseconds.
    """
    if sys.platform != "win32":
        with _turn:
            mapped = list(_mapped)
        for mapping in mapped:
            mapping.madvise(mmap.MADV_DONTNEED)


def give_back() -> None:
    """Do so, and with what was freed, which the C library keeps: a load of a model leaves tens of megabytes."""
    give_back_pages()
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


def keep_what_is_loaded() -> None:
    """Let the garbage collector, which may have been off during the start, look from now on at what is new.

    Not as often as it would by itself: a call makes some thousand objects, of which nearly all go as it ends.
    """
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    gc.enable()
