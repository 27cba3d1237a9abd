"""What an administrator has set for the role or the database changes nothing that is stored or found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from psycopg import sql

from tests.engines.postgres import ROLE, running
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


def test_settings_of_the_role_change_nothing(tmp_path: Path) -> None:
    with running() as server:
        with server.connect() as connection:
            for name, value in SETTINGS.items():
                setting = sql.SQL(".").join(map(sql.Identifier, name.split(".")))
                change = sql.SQL("ALTER ROLE {} SET {} = {}").format(sql.Identifier(ROLE), setting, sql.Literal(value))
                connection.execute(change)
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
