"""Append-only arrays, and the few array operations that the whole index is built from."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

Rows: TypeAlias = NDArray[np.int32]
"""Row numbers as they are stored, and other small numbers."""

RowNumbers: TypeAlias = NDArray[np.intp]
"""Row numbers as they are computed with."""

Mask: TypeAlias = NDArray[np.bool_]
"""One truth value per row."""

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


class Column(Generic[Scalar]):
    """An array that is appended to in amortised constant time per item.

    What was appended is never overwritten, so a view taken earlier stays valid whatever is appended later, in any
    thread.
    """

    def __init__(self, dtype: type[Scalar], width: int | None = None) -> None:
        self._length = 0
        self._values: NDArray[Scalar] = np.empty((0,) if width is None else (0, width), dtype)

    def __len__(self) -> int:
        return self._length

    @property
    def view(self) -> NDArray[Scalar]:
        """Return what has been appended so far; not a copy."""
        return self._values[: self._length]

    def extend(self, items: ArrayLike) -> None:
        """Append items."""
        added = np.asarray(items, self._values.dtype).reshape(-1, *self._values.shape[1:])
        end = self._length + len(added)
        if end > len(self._values):
            capacity = max(end, min(2 * self._length, self._length + (1 << 20)), 16)
            grown = np.empty((capacity, *self._values.shape[1:]), self._values.dtype)
            grown[: self._length] = self.view
            self._values = grown
        self._values[self._length : end] = added
        self._length = end


def get_offsets(counts: Integers) -> Integers:
    """Return where each of consecutive runs starts, followed by where the last one ends."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def expand_ranges(starts: Integers, counts: Integers) -> Integers:
    """Return start, start + 1, … for each range, `counts` numbers each, one range after another."""
    offsets = get_offsets(counts)
    numbers: Integers = np.arange(int(offsets[-1]))
    return numbers + np.repeat(starts - offsets[:-1], counts)


def differs_from_previous(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return where a value differs from the one before it; the first counts as different."""
    differs = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs
