"""Keys that a file lists: made without the store, opening as soon as they are there, gone as soon as they are not."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from refdesk import errors
from refdesk.app import Desk, open_desk
from refdesk.core.key_files import KeyFile
from refdesk.discovery import list_scopes
from refdesk.factories.toolsets import load_toolsets
from tests.acceptance.processes import run, start
from tests.server.conftest import open_http
from tests.server.echo import make_settings
from tests.server.test_keys import bearer

NOWHERE = {"REFDESK_STORE": "postgresql://nobody@127.0.0.1:9/nothing"}
"""A store that cannot be reached: whoever makes a key does not need it."""


def make(home: Path, *options: str, agent: str = "ann") -> dict[str, str]:
    scopes = ("--scope", "knowledge:read", "--scope", "knowledge:write")
    done = run(["keys", "make", "--org", "acme", "--agent", agent, *scopes, "--json", *options], home, **NOWHERE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text("# Nobody yet.\n\n")
    return path


@pytest.fixture
async def desk(tmp_path: Path, file: Path) -> AsyncGenerator[Desk]:
    settings = make_settings(tmp_path, embedder="hashing", keys_file=file)
    async with open_desk(settings, load_toolsets(), in_background=False) as opened:
        yield opened


def write(file: Path, *lines: str) -> None:
    file.write_text("\n".join(lines), encoding="utf-8", newline="")


async def ask(client: httpx2.AsyncClient, key: str) -> int:
    return (await client.post("/knowledge/search", json={"query": "x"}, headers=bearer(key))).status_code


async def test_a_key_opens_while_its_line_is_in_the_file_and_no_longer(tmp_path: Path, desk: Desk, file: Path) -> None:
    ann, bob, late = make(tmp_path), make(tmp_path, agent="bob"), make(tmp_path, "--expires", "2099-01-31")
    async with open_http(desk, None) as client:
        assert [await ask(client, each["key"]) for each in (ann, bob)] == [401, 401]
        write(file, *(each["line"] for each in (ann, bob, late)))
        assert [await ask(client, each["key"]) for each in (ann, bob, late)] == [200, 200, 200]
        stored = await client.post("/knowledge", json={"title": "T", "body": "B"}, headers=bearer(bob["key"]))
        entry = await client.get(f"/knowledge/{stored.json()['id']}", headers=bearer(ann["key"]))
        assert entry.json()["author"] == "bob"
        write(file, json.dumps(json.loads(ann["line"]) | {"expires": "2020-01-01T00:00:00Z"}), bob["line"])
        assert [await ask(client, each["key"]) for each in (ann, bob, late)] == [401, 200, 401]
    for each in (ann, bob, late):
        assert each["key"].removeprefix("refdesk_") not in each["line"]


async def test_a_file_that_breaks_locks_nobody_out_and_is_told_of(tmp_path: Path, desk: Desk, file: Path) -> None:
    ann = make(tmp_path)
    write(file, ann["line"])
    async with open_http(desk, None) as client:
        assert await ask(client, ann["key"]) == 200
        for breaking in (lambda: write(file, ann["line"][:40]), file.unlink):
            breaking()
            assert await ask(client, ann["key"]) == 200
            health = (await client.get("/health")).json()
            assert health["status"] == "degraded"
            assert "REFDESK_KEYS_FILE" in json.dumps(health)
        write(file)
        assert await ask(client, ann["key"]) == 401


async def test_keys_of_the_file_are_listed_and_not_revoked_by_the_command(
    desk: Desk, tmp_path: Path, file: Path
) -> None:
    ann = make(tmp_path)
    write(file, ann["line"])
    ring = (await desk.get_base()).keys
    assert [(key.id, key.agent) for key in await ring.list("acme")] == [(ann["id"], "ann")]
    with pytest.raises(errors.InvalidInputError, match="REFDESK_KEYS_FILE"):
        await ring.revoke(ann["id"])


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"hash": "refdesk_secret"}, "SHA-256"),
        ({"hash": None}, "SHA-256"),
        ({"org": "Acme Corp"}, "org"),
        ({"agent": ""}, "agent"),
        ({"scopes": []}, "scope"),
        ({"scopes": ["everything"]}, "everything"),
        ({"scopes": "admin"}, "scopes"),
        ({"expires": "soon"}, "expires"),
        ({"key": "refdesk_secret"}, "key"),
    ],
)
def test_a_line_that_is_none_is_told_by_its_number(
    tmp_path: Path, file: Path, changed: dict[str, object], reason: str
) -> None:
    line = {"hash": "a" * 64, "org": "acme", "agent": "ann", "scopes": ["admin"]}
    file.write_text(f"# First.\n{json.dumps(line)}\n{json.dumps({**line, **changed})}\n")
    with pytest.raises(errors.ConfigurationError, match=f"line 3: .*{reason}") as caught:
        KeyFile(file, list_scopes()).open()
    assert "refdesk_secret" not in caught.value.message


async def test_a_file_may_begin_as_some_editors_begin_it(tmp_path: Path, desk: Desk, file: Path) -> None:
    ann = make(tmp_path)
    write(file, f"\ufeff{ann['line']}\r", "")
    async with open_http(desk, None) as client:
        assert await ask(client, ann["key"]) == 200


def test_lines_are_added_to_a_file_without_the_keys_and_each_opens(tmp_path: Path, file: Path) -> None:
    file.write_text("# No line break at the end")
    made = [make(tmp_path, "--append", str(file), agent=agent) for agent in ("ann", "bob")]
    assert [key.agent for key in KeyFile(file, list_scopes()).open().list()] == ["ann", "bob"]
    assert not any(each["key"] in file.read_text() for each in made)
    new = tmp_path / "new"
    options = ["keys", "make", "--agent", "ann", "--scope", "knowledge:read", "--append", str(new)]
    done = run(options, tmp_path, **NOWHERE)
    assert done.stdout.startswith("refdesk_")
    assert len(done.stdout.splitlines()) == 1
    assert [key.agent for key in KeyFile(new, list_scopes()).open().list()] == ["ann"]
    done = run([*options[:-1], str(tmp_path / "no" / "folder")], tmp_path, **NOWHERE)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_key_in_the_file_is_told_without_being_shown(tmp_path: Path, file: Path) -> None:
    ann = make(tmp_path)
    file.write_text(f"{ann['key']}\n{ann['line']}\n")
    with pytest.raises(errors.ConfigurationError, match="line 1: it is a key") as caught:
        KeyFile(file, list_scopes()).open()
    assert ann["key"] not in caught.value.message


def test_the_command_says_what_to_do_with_both_and_the_server_takes_them(tmp_path: Path, file: Path) -> None:
    done = run(["keys", "make", "--agent", "ann", "--scope", "knowledge:read"], tmp_path, **NOWHERE)
    key, line = done.stdout.splitlines()
    assert "REFDESK_KEYS_FILE" in done.stderr
    file.write_text(line)
    variables = {"REFDESK_KEYS_FILE": str(file), "REFDESK_EMBEDDER": "hashing"}
    with start(["-m", "refdesk", "serve", "--port", "0"], tmp_path, **variables) as server:
        url = server.read_log("listening")["url"]
        answer = httpx2.post(f"{url}/knowledge/search", json={"query": "x"}, headers=bearer(key), timeout=60)
        assert answer.status_code == 200
    done = run(["keys", "list"], tmp_path, **variables | {"REFDESK_KEYS_FILE": str(tmp_path / "absent")})
    assert done.returncode != 0
    assert "REFDESK_KEYS_FILE cannot be read" in done.stdout + done.stderr
