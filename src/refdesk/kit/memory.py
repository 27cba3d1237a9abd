"""The memory of this process: measures it, and gives back what is free."""

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
"""How many more objects than before trigger the garbage collector."""


def measure() -> int | None:
    """Return the bytes of this process, with shared ones divided among those that share them; `None` if the system does
    not say."""
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", ROLLUP.read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else None
    except OSError:
        return _get_peak()


def measure_resident() -> int | None:
    """Return the bytes that this process has in memory, shared or not, which the system knows without looking at each
    page; `None` if it does not say. The peak is no substitute here, because it never falls again."""
    try:
        return int(STATM.read_bytes().split()[1]) * mmap.PAGESIZE
    except OSError:
        return None


_mapped: WeakSet[mmap.mmap] = WeakSet()
_turn = threading.Lock()


def note_mapped(mapping: mmap.mmap) -> None:
    """Note that a file is mapped read-only, so that its pages can be given back."""
    with _turn:
        _mapped.add(mapping)


def give_back_pages() -> None:
    """Give the pages of mapped read-only files back to the system: they stay in its cache, and come back when read.

    A thread that is reading them just then only loses some microseconds.
    """
    if sys.platform != "win32":
        with _turn:
            mapped = list(_mapped)
        for mapping in mapped:
            mapping.madvise(mmap.MADV_DONTNEED)


def give_back() -> None:
    """Give back those pages, and freed memory that the C library keeps: loading a model leaves tens of megabytes."""
    give_back_pages()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _get_peak() -> int | None:
    """Return the peak memory of this process, for systems that report nothing else."""
    if sys.platform == "win32":
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def keep_what_is_loaded() -> None:
    """Make the garbage collector, which may have been off during the start, scan only new objects from now on.

    It runs less often than by default: a call makes some thousand objects, nearly all of which are freed when it ends.
    """
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    gc.enable()
