"""The engine for many processes and machines: PostgreSQL with pgvector."""

from refdesk.stores.postgres.store import open_store

__all__ = ["open_store"]
