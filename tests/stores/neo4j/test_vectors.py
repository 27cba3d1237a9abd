"""How each version of the server is asked for the nearest."""

from __future__ import annotations

import pytest

from refdesk.errors import ConfigurationError
from refdesk.stores.neo4j.migrations import require_server
from refdesk.stores.neo4j.vectors import find_nearest, get_index_name, make_vector_index, parse_version

OLD = [(5, 26), (2025, 1), (2025, 12)]
NEW = [(2026, 1), (2026, 9), (2027, 1)]


@pytest.mark.parametrize(
    ("agent", "version"),
    [
        ("Neo4j/5.26.31", (5, 26)),
        ("Neo4j/2026.01.3", (2026, 1)),
        ("Neo4j/2025.10.0-rc1", (2025, 10)),
        ("Other/5.26", None),
    ],
)
def test_a_version_is_read_from_the_servers_agent(agent: str, version: tuple[int, int] | None) -> None:
    assert parse_version(agent) == version


@pytest.mark.parametrize("version", OLD)
def test_older_servers_are_asked_by_procedure(version: tuple[int, int]) -> None:
    statement = " ".join(find_nearest(384, version, "RETURN p").split())
    assert statement == (
        "CALL db.index.vector.queryNodes('refdesk_passage_384', $fetched, $vector) YIELD node AS p, score "
        "WHERE p.space = $space AND p.org = $org AND p.toolset = $toolset AND p.model = $model RETURN p"
    )


@pytest.mark.parametrize("version", NEW)
def test_newer_servers_are_asked_by_the_clause_that_filters_within_the_index(version: tuple[int, int]) -> None:
    statement = " ".join(find_nearest(384, version, "RETURN p").split())
    assert statement == (
        "CYPHER 25 MATCH (p:Passage384) SEARCH p IN ( VECTOR INDEX refdesk_passage_384_by_org FOR $vector "
        "WHERE p.space = $space AND p.org = $org AND p.toolset = $toolset AND p.model = $model LIMIT $fetched ) "
        "SCORE AS score RETURN p"
    )


@pytest.mark.parametrize("version", NEW)
def test_the_index_of_a_newer_server_holds_what_the_clause_filters_by(version: tuple[int, int]) -> None:
    drop, create = make_vector_index(4, version)
    assert drop == "DROP INDEX refdesk_passage_4 IF EXISTS"
    assert create.startswith(
        f"CYPHER 25 CREATE VECTOR INDEX {get_index_name(4, version)} IF NOT EXISTS FOR (p:Passage4)"
    )
    assert "WITH [p.space, p.org, p.toolset, p.model] OPTIONS" in create
    assert "`vector.dimensions`: 4, `vector.similarity_function`: 'cosine'" in create


@pytest.mark.parametrize("version", OLD)
def test_the_index_of_an_older_server_is_a_plain_one(version: tuple[int, int]) -> None:
    (create,) = make_vector_index(4, version)
    assert create.startswith(f"CREATE VECTOR INDEX {get_index_name(4, version)} IF NOT EXISTS FOR (p:Passage4)")
    assert "WITH" not in create


@pytest.mark.parametrize("agent", ["Neo4j/5.25.1", "Neo4j/4.4.40", "Memgraph/3.0", ""])
def test_a_server_that_lacks_what_is_needed_is_refused(agent: str) -> None:
    with pytest.raises(ConfigurationError, match=r"5\.26"):
        require_server(agent)
