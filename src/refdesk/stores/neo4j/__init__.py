"""The Neo4j engine: documents as nodes, links as relationships.

Several desks can share one database: each has a namespace of its own, and no statement leaves it.
"""

from refdesk.stores.neo4j.store import open_store

__all__ = ["open_store"]
