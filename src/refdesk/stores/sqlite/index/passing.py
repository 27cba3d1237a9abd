"""Rows that were selected."""

from __future__ import annotations

import numpy as np

from refdesk.stores.sqlite.index.columns import Mask, RowNumbers


class Passing:
    """A selection of rows, by number or as a mask, whichever was at hand; the other is made when first asked for."""

    __slots__ = ("_mask", "_rows", "_size", "is_everything")

    def __init__(self, size: int, *, rows: RowNumbers | None = None, mask: Mask | None = None) -> None:
        """Take one of the two, or neither for all rows.

        Args:
            rows: Their numbers, ascending, each once.
            mask: One truth value per row.
        """
        self._size, self._rows, self._mask = size, rows, mask
        self.is_everything = rows is None and mask is None

    @property
    def has_rows(self) -> bool:
        """Whether the rows are at hand."""
        return self._rows is not None

    @property
    def count(self) -> int:
        """How many rows are selected."""
        if self._rows is not None:
            return len(self._rows)
        return self._size if self._mask is None else int(np.count_nonzero(self._mask))

    @property
    def rows(self) -> RowNumbers:
        """Their numbers, ascending."""
        if self._rows is None:
            self._rows = np.arange(self._size) if self._mask is None else np.flatnonzero(self._mask)
        return self._rows

    @property
    def mask(self) -> Mask:
        """One truth value per row."""
        if self._mask is None:
            self._mask = np.full(self._size, self._rows is None)
            if self._rows is not None:
                self._mask[self._rows] = True
        return self._mask

    def keep(self, mask: Mask) -> Passing:
        """Return the selected rows that a mask holds."""
        if self.is_everything:
            return Passing(self._size, mask=mask)
        if self._rows is None:
            return Passing(self._size, mask=self.mask & mask)
        return Passing(self._size, rows=self._rows.take(np.flatnonzero(mask.take(self._rows))))
