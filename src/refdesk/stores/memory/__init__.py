"""The reference engine: dictionaries and brute force, simple enough to verify by reading."""

from refdesk.stores.memory.store import MemoryStore, MemoryTransaction

__all__ = ["MemoryStore", "MemoryTransaction"]
