"""A data folder that cannot be written, on a real read-only mount where one may be made: it is read, and it says so."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager
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


def test_the_command_line_reads_too_and_acknowledges_nothing(home: Path) -> None:
    with read_only(home):
        found = run(["search", "--toolset", "knowledge", "worth knowing"], home, **HASHING)
        assert (found.returncode, "Refund limit" in found.stdout) == (0, True), found.stderr
        for command in (
            ["knowledge", "store", "--title", "More", "--body", "x"],
            ["keys", "create", "--agent", "x", "--scope", "knowledge:read"],
            ["erase", "--org", "local", "--yes"],
        ):
            refused = run(command, home, **HASHING)
            assert (refused.returncode != 0, "can only be read" in refused.stderr) == (True, True), refused.stderr
        assert "What is there can be read" in run(["doctor"], home, **HASHING).stdout


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
