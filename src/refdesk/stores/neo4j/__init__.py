"""The Neo4j engine: documents as nodes, links as relationships.

Several desks can share one database: each has a namespace of its own, to which all its statements are confined.
"""

from refdesk.stores.neo4j.store import open_store

__all__ = ["open_store"]
