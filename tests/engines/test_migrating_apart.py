"""The README's recipe on real engines: everything to PostgreSQL, skills to Neo4j, and back into one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines import neo4j, postgres
from tests.test_cli_migrate import hold_the_readmes_recipe

pytestmark = pytest.mark.engines


def test_the_readmes_recipe_on_postgresql_and_neo4j(tmp_path: Path) -> None:
    hold_the_readmes_recipe(
        tmp_path,
        lambda name: (neo4j if name == "graph" else postgres).get_store_url(tmp_path / name),
    )
