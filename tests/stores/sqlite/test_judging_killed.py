"""A process that judges gaps and impacts is killed at any moment: what it acknowledged is there, whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import anyio
import pytest

from refdesk.gaps import records as gaps
from refdesk.impact import records as impacts
from refdesk.stores.sqlite import open_store

COUNT = 400
NOW = datetime(2026, 11, 1, tzinfo=UTC)
MOST_ACKNOWLEDGED = 60


def make_impact(number: int) -> impacts.Impact:
    return impacts.Impact("acme", "1", "notes", f"n{number}", "retires", None, 0.9, ("product redis",), 0, 1, "d")


async def fill(path: Path) -> None:
    async with open_store(path) as store, store.transaction() as transaction:
        for number in range(COUNT):
            asked = gaps.Asked("acme", f"g{number}", "ann", f"question {number}", ("notes",), ("notes",), 1, NOW, NOW)
            await transaction.put_metadata([gaps.write_asked(asked, timedelta(days=9))])
            await impacts.put_impacts(transaction, "acme", "notes", f"n{number}", [make_impact(number)])


async def judge(path: Path, *, early: bool) -> None:
    """Judge one thing after the other, each as an operation does, and say so after the commit."""
    async with open_store(path) as store:
        for number in range(COUNT):
            if early:
                say(number)
            async with store.transaction() as transaction:
                became = gaps.Became("dismissed", by="dana", at=NOW)
                await transaction.put_metadata([gaps.write_became("acme", f"g{number}", became)])
                await impacts.judge(transaction, make_impact(number), "dismissed", "dana")
            if not early:
                say(number)


def say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


async def find_faults(path: Path, acknowledged: int) -> set[str]:
    """Return what is wrong: "lost" (acknowledged, not there), "torn" (there in part)."""
    async with open_store(path) as store:
        dismissed = {gap.id for gap in await gaps.list_gaps(store, "acme") if gap.became.state == "dismissed"}
        learned = impacts.read_learned(await store.get_metadata(impacts.make_learned_key("acme")))
        records = await store.list_metadata(impacts.IMPACT, org="acme", limit=COUNT)
        judged = [impacts.read_impact("acme", each.value) for each in records]
    done = sum(impact.status == "dismissed" for impact in judged)
    counted = learned.counts.get("product redis", (0, 0))[1]
    faults = {"torn"} if not done == counted == len(dismissed) else set[str]()
    lost = {f"g{number}" for number in range(acknowledged)} - dismissed
    return faults | ({"lost"} if lost else set())


def kill(folder: Path, seed: int, *, early: bool = False) -> set[str]:
    path = folder / "store.sqlite3"
    anyio.run(fill, path)
    command = [
        sys.executable,
        "-m",
        "tests.stores.sqlite.test_judging_killed",
        str(path),
        *(["early"] if early else []),
    ]
    wanted = Random(seed).randrange(1, MOST_ACKNOWLEDGED)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(wanted):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        acknowledged = wanted + len([line for line in process.stdout.read().split("\n")[:-1] if line])
    return anyio.run(find_faults, path, acknowledged)


@pytest.mark.parametrize("seed", range(3))
def test_no_judgement_that_was_acknowledged_is_lost_or_torn(tmp_path: Path, seed: int) -> None:
    assert kill(tmp_path, seed) == set()


def test_what_is_acknowledged_too_early_is_noticed(tmp_path: Path) -> None:
    found: set[str] = set()
    for seed in range(30):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found |= kill(folder, seed, early=True)
        if found:
            break
    assert found == {"lost"}


if __name__ == "__main__":

    async def main() -> None:
        await judge(Path(sys.argv[1]), early="early" in sys.argv)

    anyio.run(main)
