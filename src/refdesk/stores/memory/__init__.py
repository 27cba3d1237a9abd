"""The reference engine: dictionaries and brute force, so plain that it can be checked by reading."""

from refdesk.stores.memory.store import MemoryStore, MemoryTransaction

__all__ = ["MemoryStore", "MemoryTransaction"]
