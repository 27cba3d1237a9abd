"""A data folder that cannot be written, on a real read-only mount where one may be made: it is read, and it says so."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from tests.acceptance.processes import run, start
from tests.acceptance.test_http import SERVE

NAME = "refdesk.sqlite3"
HASHING = {"REFDESK_EMBEDDER": "hashing"}


@contextmanager
def read_only(folder: Path) -> Generator[None]:
    """Let nothing be written in a folder: by a mount, or else by its rights, which do not bind everybody."""
    bound = subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False)
    if bound.returncode == 0:
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True, capture_output=True)
            yield
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)
        return
    if os.geteuid() == 0:
        pytest.skip("no mount may be made here, and rights do not bind this user")
    folder.chmod(0o500)
    try:
        yield
    finally:
        folder.chmod(0o700)


@contextmanager
def serve(home: Path) -> Generator[tuple[str, str]]:
    """Yield the address of a server, and why its store can only be read, as it said at the start."""
    with start(SERVE, home, **HASHING) as server:
        url = server.read_log("listening")["url"]
        reason = server.read_log("store can only be read")["reason"]
        yield url, reason


def store(home: Path, title: str) -> str:
    done = run(["knowledge", "store", "--title", title, "--body", "Something worth knowing."], home, **HASHING)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    store(home, "Refund limit")
    shutil.rmtree(home / f"{NAME}-index", ignore_errors=True)
    return home


def test_reads_are_served_and_writes_refused_in_words(home: Path) -> None:
    with read_only(home), serve(home) as (url, reason):
        assert "read-only file system" in reason
        found = httpx2.post(f"{url}/knowledge/search", json={"query": "worth knowing"}, timeout=120)
        [hit] = found.json()["results"]
        assert httpx2.get(f"{url}/knowledge/{hit['id']}", timeout=120).json()["title"] == "Refund limit"
        for path, body in (
            ("/knowledge", {"title": "More", "body": "x"}),
            (f"/knowledge/{hit['id']}/withdraw", {}),
            ("/create", {"conversation": "Customer: It is cold.\nAgent: Open the valve.\nCustomer: Thanks!"}),
        ):
            refused = httpx2.post(f"{url}{path}", json=body, timeout=120)
            assert (refused.status_code, "can only be read" in refused.text) == (403, True), refused.text
        health = httpx2.get(f"{url}/health", timeout=120)
        assert (health.status_code, health.json()["status"], reason in health.text) == (200, "degraded", True)
    store(home, "And on again")


def test_the_command_line_reads_too_and_acknowledges_nothing(home: Path, tmp_path: Path) -> None:
    with read_only(home):
        found = run(["search", "--toolset", "knowledge", "worth knowing"], home, **HASHING)
        assert (found.returncode, "Refund limit" in found.stdout) == (0, True), found.stderr
        for command in (
            ["knowledge", "store", "--title", "More", "--body", "x"],
            ["keys", "create", "--agent", "x", "--scope", "knowledge:read"],
            ["erase", "--org", "local", "--yes"],
            # Only a copy of it could say that it was moved.
            ["migrate", "--serving", "--from", f"sqlite:///{home / NAME}", "--to", f"sqlite:///{tmp_path / 'new'}"],
        ):
            refused = run(command, home, **HASHING)
            assert (refused.returncode != 0, "can only be read" in refused.stderr) == (True, True), refused.stderr
        assert "What is there can be read" in run(["doctor"], home, **HASHING).stdout


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_backup_and_an_export_are_made_of_it(home: Path, tmp_path: Path, is_killed: bool) -> None:
    if is_killed:
        with start(SERVE, home, **HASHING) as server:
            url = server.read_log("listening")["url"]
            body = {"title": "Late", "body": "Written just before."}
            assert httpx2.post(f"{url}/knowledge", json=body, timeout=120).status_code == 200
            server.process.kill()
            server.process.wait()
    titles = {"Refund limit", "Late"} if is_killed else {"Refund limit"}
    backup, export = tmp_path / "backup", tmp_path / "export.jsonl"
    with read_only(home):
        made = run(["backup", str(backup)], home, **HASHING)
        assert (made.returncode, "does not say so" in made.stdout) == (0, True), made.stderr
        done = run(["export", "knowledge", "--output", str(export)], home, **HASHING)
        assert done.returncode == 0, done.stderr
        told = run(["doctor", "--deep"], home, **HASHING).stdout
        assert "takes no writes" in told
        assert "as they were written" in told
    with closing(sqlite3.connect(backup)) as connection:
        assert {title for (title,) in connection.execute("SELECT title FROM documents")} == titles
    assert {title for title in ("Refund limit", "Late") if title in export.read_text()} == titles
    restored = run(["restore", str(backup)], tmp_path / "new", **HASHING)
    assert restored.returncode == 0, restored.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A file system of its own, of a few megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("no mount may be made here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)


def fill(folder: Path) -> Path:
    """Leave no room on a file system."""
    path = folder / "fill"
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1024))
    return path


def test_what_is_on_a_full_disk_is_read_and_the_reason_is_said(small_disk: Path) -> None:
    home = small_disk / "home"
    store(home, "Refund limit")
    filled = fill(small_disk)
    for _ in range(2):  # what failed once for want of room has left nothing that is in the way
        found = run(["search", "--toolset", "knowledge", "worth knowing"], home, **HASHING)
        assert (found.returncode, "Refund limit" in found.stdout) == (0, True), found.stderr
        refused = run(["knowledge", "store", "--title", "More", "--body", "x"], home, **HASHING)
        assert (refused.returncode != 0, "is full" in refused.stderr) == (True, True), refused.stderr
    checks = {each["name"]: each for each in json.loads(run(["doctor", "--json"], home, **HASHING).stdout)["checks"]}
    for name in ("data folder", "store"):
        assert (checks[name]["status"], "is full" in checks[name]["found"]) == ("fail", True)
    empty = run(["search", "--toolset", "knowledge", "x"], small_disk / "other", **HASHING)
    assert (empty.returncode, "is full" in empty.stderr) == (1, True), empty.stderr
    filled.unlink()
    store(home, "And on again")
    assert "Refund limit" in run(["knowledge", "list"], home, **HASHING).stdout


def test_a_server_goes_on_reading_while_its_disk_is_full(small_disk: Path) -> None:
    home = small_disk / "home"
    with start(SERVE, home, **HASHING) as server:
        url = server.read_log("listening")["url"]
        note = {"title": "Refund limit", "body": "Something worth knowing."}
        assert httpx2.post(f"{url}/knowledge", json=note, timeout=120).status_code == 200
        filled = fill(small_disk)
        large = [note | {"title": f"Note {number}", "body": f"{number} " * 8000} for number in range(100, 200)]
        # The log of writes has some room of its own.
        assert any("is full" in httpx2.post(f"{url}/knowledge", json=each, timeout=120).text for each in large)
        found = httpx2.post(f"{url}/knowledge/search", json={"query": "worth knowing"}, timeout=120).json()
        assert "Refund limit" in {each["title"] for each in found["results"]}
        filled.unlink()
        assert httpx2.post(f"{url}/knowledge", json=note | {"title": "More"}, timeout=120).status_code == 200


def test_what_a_killed_server_left_in_its_log_is_read(home: Path) -> None:
    with start(SERVE, home, **HASHING) as server:
        url = server.read_log("listening")["url"]
        for number in range(5):
            body = {"title": f"Late {number}", "body": "Written just before."}
            assert httpx2.post(f"{url}/knowledge", json=body, timeout=120).status_code == 200
        server.process.kill()
        server.process.wait()
    assert (home / f"{NAME}-wal").stat().st_size
    with read_only(home), serve(home) as (url, _):
        found = httpx2.post(f"{url}/knowledge/search", json={"query": "written just before"}, timeout=120).json()
    assert {each["title"] for each in found["results"]} >= {f"Late {number}" for number in range(5)}
    assert run(["audit", "verify"], home, **HASHING).returncode == 0
    with closing(sqlite3.connect(home / NAME)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
