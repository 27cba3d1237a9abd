"""Approximate nearest passages (HNSW), for collections too large for exhaustive comparison.

Source: Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable
Small World graphs" (2018), in the library usearch, which the extra `hnsw` brings. Without it everything is compared.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from refdesk.model import Vector
    from refdesk.stores.sqlite.index.columns import Integers

NEIGHBOURS = 16
EFFORT_TO_ADD = 128
"""How many neighbours are weighed when one is added, the `efConstruction` of the source."""


@cache
def is_available() -> bool:
    """Return whether the library is installed."""
    return find_spec("usearch") is not None


def load_library() -> ModuleType:
    """Return the library, loaded so that a model can still be loaded after it."""
    # ONNX Runtime, on which the packaged model runs, ends the whole process by a segmentation fault when it is loaded
    # after this library, and not when it is loaded before (usearch 2.26.6, onnxruntime 1.31.1).
    import_module("onnxruntime")
    return import_module("usearch.index")


class Graph:
    """The passages 0 to `size` - 1 of one model. Safe to search in any thread while another adds."""

    def __init__(self, dimensions: int) -> None:
        # Importing the library takes longer than a search, and most collections never need it. How widely it searches
        # is left to how many are asked for (`expansion_search` is its floor).
        self._index: Any = load_library().Index(
            ndim=dimensions,
            metric="ip",
            dtype="f16",
            connectivity=NEIGHBOURS,
            expansion_add=EFFORT_TO_ADD,
            expansion_search=1,
        )
        # The library lets searches run beside additions, but not beside the growth that an addition may need.
        self._lock = threading.Lock()
        self._size = 0

    @property
    def size(self) -> int:
        """How many passages it holds."""
        return self._size

    def extend(self, vectors: NDArray[np.float32]) -> None:
        """Add the next passages."""
        with self._lock:
            self._index.add(np.arange(self._size, self._size + len(vectors)), vectors, threads=1)
            self._size += len(vectors)

    def search(self, query: Vector, count: int) -> Integers:
        """Return about the `count` nearest passages; the more are asked for, the surer the first of them are."""
        with self._lock:
            return self._index.search(query, count, threads=1).keys.astype(np.int64)
