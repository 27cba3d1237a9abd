"""Killed while backing up, restoring, erasing, moving and checking the record: each is whole or undone.

A backup is whole or absent, what was erased never comes back, and the record verifies and misses no acknowledged act.
The long form (`make soak`) kills 300 times.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from refdesk.core.writing import audit
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.checking import list_faults_of_file
from refdesk.stores.sqlite.driver import open_snapshot
from refdesk.stores.sqlite.lineage import read_marks
from tests.conftest import REPOSITORY
from tests.reliability.counting import count
from tests.reliability.keeper import NAME, NOTES

pytestmark = pytest.mark.timeout(3600)

IS_LONG = os.environ.get("REFDESK_SOAK") == "1"
KILLS = 300 if IS_LONG else 9
GENERATION = 30
"""Kills of one store, before another is begun: the whole costs as much for each kill."""

CHECKED_EVERY = 3
LONGEST_MILLISECONDS = 500


@dataclass
class Known:
    """What lives have said.

    Attributes:
        living: What is there for sure.
        in_backup: What is in the backup for sure.
        at_begin: What was there when the backup that is being made was begun.
        acts: What must be on record.
        heard: Every line, in order.
    """

    living: set[str] = field(default_factory=set[str])
    in_backup: set[str] = field(default_factory=set[str])
    at_begin: set[str] | None = None
    erased: set[str] = field(default_factory=set[str])
    acts: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    has_backup: bool = False
    is_restoring: bool = False
    counts: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])
    heard: list[str] = field(default_factory=list[str])

    def hear(self, word: str, rest: str) -> None:
        self.counts[word] += 1
        self.heard.append(f"{word} {rest}")
        match word:
            case "stored":
                self.living.add(rest)
                self.acts.add(("created", rest))
            case "erasing":
                # Until it is said to be erased it may be or not, and then a restore may bring it back or not.
                self.living.discard(rest)
                self.in_backup.discard(rest)
            case "erased":
                self.erased.add(rest)
                self.acts.add(("erased", rest))
            case "backing":
                self.at_begin = set(self.living)
            case "backed":
                self.in_backup, self.at_begin, self.has_backup = set(self.living), None, True
            case "restoring":
                self.is_restoring = True
            case "restored":
                self.living, self.is_restoring = self.in_backup - self.erased, False
            case "broken" | "failed":
                self.faults.append(f"{word}: {rest}")
            case _:
                pass

    def hear_kill(self) -> None:
        """What was being done may be done or not."""
        self.counts["kills"] += 1
        self.heard.append("killed")
        if self.at_begin is not None:
            self.in_backup &= self.at_begin
            self.at_begin = None
        if self.is_restoring:
            self.living &= self.in_backup
            self.is_restoring = False


@contextmanager
def nursing(folder: Path, fault: str = "") -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.reliability.keeper", str(folder), "--fault", fault]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=REPOSITORY, text=True, bufsize=1, **pipes) as process:  # pyright: ignore[reportCallIssue, reportArgumentType]
        try:
            yield process
        finally:
            process.kill()


def live(process: subprocess.Popen[str], known: Known, seed: int, milliseconds: int) -> None:
    """Let one life go on until it is killed, and note what it said."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{seed} {milliseconds}\n")
    for line in process.stdout:
        word, _, rest = line.strip().partition(" ")
        if word == "ended":
            break
        known.hear(word, rest)
    known.hear_kill()


async def find_faults(folder: Path, known: Known) -> list[str]:
    """Return what does not hold, once the store was opened after a kill."""
    path = folder / "store" / NAME
    async with open_store(path) as store:
        verdict = await audit.verify(store, NOTES.org)
        faults = [f"the log is broken: {verdict.broken}"] if verdict.broken else []
        acts, after = set[tuple[str, str]](), 0
        while entries := await store.get_audit(NOTES.org, after):
            after = entries[-1].number
            for entry in entries:
                records: Any = entry.act.get("records", [])
                acts |= {(str(record["change"]), str(record["id"])) for record in records}
        faults += [f"not on record: {change} {id}" for change, id in sorted(known.acts - acts)]
        there = set(await store.get_digests(NOTES))
        faults += [f"came back: {id}" for id in sorted(there & known.erased)]
        faults += [f"lost: {id}" for id in sorted(known.living - there)]
    return [*faults, *known.faults, *find_traces(path, known), *find_backup_faults(folder / "backup", known)]


