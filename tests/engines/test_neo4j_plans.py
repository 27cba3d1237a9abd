"""What a page of a list costs on Neo4j depends on the page, not on all that the database holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString, cast

import pytest
from neo4j import GraphDatabase

from refdesk.core.writing.audit import make_entry
from refdesk.model import (
    And,
    AuditEntry,
    HasId,
    InState,
    Link,
    Metadata,
    MetadataKey,
    Reference,
    Revision,
    State,
)
from refdesk.stores.neo4j import archive, open_store
from refdesk.stores.neo4j.address import parse_address
from refdesk.stores.neo4j.connections import Database, Limits, OpenTransaction, Rows, Runner
from refdesk.stores.neo4j.migrations import OLDEST_SERVER, VectorIndexes
from refdesk.stores.neo4j.reads import Neo4jReader
from refdesk.stores.neo4j.search import Searcher
from tests.engines.neo4j import get_namespace, get_server, get_store_url
from tests.stores.samples import NOTES, NOW, asking, get_ids, make_document

pytestmark = pytest.mark.engines

MANY = 600
PAGE = 2
MOST_HITS = 150
"""What the database may look at for a page: for each entry some properties, and never one of all `MANY`."""


@dataclass
class Recorder:
    """Runs statements and remembers them with their parameters."""

    runner: Runner
    asked: list[tuple[str, dict[str, object]]] = field(default_factory=list[tuple[str, dict[str, object]]])

    async def run(self, statement: str, **parameters: object) -> Rows:
        self.asked.append((statement, parameters))
        return await self.runner.run(statement, **parameters)


Ask = Callable[[Recorder, str], Awaitable[object]]

PAGES: dict[str, Ask] = {
    "records of a kind": lambda runner, space: Neo4jReader(runner, space).list_metadata("job", limit=PAGE),
    "records of a kind and org": lambda runner, space: Neo4jReader(runner, space).list_metadata(
        "job", org="acme", limit=PAGE
    ),
    "records that are due": lambda runner, space: Neo4jReader(runner, space).list_metadata(
        "timed", due_until=NOW, limit=PAGE
    ),
    "records of no kind there is": lambda runner, space: Neo4jReader(runner, space).list_metadata("none", limit=PAGE),
    "the end of a log": lambda runner, space: Neo4jReader(runner, space).get_last_audit("acme"),
    "a page of a log": lambda runner, space: Neo4jReader(runner, space).get_audit("acme", 10, PAGE),
    "the first documents": lambda runner, space: archive.list_documents(runner, space, None, PAGE),
    "further documents": lambda runner, space: archive.list_documents(runner, space, (NOTES, "d005"), PAGE),
    "further links": lambda runner, space: archive.list_links(runner, space, make_link(5), PAGE),
    "further records": lambda runner, space: archive.list_all_metadata(
        runner, space, MetadataKey("acme", "job", "r005"), PAGE
    ),
}


def make_link(number: int) -> Link:
    return Link("acme", Reference("notes", f"d{number:03}"), "references", Reference("", "task"), NOW)


def make_log() -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    for _ in range(MANY):
        entries.append(make_entry(entries[-1] if entries else None, "acme", NOW, {"act": "store"}))
    return entries


async def fill(url: str) -> None:
    instants = [NOW + timedelta(seconds=number) for number in range(MANY)]
    async with open_store(url) as store, store.transaction() as transaction:
        await transaction.put_documents([make_document(f"d{number:03}") for number in range(MANY)])
        await transaction.put_links([make_link(number) for number in range(MANY)])
        await transaction.put_metadata(
            [Metadata(MetadataKey("acme", "job", f"r{number:03}"), {}) for number in range(MANY)]
        )
        await transaction.put_metadata(
            [Metadata(MetadataKey("acme", "timed", at.isoformat()), {}, due_at=at) for at in instants]
        )
        await transaction.put_audit(make_log())


def count_hits(statement: str, parameters: dict[str, object]) -> int:
    def add(plan: dict[str, Any]) -> int:
        return plan.get("dbHits", 0) + sum(map(add, plan.get("children", [])))

    with GraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType]
        get_server().get_url().partition("?")[0], notifications_min_severity="OFF"
    ) as driver:
        profiled = driver.execute_query(cast("LiteralString", f"PROFILE {statement}"), parameters)
    profile = profiled.summary.profile  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return add(cast("dict[str, Any]", profile))


async def test_a_page_costs_no_look_at_everything(tmp_path: Path) -> None:
    url, space = get_store_url(tmp_path), get_namespace(tmp_path)
    await fill(url)
    database = Database(parse_address(url), Limits())
    costs = dict[str, int]()
    try:
        for name, ask in PAGES.items():
            recorder = Recorder(database)
            await ask(recorder, space)
            costs[name] = max(count_hits(*asked) for asked in recorder.asked)
    finally:
        await database.close()
    assert {name: hits for name, hits in costs.items() if hits > MOST_HITS} == {}


async def test_what_a_filter_names_by_id_costs_no_look_at_the_others(tmp_path: Path) -> None:
    url, space = get_store_url(tmp_path), get_namespace(tmp_path)
    await fill(url)
    wanted = And((HasId(("d005", "d007", "d005", "gone")), InState((State.CURRENT,))))
    database = Database(parse_address(url), Limits())
    try:
        recorder = Recorder(database)
        searcher = Searcher(recorder, space, OLDEST_SERVER, VectorIndexes(database, OLDEST_SERVER))
        found = await searcher.find(asking(where=wanted))
    finally:
        await database.close()
    assert sorted(get_ids(found)) == ["d005", "d007"]
    assert found.total == 2
    assert max(count_hits(*asked) for asked in recorder.asked) <= MOST_HITS


async def test_vectors_and_versions_of_many_documents_take_one_statement(tmp_path: Path) -> None:
    url, space = get_store_url(tmp_path), get_namespace(tmp_path)
    ids = [f"d{number}" for number in range(20)]
    async with open_store(url) as store, store.transaction() as transaction:
        await transaction.put_documents([make_document(id) for id in ids])
    database = Database(parse_address(url), Limits())
    try:
        recorder = Recorder(database)
        histories = await Neo4jReader(recorder, space).get_histories(NOTES, ids)
        vectors = await archive.get_vectors(recorder, space, NOTES, ids)
    finally:
        await database.close()
    assert [history[0].document.id for history in histories] == ids
    assert vectors == [[] for _ in ids]
    assert len(recorder.asked) == 2


async def test_versions_from_elsewhere_take_as_many_statements_as_those_of_one_instant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = list[int]()
    run = OpenTransaction.run

    async def count(self: OpenTransaction, statement: str, **parameters: object) -> Rows:
        counts[-1] += 1
        return await run(self, statement, **parameters)

    monkeypatch.setattr(OpenTransaction, "run", count)
    async with open_store(get_store_url(tmp_path)) as store:
        for second in (0, 1):
            counts.append(0)
            async with store.transaction() as transaction:
                await transaction.put_revisions(
                    [
                        Revision(make_document(f"d{second}-{number}"), NOW + timedelta(seconds=second * number))
                        for number in range(20)
                    ]
                )
    assert counts[0] == counts[1] > 0
