"""The index of one collection."""

from __future__ import annotations

from collections.abc import Sequence

from refdesk.model import FindRequest, Found
from refdesk.stores.sqlite.index.rows import IndexRow, VectorRow


class CollectionIndex:
    """Finds the documents of one collection, in memory; made from the store's rows and thrown away with the process."""

    def apply(self, rows: Sequence[IndexRow]) -> None:
        """Add or replace documents by key; a withdrawn one is dropped."""
        raise NotImplementedError

    def set_vectors(self, model: str, dimensions: int, keys: Sequence[int], rows: Sequence[VectorRow]) -> None:
        """Give the documents of `keys` exactly the passages in `rows`, in place of those they had of this model."""
        raise NotImplementedError

    def drop_model(self, model: str) -> None:
        """Forget every vector of a model."""
        raise NotImplementedError

    def find(self, request: FindRequest) -> Found:
        """Return what matches; see `refdesk.protocols.Store.find`."""
        raise NotImplementedError
