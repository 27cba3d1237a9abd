"""How SQLite goes about the reads that grow with an org: by an index that leads straight to the rows."""

from __future__ import annotations

from pathlib import Path

from refdesk.protocols import Store
from refdesk.stores.sqlite import reads
from refdesk.stores.sqlite.driver import Connection


async def test_links_are_found_by_either_end_without_walking_the_others(sqlite: Store, tmp_path: Path) -> None:
    connection = Connection(tmp_path / "store.sqlite3", 0)
    statement = vars(reads)["_GET_LINKS"]
    bindings = {"org": "acme", "toolset": "notes", "id": "a"}
    plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings)]
    connection.close()
    steps = [step for step in plan if "links" in step]
    assert any("source_toolset=? AND source_id=?" in step for step in steps), plan
    assert any("target_toolset=? AND target_id=?" in step for step in steps), plan
    assert not any(step.startswith("SCAN links") for step in steps), plan


async def test_what_is_embedded_is_told_by_the_index_of_ids_alone(sqlite: Store, tmp_path: Path) -> None:
    connection = Connection(tmp_path / "store.sqlite3", 0)
    statement = vars(reads)["_GET_EMBEDDED"]
    plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", (1, '["a"]', "model"))]
    connection.close()
    assert any("documents USING" in step and "collection=? AND id=?" in step for step in plan), plan
    assert not any(step.startswith(("SCAN documents", "SCAN vectors")) for step in plan), plan
