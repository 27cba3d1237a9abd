"""The PostgreSQL engine, with pgvector, for many processes and machines."""

from refdesk.stores.postgres.search import Limits
from refdesk.stores.postgres.store import open_store, stands_above_policies

__all__ = ["Limits", "open_store", "stands_above_policies"]
