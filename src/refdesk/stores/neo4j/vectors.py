"""Vector queries in the syntax of the server's version; nothing else depends on that version.

In 5.26 and the versions of 2025, a procedure finds the nearest in a whole index, and what belongs to others is filtered
out afterwards. From 2026.01 on, the clause SEARCH of Cypher 25 searches only the passages of one collection, through
properties that are part of the index. Vectors are compared by cosine; both return (1 + cosine) / 2.
"""

from __future__ import annotations

import re

SEARCH_SINCE = (2026, 1)
WIDEST = 4096
"""Most components of a vector that an index takes; wider vectors are compared one by one."""

_VERSION = re.compile(r"Neo4j/(\d+)\.(\d+)")
_FIND_BY_PROCEDURE = """
    CALL db.index.vector.queryNodes('{index}', $fetched, $vector) YIELD node AS p, score
    WHERE p.space = $space AND p.org = $org AND p.toolset = $toolset AND p.model = $model
"""
_FIND_BY_SEARCH = """
    MATCH (p:Passage{width})
      SEARCH p IN (
        VECTOR INDEX {index} FOR $vector
        WHERE p.space = $space AND p.org = $org AND p.toolset = $toolset AND p.model = $model
        LIMIT $fetched
      ) SCORE AS score
"""
_MAKE_INDEX = (
    "CREATE VECTOR INDEX {index} IF NOT EXISTS FOR (p:Passage{width}) ON (p.vector) "
    "OPTIONS {{indexConfig: {{`vector.dimensions`: {width}, `vector.similarity_function`: 'cosine', "
    "`vector.quantization.enabled`: false}}}}"
)
_MAKE_INDEX_BY_ORG = (
    "CYPHER 25 CREATE VECTOR INDEX {index} IF NOT EXISTS FOR (p:Passage{width}) ON (p.vector) "
    "WITH [p.space, p.org, p.toolset, p.model] "
    "OPTIONS {{indexConfig: {{`vector.dimensions`: {width}, `vector.similarity_function`: 'cosine', "
    "`vector.quantization.enabled`: false}}}}"
)
_DROP_INDEX = "DROP INDEX {index} IF EXISTS"


def parse_version(agent: str) -> tuple[int, int] | None:
    """Return major and minor of an agent such as "Neo4j/5.26.31" or "Neo4j/2026.01.3"; `None` for another product."""
    match = _VERSION.match(agent)
    return (int(match[1]), int(match[2])) if match else None


def find_nearest(width: int, version: tuple[int, int], rest: str) -> str:
    """Return a statement that finds the `$fetched` passages nearest to `$vector`, as `p` with `score`, then goes on.

    Args:
        width: The width of the vectors.
        version: The server's version.
        rest: The rest of the statement, which uses the passages found.
    """
    has_search = version >= SEARCH_SINCE
    find = _FIND_BY_SEARCH if has_search else _FIND_BY_PROCEDURE
    text = find.format(width=width, index=get_index_name(width, version))
    return f"{'CYPHER 25 ' if has_search else ''}{text}{rest}"


def get_index_name(width: int, version: tuple[int, int]) -> str:
    """Return the name of the vector index for a width."""
    return f"refdesk_passage_{width}{'_by_org' if version >= SEARCH_SINCE else ''}"


def make_vector_index(width: int, version: tuple[int, int]) -> list[str]:
    """Return the statements that create the index for vectors of a width; running them again changes nothing.

    On an upgraded server they replace an index that cannot separate orgs by one that can.
    """
    index = get_index_name(width, version)
    if version >= SEARCH_SINCE:
        older = get_index_name(width, (0, 0))
        return [_DROP_INDEX.format(index=older), _MAKE_INDEX_BY_ORG.format(width=width, index=index)]
    return [_MAKE_INDEX.format(width=width, index=index)]
