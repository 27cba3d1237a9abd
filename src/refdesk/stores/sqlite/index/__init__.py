"""The search index of the embedded engine: exact BM25, exact vectors and filters as masks, all in memory."""

from refdesk.stores.sqlite.index.collection import CollectionIndex
from refdesk.stores.sqlite.index.rows import IndexRow, VectorRow
from refdesk.stores.sqlite.index.terms import ANALYSIS_VERSION, encode_terms

__all__ = ["ANALYSIS_VERSION", "CollectionIndex", "IndexRow", "VectorRow", "encode_terms"]
