"""A process that keeps a store: it stores, erases, backs up, restores, moves and checks the record, until it is killed.

The process that is started forks one life for each line it reads: `SEED MILLISECONDS`, so much of the processor's time
until the life is ended by a signal, wherever it is. A life says what it is about to do and what it has done, line by
line. `--fault` plants what must be caught: `copied` backs up by copying the file, `naive` restores by copying it back.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread

from refdesk.core.clock import SystemClock
from refdesk.core.keeping import erasing, migrating
from refdesk.core.writing import audit
from refdesk.core.writing.tombstones import is_erased
from refdesk.model import SHARED_ORG, Collection, Document
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.backups import make_backup
from refdesk.stores.sqlite.restoring import restore

NOTES = Collection("acme", "knowledge")
ACTOR = audit.Actor("acme", "ann", "test")
NAME = "store.sqlite3"


def tell(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


class Keeper:
    """One life."""

    def __init__(self, folder: Path, seed: int, fault: str) -> None:
        self.path, self.backup = folder / "store" / NAME, folder / "backup"
        self.moved = folder / "moved"
        self.seed, self.fault = seed, fault
        self.random, self.clock = Random(seed), SystemClock()
        self.made = 0

    async def live(self) -> None:
        while True:
            async with open_store(self.path) as store:
                await self.go_on_moving(store)
                for _ in range(self.random.randrange(2, 8)):
                    await self.act(store)
            if self.backup.exists() and self.random.random() < 0.5:
                await self.put_back()

    async def act(self, store: Store) -> None:
        choice = self.random.random()
        if choice < 0.5:
            await self.add(store)
        elif choice < 0.7:
            await self.erase(store)
        elif choice < 0.85:
            await self.back_up()
        elif choice < 0.93:
            (self.moved / "unfinished").mkdir(parents=True, exist_ok=True)
            await self.go_on_moving(store)
        else:
            verdict = await audit.verify(store, NOTES.org)
            tell("broken" if verdict.broken else "verified", str(verdict.entries))

    async def add(self, store: Store) -> None:
        self.made += 1
        id, now = f"{self.seed}-{self.made}", self.clock.now()
        canary = f"canary-{self.seed}-{self.made}-"
        note = Document(
            collection=NOTES,
            id=id,
            title=canary,
            body=f"{canary} " * self.random.choice((10, 500)),
            author="ann",
            created_at=now,
            modified_at=now,
        )
        async with audit.watch(store, self.clock, ACTOR, "store_knowledge").transaction() as transaction:
            await transaction.put_documents([note])
        tell("stored", id)

    async def erase(self, store: Store) -> None:
        ids = sorted(await store.get_digests(NOTES))
        if not ids:
            return
        id = self.random.choice(ids)
        tell("erasing", id)
        await erasing.erase(store, self.clock, ACTOR, erasing.Erasable("acme", id))
        tell("erased", id)

    async def back_up(self) -> None:
        tell("backing")
        if self.fault == "copied":
            shutil.copyfile(self.path, self.backup)
        else:
            await anyio.to_thread.run_sync(lambda: make_backup(self.path, self.backup, replaces=True))
        tell("backed")

    async def put_back(self) -> None:
        tell("restoring")
        if self.fault == "naive":
            copy_back(self.backup, self.path)
        else:
            operator = audit.Actor(SHARED_ORG, "cli", "cli")
            [restored] = await restore(self.backup, {"": self.path}, self.clock, operator)
            if restored.kept is not None:
                # Nobody needs it here; it holds what is erased later.
                restored.kept.unlink()
        tell("restored")

    async def go_on_moving(self, store: Store) -> None:
        """Move everything to another file; what a kill broke off is gone on with before anything else is done."""
        unfinished = self.moved / "unfinished"
        if not unfinished.exists():
            return
        tell("moving")
        async with open_store(unfinished / NAME) as target:
            await migrating.migrate(store, target, "source")
            ids, after = set[str](), None
            while entries := await target.list_documents(after, 500):
                after = entries[-1]
                documents = await target.get_documents(NOTES, [id for _, id in entries])
                ids |= {each.id for each in documents if each is not None and not is_erased(each)}
            if ids != set(await store.get_digests(NOTES)):
                tell("broken", "moved")
        shutil.rmtree(unfinished)
        tell("moved")


def copy_back(backup: Path, path: Path) -> None:
    for suffix in ("", "-wal", "-seal", "-erased"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(backup, path)


def nurse(folder: Path, fault: str) -> None:
    for line in sys.stdin:
        seed, milliseconds = map(int, line.split())
        process = os.fork()
        if process == 0:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, milliseconds / 1000)
            try:
                anyio.run(Keeper(folder, seed, fault).live)
            finally:
                tell("failed", str(sys.exc_info()[1]).replace("\n", " "))
                os._exit(1)
        os.waitpid(process, 0)
        tell("ended")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fault", default="")
    given = parser.parse_args()
    nurse(given.folder, given.fault)
