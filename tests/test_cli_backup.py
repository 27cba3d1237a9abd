"""`refdesk backup` and `refdesk restore`, as whoever runs the desk uses them, with skills in a file of their own."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.test_cli import refdesk
from tests.test_cli_erase import ask, store


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_what_was_backed_up_comes_back_without_what_was_erased_since(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFDESK_SKILLS_STORE", f"sqlite:///{home / 'skills.sqlite3'}")
    kept, gone = store(home, "kept"), store(home, "gone")
    talk = tmp_path / "talk.txt"
    talk.write_text(
        "Customer: My invoice shows the wrong address.\n"
        "Agent: Open Billing, choose Profile, and correct the address.\n"
        "Customer: That worked, thank you.\n"
    )
    assert refdesk(home, ["skills", "learn", str(talk)]).exit_code == 0
    target = tmp_path / "backup.sqlite3"
    assert ask(home, "backup", str(target))["documents"] == 3
    refused = refdesk(home, ["backup", str(target)])
    assert refused.exit_code == 2
    assert "--force" in refused.output
    ask(home, "erase", "--entry", gone, "--yes")
    later = store(home, "later")
    restored = refdesk(home, ["restore", str(target)])
    assert restored.exit_code == 0, restored.output
    assert "erased again: 1" in restored.output
    assert "Restored 1 document of skills" in restored.output
    assert ask(home, "knowledge", "get", kept)["body"] == "kept"
    assert "was erased" in refdesk(home, ["knowledge", "get", gone]).output
    assert refdesk(home, ["knowledge", "get", later]).exit_code == 2
    assert refdesk(home, ["audit", "verify"]).exit_code == 0
    assert "restore" in refdesk(home, ["audit", "show", "--org", "*"]).output
    checks = {check["name"]: check for check in json.loads(refdesk(home, ["doctor", "--json"]).stdout)["checks"]}
    assert checks["backups"]["status"] == "ok"


def test_what_it_is_asked_for_is_refused_in_words(home: Path, tmp_path: Path) -> None:
    assert "nothing to back up" in refdesk(home, ["backup", str(tmp_path / "b")]).output
    assert not home.exists() or not list(home.iterdir())
    assert "no such file" in refdesk(home, ["restore", str(tmp_path / "b")]).output
    for command in ("backup", "restore"):
        result = refdesk(home, [command, str(tmp_path / "b")], REFDESK_STORE="postgresql://desk@db/desk")
        assert result.exit_code == 1
        assert "back-up.md" in result.output


def test_a_damaged_backup_is_not_called_a_damaged_store(home: Path, tmp_path: Path) -> None:
    kept, target = store(home, "kept"), tmp_path / "backup"
    ask(home, "backup", str(target))
    whole = target.read_bytes()
    for content in (whole[:60_000], b"hello", b"\xff" * len(whole), whole.replace(b"About kept", b"About kepu")):
        target.write_bytes(content)
        for more in ((), ("--as-is",)):
            done = refdesk(home, ["restore", str(target), *more])
            assert done.exit_code == 1, done.output
            assert "The store's file" not in done.output
            assert "Nothing was changed; take a" in done.output
    assert ask(home, "knowledge", "get", kept)["body"] == "kept"


def test_no_backup_takes_the_place_of_a_device(home: Path, tmp_path: Path) -> None:
    store(home, "kept")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for more in ((), ("--force",)):
        done = refdesk(home, ["backup", str(pipe), *more])
        assert done.exit_code == 2
        assert "no file but a device" in done.output
    assert pipe.is_fifo()


def test_what_is_erased_again_counts_no_more(home: Path, tmp_path: Path) -> None:
    """Else there would be no room for what fitted before."""
    large, target = {"REFDESK_MAX_ORG_BYTES": "10000"}, tmp_path / "backup"
    note = ["knowledge", "store", "--title", "Large", "--body", "x" * 8000, "--json"]
    id = json.loads(refdesk(home, note, **large).stdout)["id"]
    assert refdesk(home, ["backup", str(target)], **large).exit_code == 0
    assert refdesk(home, ["erase", "--entry", id, "--yes"], **large).exit_code == 0
    assert "erased again: 1" in refdesk(home, ["restore", str(target)], **large).output
    stored = refdesk(home, note, **large)
    assert stored.exit_code == 0, stored.output
    assert refdesk(home, note, **large).exit_code != 0


def make_key(home: Path) -> str:
    return str(ask(home, "keys", "create", "--agent", "bot", "--scope", "knowledge:read")["id"])


def wipe(file: Path, *tables: str) -> None:
    """Overwrite the first page of tables of a file that nobody uses."""
    with closing(sqlite3.connect(file)) as connection:
        [(size,)] = connection.execute("PRAGMA page_size")
        find = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        pages = [connection.execute(find, (table,)).fetchone()[0] for table in tables]
    content = bytearray(file.read_bytes())
    for page in pages:
        content[(page - 1) * size : page * size] = bytes(size)
    file.write_bytes(content)


@pytest.mark.parametrize("damage", ["everything", "audit", "records", "documents", "file and list gone"])
def test_what_is_not_known_of_the_time_since_is_said(home: Path, tmp_path: Path, damage: str) -> None:
    kept, target, file = store(home, "kept"), tmp_path / "backup", home / "refdesk.sqlite3"
    revoked, valid, rotated = make_key(home), make_key(home), make_key(home)
    ask(home, "backup", str(target))
    ask(home, "keys", "revoke", revoked)
    ask(home, "keys", "rotate", rotated, "--overlap", "0h")
    match damage:
        case "everything":
            file.write_bytes(b"\xff" * 50_000)
        case "file and list gone":
            for each in home.glob("refdesk.sqlite3*"):
                each.unlink() if each.is_file() else shutil.rmtree(each)
        case table:
            wipe(file, table)
    restored = refdesk(home, ["restore", str(target)])
    assert restored.exit_code == 0, restored.output
    knows_keys, knows_acts = damage in ("audit", "documents"), damage in ("records", "documents")
    assert (f"{revoked} (bot in local)" in restored.output) is not (knows_keys or knows_acts)
    assert (f"{valid} (bot in local)" in restored.output) is not (knows_keys or knows_acts)
    assert (f"{rotated} (bot in local)" in restored.output) is not knows_keys, "no act says when it expires"
    assert ("keys revoke ID" in restored.output) is not knows_keys
    assert ("put on record" in restored.output) is not knows_acts
    assert ("refdesk erase" in restored.output) is (damage == "file and list gone")
    assert ("refdesk.sqlite3.replaced-" in restored.output) is (damage != "file and list gone")
    lines = {line.split()[0]: line for line in refdesk(home, ["keys", "list"]).output.splitlines()}
    assert ("revoked" in lines[revoked], "revoked" in lines[valid]) == (knows_keys or knows_acts, False)
    assert ("expired" in lines[rotated]) is knows_keys
    assert ("keys.revoke" in refdesk(home, ["audit", "show"]).output) is knows_acts
    assert ask(home, "knowledge", "get", kept)["body"] == "kept"


def test_keys_of_which_nobody_knows_are_revoked_where_that_is_asked_for(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    ids = [make_key(home), make_key(home)]
    ask(home, "backup", str(target))
    elsewhere = tmp_path / "elsewhere"
    [told] = ask(elsewhere, "restore", str(target), "--revoke-unknown")["restored"]
    assert (told["keysRevoked"], told["keysUnchecked"]) == (2, [])
    assert all(key["revokedAt"] for key in ask(elsewhere, "keys", "list")["keys"] if key["id"] in ids)
    # Where the replaced store knows that they are valid, they stay.
    [told] = ask(home, "restore", str(target), "--revoke-unknown")["restored"]
    assert (told["keysRevoked"], told["keysUnchecked"]) == (0, [])


def test_acts_that_do_not_follow_on_and_keys_of_another_desk_are_said(home: Path, tmp_path: Path) -> None:
    other, target = tmp_path / "other", tmp_path / "backup"
    store(other, "theirs")
    theirs = make_key(other)
    ask(other, "backup", str(target))
    for body in ("one", "two", "three"):
        store(home, body)
    restored = refdesk(home, ["restore", str(target), "--json"])
    [told] = json.loads(restored.stdout)["restored"]
    assert (told["actsLeft"], told["keysUnchecked"]) == (3, [theirs])
    assert "left_acts=3" in refdesk(home, ["audit", "show", "--org", "*"]).output
    store(home, "more")
    said = refdesk(home, ["restore", str(target)]).output
    assert "do not follow on" not in said
    assert theirs not in said


@pytest.mark.parametrize("is_serving", [False, True])
@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_org_that_was_erased_after_a_move_is_not_back_by_a_backup_from_before(
    home: Path, tmp_path: Path, is_serving: bool, is_damaged: bool
) -> None:
    new, target = tmp_path / "new.sqlite3", tmp_path / "backup"
    store(home, "gone", "--org", "acme")
    kept = store(home, "kept")
    ask(home, "keys", "create", "--org", "acme", "--agent", "bot", "--scope", "knowledge:read")
    ask(home, "backup", str(target))
    url = f"sqlite:///{new}"
    old = f"sqlite:///{home / 'refdesk.sqlite3'}"
    ask(home, "migrate", "--from", old, "--to", url, *(["--serving"] if is_serving else []))
    assert refdesk(home, ["erase", "--org", "acme", "--yes"], REFDESK_STORE=url).exit_code == 0
    if is_damaged:
        new.write_bytes(b"\xff" * 50_000)
    restored = refdesk(home, ["restore", str(target)], REFDESK_STORE=url)
    assert restored.exit_code == 0, restored.output
    assert "erased again: 1" in restored.output
    assert "bot" not in refdesk(home, ["keys", "list"], REFDESK_STORE=url).output
    assert "kept" in refdesk(home, ["knowledge", "get", kept], REFDESK_STORE=url).output


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_org_that_was_moved_out_is_not_half_back_by_a_backup_from_before(
    home: Path, tmp_path: Path, is_damaged: bool
) -> None:
    new, target, file = tmp_path / "new.sqlite3", tmp_path / "backup", home / "refdesk.sqlite3"
    store(home, "moved", "--org", "acme")
    kept = store(home, "kept")
    ask(home, "keys", "create", "--org", "acme", "--agent", "bot", "--scope", "knowledge:read")
    ask(home, "backup", str(target))
    ask(home, "migrate", "--from", f"sqlite:///{file}", "--to", f"sqlite:///{new}", "--org", "acme", "--remove")
    assert "bot" not in refdesk(home, ["keys", "list"]).output
    if is_damaged:
        file.write_bytes(b"\xff" * 50_000)
    restored = refdesk(home, ["restore", str(target)])
    assert restored.exit_code == 0, restored.output
    assert "bot" not in refdesk(home, ["keys", "list"]).output
    assert ask(home, "knowledge", "list", "--org", "acme")["entries"] == []
    assert ask(home, "knowledge", "get", kept)["body"] == "kept"


def test_damage_is_named_an_export_fails_and_doing_what_is_said_mends_it(home: Path, tmp_path: Path) -> None:
    id, file, export = store(home, "kept"), home / "refdesk.sqlite3", tmp_path / "export.jsonl"
    target = tmp_path / "backup.sqlite3"
    ask(home, "backup", str(target))
    well = refdesk(home, ["doctor", "--deep"])
    assert well.exit_code == 0, well.output
    assert "rows and the audit log are as they were written" in well.output
    file.write_bytes(file.read_bytes().replace(b"About kept", b"About kepu"))
    for deep in (refdesk(home, ["doctor", "--deep"]), refdesk(home, ["doctor", "--deep", "--json"])):
        assert deep.exit_code == 1
        assert f"knowledge {id} of local is not as it was written" in deep.output
        assert "refdesk restore FILE" in deep.output
    refused = refdesk(home, ["export", "knowledge", "--output", str(export)])
    assert refused.exit_code == 1
    assert "would not be whole" in refused.output
    assert not export.exists()
    assert list(tmp_path.glob("*.partial")) == []
    restored = json.loads(refdesk(home, ["restore", str(target), "--json"]).stdout)["restored"]
    assert [each["toolset"] for each in restored] == [None]
    assert refdesk(home, ["doctor", "--deep"]).exit_code == 0
    assert ask(home, "knowledge", "get", id)["body"] == "kept"
    assert refdesk(home, ["export", "knowledge", "--output", str(export)]).exit_code == 0