def find_traces(path: Path, known: Known) -> list[str]:
    """Return what is left of what was erased, in any byte of the store's files and in any row."""
    files = [each for each in path.parent.rglob("*") if each.is_file() and ".replaced-" not in each.name]
    content = b"".join(each.read_bytes() for each in files)
    with open_snapshot(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = [row for name in tables for row in connection.execute(f"SELECT * FROM {name}")]  # noqa: S608
    content += repr(rows).encode()
    canaries = {match.decode() for match in re.findall(rb"canary-(\d+-\d+)-", content)}
    return [f"a trace is left: {id}" for id in sorted(canaries & known.erased)]


def find_backup_faults(backup: Path, known: Known) -> list[str]:
    if not backup.exists():
        return ["the backup is gone"] if known.has_backup else []
    with open_snapshot(backup) as connection:
        marks = read_marks(connection)
        held = {id for (id,) in connection.execute("SELECT id FROM documents WHERE state <> 'withdrawn'")}
    faults = [f"the backup is damaged: {fault}" for fault in list_faults_of_file(backup)]
    faults += ["the backup was in use"] if marks is None or marks.in_use else []
    return faults + [f"the backup lacks {id}" for id in sorted(known.in_backup - held - known.erased)]


def clear(folder: Path) -> None:
    """Do what an operator does between kills: remove what a restore kept, once the store is well."""
    for each in (folder / "store").glob("*.replaced-*"):
        each.unlink()


@pytest.mark.parametrize("kills", [pytest.param(KILLS, marks=pytest.mark.soak if IS_LONG else ())])
def test_backups_are_whole_what_was_erased_stays_gone_and_no_act_is_missed(tmp_path: Path, kills: int) -> None:
    random, counts = Random(1), Counter[str]()
    for first in range(0, kills, GENERATION):
        folder, known = tmp_path / str(first), Known()
        folder.mkdir()
        with nursing(folder) as process:
            for seed in range(first, min(first + GENERATION, kills)):
                live(process, known, seed, random.randrange(5, LONGEST_MILLISECONDS))
                if seed % CHECKED_EVERY == 0:
                    assert anyio.run(find_faults, folder, known)[:5] == [], f"after {seed + 1} kills: {known.heard}"
                    clear(folder)
        assert anyio.run(find_faults, folder, known)[:5] == [], f"after {first + GENERATION} kills"
        counts += known.counts
        shutil.rmtree(folder)
    sys.stdout.write(f"{dict(counts)}\n")
    assert min(counts[word] for word in ("stored", "erased", "backed", "restored")) > 0
    count("kills while backing up and restoring", kills)
    count("backups", counts["backed"])
    count("restores", counts["restored"])
    count("erasures", counts["erased"])


@pytest.mark.parametrize(("fault", "sign"), [("copied", "the backup"), ("naive", "came back")])
def test_the_harness_catches_a_planted_fault(tmp_path: Path, fault: str, sign: str) -> None:
    known, found = Known(), list[str]()
    with nursing(tmp_path, fault) as process:
        for seed in range(1, 40):
            live(process, known, seed, 400)
            found = anyio.run(find_faults_or_refusal, tmp_path, known)
            if any(sign in each for each in found):
                return
    pytest.fail(f"not caught: {found[:5]}")


async def find_faults_or_refusal(folder: Path, known: Known) -> list[str]:
    try:
        return await find_faults(folder, known)
    except Exception as error:
        return [str(error)]
