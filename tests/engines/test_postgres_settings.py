"""What an administrator has set for the role or the database changes nothing that is stored or found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from psycopg import sql

from tests.engines.postgres import ROLE, PostgresServer, fetch, running
from tests.test_cli import refdesk

pytestmark = pytest.mark.engines

# Each changes how text or values are read or written, which plans are made, or how transactions see one another.
SETTINGS = {
    "client_encoding": "LATIN1",
    "standard_conforming_strings": "off",
    "bytea_output": "escape",
    "DateStyle": "German",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "extra_float_digits": "0",
    "default_text_search_config": "german",
    "default_transaction_isolation": "serializable",
    "transform_null_equals": "on",
    "enable_indexscan": "off",
    "enable_bitmapscan": "off",
    "gin_fuzzy_search_limit": "1",
    "hnsw.ef_search": "1",
    "plpgsql.extra_errors": "all",
}


TITLE, BODY, TAGS = "Zürich: „Füße“ \\ 'Ö'", "Größe €5, 你好 back\\slash 'quote' %s", ["größe", "価格"]


WAITS_LONG = """
    SELECT count(*) > 0 FROM pg_stat_activity
    WHERE starts_with(query, 'VACUUM') AND clock_timestamp() - query_start > interval '2 seconds'
"""


def set_for_role(server: PostgresServer, settings: Mapping[str, str]) -> None:
    with server.connect() as connection:
        for name, value in settings.items():
            setting = sql.SQL(".").join(map(sql.Identifier, name.split(".")))
            change = sql.SQL("ALTER ROLE {} SET {} = {}").format(sql.Identifier(ROLE), setting, sql.Literal(value))
            connection.execute(change)


def test_settings_of_the_role_change_nothing(tmp_path: Path) -> None:
    with running() as server:
        set_for_role(server, SETTINGS)
        store = ["knowledge", "store", "--title", TITLE, "--body", BODY, "--tag", TAGS[0], "--tag", TAGS[1]]
        stored = refdesk(tmp_path, store, REFDESK_STORE=server.get_url())
        assert stored.exit_code == 0, stored.output
        for query in ("Größe", "你好"):
            search = ["knowledge", "search", query, "--filter", f"tags={TAGS[1]}", "--json"]
            found = refdesk(tmp_path, search, REFDESK_STORE=server.get_url())
            [entry] = json.loads(found.stdout)["results"]
            assert (entry["title"], entry["tags"]) == (TITLE, TAGS), query
        read = refdesk(tmp_path, ["knowledge", "get", entry["id"], "--json"], REFDESK_STORE=server.get_url())
        assert json.loads(read.stdout)["body"] == BODY


def test_tidying_up_takes_longer_than_a_statement_of_the_role_may(tmp_path: Path) -> None:
    with running() as server:
        url = server.get_url()
        stored = refdesk(
            tmp_path, ["knowledge", "store", "--title", TITLE, "--body", BODY, "--json"], REFDESK_STORE=url
        )
        set_for_role(server, {"statement_timeout": "1s", "lock_timeout": "1s"})
        erase = ["erase", "--entry", json.loads(stored.stdout)["id"], "--yes"]
        with ThreadPoolExecutor(1) as pool, server.connect() as watching, server.connect() as other:
            with other.transaction():
                # Nobody else may tidy the table up meanwhile; reading and writing it are not kept waiting.
                other.execute("LOCK TABLE spans IN SHARE UPDATE EXCLUSIVE MODE")
                erasing = pool.submit(refdesk, tmp_path, erase, REFDESK_STORE=url)
                while not (waits_long := fetch(watching, WAITS_LONG)[0][0]) and not erasing.done():
                    wait([erasing], timeout=0.05)
            erased = erasing.result()
    assert (waits_long, erased.exit_code) == (True, 0), erased.output


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("default_transaction_read_only", "on", "whose default_transaction_read_only is off"),
        ("transaction_timeout", "1ms", "set that to 0 for refdesk's role"),
    ],
)
def test_a_setting_that_lets_nothing_be_written_is_named(tmp_path: Path, name: str, value: str, said: str) -> None:
    with running() as server:
        set_for_role(server, {name: value})
        stored = refdesk(
            tmp_path, ["knowledge", "store", "--title", TITLE, "--body", BODY], REFDESK_STORE=server.get_url()
        )
    assert (stored.exit_code, said in stored.output) == (1, True), stored.output
