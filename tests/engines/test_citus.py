"""A store on a Citus cluster: each org on one node, found and written there, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from refdesk.errors import ConfigurationError, ConflictError, StoreError
from refdesk.model import Collection, Document
from refdesk.protocols import Store
from refdesk.stores.postgres import backfill, open_store
from refdesk.stores.postgres import store as postgres_store
from refdesk.stores.postgres.migrations import load_migrations
from tests.engines import citus
from tests.engines.citus import CitusCluster
from tests.engines.postgres import fetch, get_schema
from tests.engines.test_postgres_migrating import write_old
from tests.reliability.faults import WithoutTenants
from tests.reliability.test_tenant_matrix import AS_IT_IS, LEAST, find_differences
from tests.stores.samples import asking, embed, make_document, passage, put

pytestmark = pytest.mark.engines
EAST = [1.0, 0, 0, 0]
ORGS = [f"org{number}" for number in range(6)]


@pytest.fixture
def cluster() -> Generator[CitusCluster]:
    with citus.lent() as lent:
        yield lent


def make(org: str, number: int) -> Document:
    text = f"pump {number} of {org}"
    return make_document(f"note{number}", text, collection=Collection(org, "notes"))


async def list_found(store: Store, org: str) -> set[str]:
    found = await store.find(asking("pump", collection=Collection(org, "notes"), depth=1000))
    return {candidate.id for candidate in found.candidates}


async def test_every_shard_plans_searches_for_orgs_of_any_size(tmp_path: Path) -> None:
    async with open_store(citus.get_store_url(tmp_path)):
        pass
    options = "SELECT attoptions FROM pg_attribute WHERE attrelid = '%s'::regclass AND attname = 'org'"
    ask = "SELECT success, result FROM run_command_on_shards('entries', %s)"
    with citus.get_cluster().coordinator.connect(get_schema(tmp_path)) as connection:
        told = fetch(connection, ask, [options])
    assert set(told) == {(True, "{n_distinct=1}")}


async def test_every_table_is_where_it_belongs(tmp_path: Path) -> None:
    url = citus.get_store_url(tmp_path)
    async with open_store(url) as store:
        await put(store, make("acme", 1))
        await embed(store, make("acme", 1), passage(EAST))
        nodes = await store.list_nodes()
        assert [node.problem for node in nodes] == [None] * 3
        assert ["shards" in node.holds for node in nodes] == [True] * 3
        assert store.engine.startswith("Citus 14")
    schema = get_schema(tmp_path)
    with citus.get_cluster().coordinator.connect(schema) as connection:
        tables = fetch(connection, "SELECT table_name::text, citus_table_type, distribution_column FROM citus_tables")
        own = fetch(
            connection,
            "SELECT relname::text FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'",
            [schema],
        )
        places = {
            str(name).removeprefix(f"{schema}."): (kind, column)
            for name, kind, column in tables
            if schema in str(name) or "." not in str(name)
        }
        assert {str(name) for (name,) in own} - places.keys() == {"counters", "refdesk_migrations"}
        assert places.pop("models") == ("reference", "<none>")
        assert set(places.values()) == {("distributed", "org")}
        groups = fetch(
            connection,
            "SELECT count(DISTINCT colocation_id) FROM citus_tables WHERE table_name::text = ANY(%s)",
            [[*places]],
        )
        assert groups == [(1,)]
        policies = fetch(connection, "SELECT qual FROM pg_policies WHERE schemaname = %s", [schema])
        assert policies, "the second wall stands"
        assert not [qual for (qual,) in policies if "SELECT" in str(qual)]


async def test_a_cluster_of_the_layout_before_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, steps = citus.get_store_url(tmp_path), load_migrations()
    with monkeypatch.context() as earlier:
        earlier.setattr(postgres_store, "load_migrations", lambda: steps[:4])
        earlier.setattr(backfill, "ANALYSIS_VERSION", 3000)
        async with open_store(url):
            pass
    document = make("acme", 1)
    with citus.get_cluster().coordinator.connect(get_schema(tmp_path)) as connection:
        connection.execute("INSERT INTO collections (org, toolset) VALUES ('acme', 'notes')")
        connection.execute("INSERT INTO orgs VALUES ('acme', 5)")
        write_old(connection, 5, document)
    async with open_store(url) as store:
        assert await list_found(store, "acme") == {"note1"}
        await put(store, make("acme", 2))
        assert await list_found(store, "acme") == {"note1", "note2"}


async def test_a_worker_is_not_taken_for_the_coordinator(tmp_path: Path) -> None:
    citus.get_store_url(tmp_path)
    worker = citus.get_cluster().workers[0]
    with pytest.raises(ConfigurationError, match="coordinator"):
        async with open_store(worker.get_url()):
            pass


async def test_an_org_that_was_moved_is_found_and_written_where_it_is(tmp_path: Path) -> None:
    cluster, schema = citus.get_cluster(), get_schema(tmp_path)
    async with open_store(citus.get_store_url(tmp_path)) as store:
        await put(store, make("acme", 1))
        before = cluster.find_worker(schema, "acme")
        after = next(node for node in cluster.workers if node is not before)
        with cluster.coordinator.connect(schema) as connection:
            move = """
                SELECT citus_move_shard_placement(
                    get_shard_id_for_distribution_column('documents', 'acme'), '127.0.0.1', %s, '127.0.0.1', %s,
                    'block_writes'
                )
            """
            connection.execute(move.encode(), [before.port, after.port])
        assert cluster.find_worker(schema, "acme") is after
        assert await list_found(store, "acme") == {"note1"}
        await put(store, make("acme", 2))
        assert await list_found(store, "acme") == {"note1", "note2"}


async def write(store: Store, org: str, number: int) -> bool:
    try:
        await put(store, make(org, number))
    except StoreError:
        return False
    return True


async def hold_a_kill(cluster: CitusCluster, store: Store, schema: str, kept: dict[str, set[str]], first: int) -> None:
    """Kill the node of one org between writes: the others go on; what was acknowledged is there afterwards."""
    victim = cluster.find_worker(schema, ORGS[first % len(ORGS)])
    there = [org for org in ORGS if cluster.find_worker(schema, org) is victim]
    others = [org for org in ORGS if org not in there]
    for org in ORGS:
        assert await write(store, org, first)
        kept[org].add(f"note{first}")
    victim.kill()
    for org in others:
        assert await write(store, org, first + 1), "an org of another node waits for nobody"
        kept[org].add(f"note{first + 1}")
        assert await list_found(store, org) == kept[org]
    for org in there:
        assert not await write(store, org, first + 1)
    problems = [node.problem for node in await store.list_nodes()]
    assert [problem is not None for problem in problems].count(True) == 1
    victim.start()
    for org in there:
        assert await list_found(store, org) >= kept[org]


@pytest.mark.parametrize("kills", [pytest.param(2, id="short"), pytest.param(100, id="long", marks=pytest.mark.soak)])
async def test_a_worker_that_is_killed_stops_nobody_else_and_loses_nothing(
    cluster: CitusCluster, tmp_path: Path, kills: int
) -> None:
    schema, kept = get_schema(tmp_path), {org: set[str]() for org in ORGS}
    async with open_store(citus.get_store_url(tmp_path, cluster), patience_seconds=60) as store:
        for kill in range(kills):
            await hold_a_kill(cluster, store, schema, kept, 2 * kill)


async def test_a_coordinator_that_is_killed_loses_nothing(cluster: CitusCluster, tmp_path: Path) -> None:
    async with open_store(citus.get_store_url(tmp_path, cluster), patience_seconds=60) as store:
        assert await write(store, "acme", 1)
        cluster.coordinator.kill()
        assert not await write(store, "acme", 2)
        cluster.coordinator.start()
        assert await write(store, "acme", 3)
        assert await list_found(store, "acme") == {"note1", "note3"}


async def test_a_note_of_two_orgs_is_written_in_both_or_in_none(tmp_path: Path) -> None:
    async with open_store(citus.get_store_url(tmp_path)) as store:
        await put(store, make(ORGS[-1], 1))
        # The last one is not as it was read: whatever was written for the others goes, too.
        documents = [make(org, 1) for org in ORGS]
        with pytest.raises(ConflictError):
            await put(store, *documents)
        assert [await list_found(store, org) for org in ORGS[:-1]] == [set[str]()] * (len(ORGS) - 1)
        await put(store, *documents[:-1])
        assert [await list_found(store, org) for org in ORGS] == [{"note1"}] * len(ORGS)


async def test_what_others_have_is_answered_like_what_there_is_not(tmp_path: Path) -> None:
    def open_own(folder: Path) -> AbstractAsyncContextManager[Store]:
        return open_store(citus.get_emptied_store_url(folder))

    calls, different = await find_differences(tmp_path, forms=AS_IT_IS, step=4, open_own=open_own)
    assert different == {}
    assert calls >= LEAST
    only = ["another org's key"]
    fault = tmp_path / "fault"
    _, caught = await find_differences(fault, WithoutTenants, forms=AS_IT_IS, step=4, only=only, open_own=open_own)
    assert [*caught] == ["another org's key, as it is"]
