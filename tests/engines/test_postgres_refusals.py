"""A database that lets nobody in, or lacks what a store needs, is told from a server that is gone."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.engines.postgres import DATABASE, ROLE, PostgresServer, running
from tests.test_cli import refdesk

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with running() as started:
        yield started


def ask(home: Path, url: str) -> str:
    """Return what the command says, which must fail."""
    done = refdesk(home, ["knowledge", "list"], REFDESK_STORE=url)
    assert done.exit_code == 1, done.output
    return done.output


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (f"nobody@127.0.0.1:{{}}/{DATABASE}", "does not let refdesk in"),
        (f"{ROLE}@127.0.0.1:{{}}/elsewhere", "does not let refdesk in"),
        (f"{ROLE}@127.0.0.1:{{}}/{DATABASE}?sslmode=require", "No TLS connection"),
        (f"{ROLE}@127.0.0.1:{{}}/{DATABASE}?sslmode=verify-full", "No TLS connection"),
    ],
)
def test_what_keeps_a_role_out_is_said(tmp_path: Path, server: PostgresServer, place: str, said: str) -> None:
    assert said in ask(tmp_path, f"postgresql://{place.format(server.port)}")


def test_a_server_that_is_full_is_said_to_be(tmp_path: Path, server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT 0")
        try:
            assert "takes no more connections" in ask(tmp_path, server.get_url())
        finally:
            connection.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT -1")


def test_an_extension_out_of_reach_is_named_with_its_schema(tmp_path: Path, server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute("CREATE SCHEMA extensions")
        connection.execute("ALTER EXTENSION vector SET SCHEMA extensions")
        behind = f"{server.get_url()}?options=-csearch_path%3Dpublic,extensions"
        for url in (server.get_url(), behind):
            assert "pgvector is in the schema extensions" in ask(tmp_path, url)
        connection.execute(f"GRANT USAGE ON SCHEMA extensions TO {ROLE}")
        listed = refdesk(tmp_path, ["knowledge", "list"], REFDESK_STORE=behind)
        assert listed.exit_code == 0, listed.output
        connection.execute("ALTER EXTENSION vector SET SCHEMA public")
