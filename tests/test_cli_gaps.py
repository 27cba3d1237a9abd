"""`refdesk gaps` and `refdesk cases`, without a server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio

from refdesk.gaps.records import Asked, write_asked
from refdesk.stores.sqlite import open_store
from tests.test_cli import refdesk

NOW = datetime.now(UTC)
GAP = Asked("local", "g1", "ann", "who has the key", ("knowledge",), ("knowledge",), 3, NOW, NOW)


async def fill(path: Path) -> None:
    async with open_store(path) as store, store.transaction() as transaction:
        await transaction.put_metadata([write_asked(GAP, timedelta(days=9))])


def store(folder: Path, title: str, body: str) -> str:
    done = refdesk(folder, ["knowledge", "store", "--title", title, "--body", body, "--json"])
    return str(json.loads(done.stdout)["id"])


def test_gaps_are_listed_and_judged(tmp_path: Path) -> None:
    id = store(tmp_path, "Canteen", "Lunch is served from noon on.")
    [path] = tmp_path.rglob("*.sqlite3")
    anyio.run(fill, path)
    shown = refdesk(tmp_path, ["gaps"]).stdout
    assert "3 ×  who has the key  (g1)" in shown
    assert "asked by ann of knowledge" in shown
    answered = ["gaps", "judge", "answer", "g1", "--toolset", "knowledge", "--answer-id", id]
    assert refdesk(tmp_path, answered).stdout.strip() == "The gap g1 is answered."
    assert refdesk(tmp_path, ["gaps"]).stdout.strip() == "There are none."
    assert f"answered by: Canteen (knowledge {id})" in refdesk(tmp_path, ["gaps", "--status", "answered"]).stdout
    assert json.loads(refdesk(tmp_path, ["gaps", "--mine", "--status", "all", "--json"]).stdout)["gaps"] == []
    assert refdesk(tmp_path, ["gaps", "judge", "dismiss", "g2"]).exit_code == 2


def test_cases_are_listed_and_settled(tmp_path: Path) -> None:
    one = store(tmp_path, "Refund limit", "The refund limit of gold customers is 300 euros.")
    other = store(tmp_path, "Refund limit", "The refund limit of gold customers is 500 euros.")
    shown = refdesk(tmp_path, ["cases"]).stdout
    assert "another value" in shown
    assert "300 euros" in shown
    assert "500 euros" in shown
    done = refdesk(tmp_path, ["cases", "settle", "both_hold", one, other, "--reason", "By country."])
    assert done.stdout.strip() == f"The case of {one} and {other} is both hold."
    assert refdesk(tmp_path, ["cases"]).stdout.startswith("No entries contradict")
    assert "reason: By country." in refdesk(tmp_path, ["cases", "--standing", "both_hold"]).stdout
    assert json.loads(refdesk(tmp_path, ["cases", "--id", one, "--json"]).stdout)["cases"] == []
