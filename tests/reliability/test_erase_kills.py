"""Killed while storing and erasing, at any moment: what was erased is nowhere, and every acknowledged act is on record.

The long form (`make soak`) kills 300 times.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from refdesk.core.writing import audit
from refdesk.stores.sqlite import open_store
from tests.conftest import REPOSITORY
from tests.reliability.counting import count
from tests.reliability.eraser import NOTES

KILLS = 300 if os.environ.get("REFDESK_SOAK") == "1" else 4
GENERATION, CHECKED_EVERY = 30, 10
"""Kills of one store, before another is begun, and of those that are looked after: each kill costs the same."""

MOST_LINES = 30


def live(path: Path, seed: int, fault: str = "") -> list[list[str]]:
    """Return what a process said until it was killed, after a random number of its lines."""
    random = Random(seed)
    command = [sys.executable, "-m", "tests.reliability.eraser", str(path), str(seed), "--fault", fault]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(random.randrange(2, MOST_LINES))]
        # Somewhere within what comes next, not always right behind a line.
        for _ in range(random.randrange(0, 3000)):
            pass
        process.kill()
        lines += [line.split() for line in process.stdout.read().splitlines() if len(line.split()) == 3]
    return [line for line in lines if len(line) == 3]


async def find_faults(path: Path, said: list[list[str]]) -> list[str]:
    """Return what does not hold of what was said, once the store was opened after the last kill."""
    async with open_store(path) as store:
        verdict = await audit.verify(store, NOTES.org)
        faults = [f"the log is broken: {verdict.broken}"] if verdict.broken else []
        acts, after = set[tuple[str, str]](), 0
        while entries := await store.get_audit(NOTES.org, after):
            after = entries[-1].number
            for entry in entries:
                records: Any = entry.act["records"]
                acts |= {(str(record["change"]), str(record["id"])) for record in records}
        changes = {"stored": "created", "erased": "erased"}
        faults += [f"not on record: {word} {id}" for word, id, _ in said if (changes[word], id) not in acts]
        gone = {id for word, id, _ in said if word == "erased"}
        living = set(await store.get_digests(NOTES))
        faults += [f"came back: {id}" for id in gone & living]
        stored = {id for word, id, _ in said if word == "stored"}
        faults += [f"lost: {id}" for id in stored - living if ("erased", id) not in acts]
        faults += [f"without a record: {id}" for id in living if ("created", id) not in acts]
    erased = {canary for word, _, canary in said if word == "erased"}
    return faults + [f"a trace is left: {canary}" for canary in sorted(erased & find_canaries(path.parent))]


def find_canaries(folder: Path) -> set[str]:
    """Return the canaries in any byte of the store's files, in one pass however many there were."""
    content = b"".join(each.read_bytes() for each in folder.iterdir() if each.is_file())
    return {canary.decode() for canary in re.findall(rb"canary-\d+-\d+-\d+", content)}


@pytest.mark.parametrize("kills", [pytest.param(KILLS, marks=pytest.mark.soak if KILLS > 10 else ())])
def test_what_was_erased_stays_gone_and_no_act_is_missed(tmp_path: Path, kills: int) -> None:
    words = Counter[str]()
    for first in range(0, kills, GENERATION):
        path, said = tmp_path / str(first) / "store.sqlite3", list[list[str]]()
        for seed in range(first, min(first + GENERATION, kills)):
            said += live(path, seed)
            if kills <= CHECKED_EVERY or seed % CHECKED_EVERY == 0:
                assert anyio.run(find_faults, path, said) == [], f"after {seed + 1} kills"
        assert anyio.run(find_faults, path, said) == [], f"after {first + GENERATION} kills"
        words.update(word for word, _, _ in said)
    assert set(words) == {"stored", "erased"}
    count("kills while erasing", kills)
    count("erasures", words["erased"])


@pytest.mark.parametrize(("fault", "sign"), [("unaudited", "not on record"), ("unscrubbed", "a trace is left")])
def test_the_harness_catches_a_planted_fault(tmp_path: Path, fault: str, sign: str) -> None:
    path = tmp_path / "store" / "store.sqlite3"
    said = live(path, 0, fault)
    for seed in range(1, 20):
        if any(word == "erased" for word, _, _ in said):
            break
        said = live(path, seed, fault)
    if fault == "unscrubbed":
        # What opens a store scrubs it, so the look comes before.
        content = b"".join(each.read_bytes() for each in path.parent.iterdir())
        assert any(canary.encode() in content for word, _, canary in said if word == "erased")
        return
    assert any(sign in each for each in anyio.run(find_faults, path, said))
