"""The search index of the embedded engine: exact BM25, exact vectors and filters, over mapped files."""

from refdesk.stores.sqlite.index.collection import CollectionIndex
from refdesk.stores.sqlite.index.content import from_content, to_content
from refdesk.stores.sqlite.index.files import FORMAT, DoubtfulFileError, map_content, write_content
from refdesk.stores.sqlite.index.merging import merge_snapshots
from refdesk.stores.sqlite.index.rows import IndexRow, VectorRow
from refdesk.stores.sqlite.index.search import Snapshot
from refdesk.stores.sqlite.index.terms import ANALYSIS_VERSION, encode_terms

__all__ = [
    "ANALYSIS_VERSION",
    "FORMAT",
    "CollectionIndex",
    "DoubtfulFileError",
    "IndexRow",
    "Snapshot",
    "VectorRow",
    "encode_terms",
    "from_content",
    "map_content",
    "merge_snapshots",
    "to_content",
    "write_content",
]
