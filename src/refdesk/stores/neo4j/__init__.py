"""Everything in a Neo4j database: documents as nodes, what supersedes and concerns what as relationships.

Several desks can share one database: each has a namespace of its own, and no statement leaves it.
"""

from refdesk.stores.neo4j.store import open_store

__all__ = ["open_store"]
