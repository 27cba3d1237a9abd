"""A store in a schema of its own has nothing to do with one that stands behind it on the search path."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from refdesk.core.keeping.moves import Move
from refdesk.errors import ConfigurationError
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.schemas import choose
from refdesk.stores.postgres.store import PostgresStore
from tests.engines.postgres import get_schema, get_server, get_store_url
from tests.stores.samples import asking, make_document, put
from tests.test_cli import refdesk

pytestmark = pytest.mark.engines


def get_url_before(folder: Path, behind: Path) -> str:
    """Return the URL of the store that stands for a folder, with the schema of another behind its own."""
    get_server().create_schema(get_schema(folder))
    path = f"-csearch_path={get_schema(folder)},{get_schema(behind)},public"
    return f"{get_server().get_url()}?options={quote(path)}"


def list_titles(home: Path, url: str) -> list[str]:
    listed = refdesk(home, ["knowledge", "list", "--json"], REFDESK_STORE=url)
    assert listed.exit_code == 0, listed.output
    return [entry["title"] for entry in json.loads(listed.stdout)["entries"]]


def test_what_stands_behind_is_neither_read_nor_written_nor_erased(tmp_path: Path) -> None:
    production, staging = get_store_url(tmp_path / "a"), get_url_before(tmp_path / "b", tmp_path / "a")
    for url, title in ((production, "production"), (staging, "staging")):
        done = refdesk(tmp_path, ["knowledge", "store", "--title", title, "--body", "x"], REFDESK_STORE=url)
        assert done.exit_code == 0, done.output
    assert list_titles(tmp_path, staging) == ["staging"]
    assert list_titles(tmp_path, production) == ["production"]
    erased = refdesk(tmp_path, ["erase", "--org", "local", "--yes"], REFDESK_STORE=staging)
    assert erased.exit_code == 0, erased.output
    assert list_titles(tmp_path, staging) == []
    assert list_titles(tmp_path, production) == ["production"]


def test_a_schema_that_is_not_there_is_refused(tmp_path: Path) -> None:
    behind = get_schema(tmp_path / "a")
    get_store_url(tmp_path / "a")
    url = f"{get_server().get_url()}?options={quote(f'-csearch_path=Nowhere,{behind},public')}"
    refused = refdesk(tmp_path, ["knowledge", "list"], REFDESK_STORE=url)
    assert refused.exit_code != 0
    assert "The schema nowhere that the search path names is not there" in refused.output
    assert "CREATE SCHEMA nowhere AUTHORIZATION refdesk;" in refused.output


async def test_the_end_of_a_move_leaves_that_of_another_store_alone(tmp_path: Path) -> None:
    production, staging = get_store_url(tmp_path / "a"), get_url_before(tmp_path / "b", tmp_path / "a")
    async with open_store(production) as theirs, open_store(staging) as ours:
        assert isinstance(theirs, PostgresStore)
        assert isinstance(ours, PostgresStore)
        await theirs.moves.begin(Move("postgresql://elsewhere"))
        await put(theirs, make_document("a", "Written while it moves."))
        await ours.moves.cancel()
        assert await theirs.moves.read_changes(10)
        await theirs.moves.cancel()


async def test_a_standby_whose_url_leads_to_another_store_is_not_asked(tmp_path: Path) -> None:
    other, url = get_store_url(tmp_path / "a"), get_store_url(tmp_path / "b")
    async with open_store(other) as theirs:
        for id in ("a", "b", "c"):
            await put(theirs, make_document(id, "A canary of theirs."))
    async with open_store(url, read=[other]) as store:
        await put(store, make_document("mine", "A canary of ours."))
        found = await store.find(asking("canary"))
        assert [candidate.id for candidate in found.candidates] == ["mine"]
        [node] = await store.list_nodes()
        assert "another schema" in str(node.problem)


@pytest.mark.parametrize(
    ("path", "present", "wanted"),
    [
        ("staging,public", "public", "staging"),
        ('"$user", public', "public", "public"),
        ('"$user", public', "bob", "bob"),
        ("$user,staging", "public", "staging"),
        ('"Sta""ging", public', "public", 'Sta"ging'),
        ("Staging, public", "staging", "staging"),
        ("", None, None),
    ],
)
def test_the_first_name_counts_as_the_server_reads_it(path: str, present: str | None, wanted: str | None) -> None:
    assert choose(path, "bob", present) == wanted


async def test_an_empty_path_is_refused(tmp_path: Path) -> None:
    url = f"{get_server().get_url()}?options={quote('-csearch_path=')}"
    with pytest.raises(ConfigurationError, match="The schema public"):
        async with open_store(url):
            pass
