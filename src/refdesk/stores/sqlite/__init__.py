"""The embedded engine: one SQLite file, shared by any number of processes."""

from refdesk.stores.sqlite.store import open_store

__all__ = ["open_store"]
