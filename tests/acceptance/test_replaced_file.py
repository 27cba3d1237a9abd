"""The file is replaced or removed while a server runs: no store is acknowledged into nowhere, and health turns red."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from tests.acceptance.test_http import serve

NAME = "refdesk.sqlite3"


def unlink(path: Path) -> None:
    path.unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_name("away.sqlite3"))


def put_another_in_its_place(path: Path) -> None:
    other = path.with_name("other.sqlite3")
    shutil.copyfile(path, other)
    other.replace(path)


def put_an_empty_one_in_its_place(path: Path) -> None:
    path.unlink()
    path.touch()


def remove_the_log(path: Path) -> None:
    path.with_name(f"{NAME}-wal").unlink()


MEDDLINGS = (unlink, move_away, put_another_in_its_place, put_an_empty_one_in_its_place, remove_the_log)


def store(url: str, title: str) -> httpx2.Response:
    return httpx2.post(f"{url}/knowledge", json={"title": title, "body": "Something worth knowing."}, timeout=120)


@pytest.mark.parametrize("meddle", MEDDLINGS, ids=lambda each: each.__name__)
def test_nothing_is_acknowledged_into_nowhere_and_health_is_red(tmp_path: Path, meddle: Callable[[Path], None]) -> None:
    with serve(tmp_path, "--toolset", "knowledge") as (_, url):
        assert store(url, "Before").status_code == 200
        assert httpx2.get(f"{url}/health").status_code == 200
        meddle(tmp_path / NAME)
        for number in range(3):
            answer = store(url, f"After {number}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (500, "STORE_UNAVAILABLE")
            assert "moved, replaced or deleted" in answer.json()["error"]["message"]
        found = httpx2.post(f"{url}/knowledge/search", json={"query": "worth knowing"}, timeout=120)
        assert (found.status_code, found.json()["error"]["code"]) == (500, "STORE_UNAVAILABLE")
        health = httpx2.get(f"{url}/health", timeout=120)
        assert (health.status_code, "moved, replaced or deleted" in health.text) == (503, True)
        assert httpx2.get(f"{url}/ready", timeout=120).status_code == 503


def test_putting_the_right_file_back_helps(tmp_path: Path) -> None:
    with serve(tmp_path, "--toolset", "knowledge") as (server, url):
        assert store(url, "Before").status_code == 200
        move_away(tmp_path / NAME)
        assert store(url, "After").status_code == 500
        server.process.kill()
        server.process.wait()
    (tmp_path / "away.sqlite3").rename(tmp_path / NAME)
    with serve(tmp_path, "--toolset", "knowledge") as (_, url):
        found = httpx2.post(f"{url}/knowledge/search", json={"query": "worth knowing"}, timeout=120).json()
        # What was refused may be there, since its log was: nobody relied on it.
        assert {"Before"} <= {each["title"] for each in found["results"]} <= {"Before", "After"}
        assert store(url, "Later").status_code == 200
