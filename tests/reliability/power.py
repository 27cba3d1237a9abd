"""What a disk may hold after the power failed: what was synced, and of the rest any part, by sectors, in any order."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeAlias

import apsw

from refdesk.core.clock import SystemClock
from refdesk.core.writing import idempotency, quotas
from refdesk.errors import StoreError
from refdesk.model import Collection, FindRequest, MetadataKey
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.lineage import SEAL_SUFFIX
from refdesk.toolsets.knowledge import TOOLSET_NAME
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from tests.reliability.agents import ORG
from tests.reliability.chains import find_broken_chains
from tests.reliability.disk import Call
from tests.reliability.inline import open_inline

SECTOR = 512
THOROUGH = 10
LATEST = 20
"""So many of the latest seals may be found."""

NAME = "store.sqlite3"
COLLECTION = Collection(ORG, TOOLSET_NAME)

Survival: TypeAlias = Literal["nothing", "everything", "some calls", "some sectors"]
SURVIVALS: tuple[Survival, ...] = ("nothing", "everything", "some calls", "some sectors")
Acknowledged: TypeAlias = dict[str, str | None]


@dataclass
class File:
    """One file: what is on the disk for sure, and what was asked of it since."""

    durable: bytearray = field(default_factory=bytearray)
    is_named: bool = False
    pending: list[Call] = field(default_factory=list[Call])

    def sync(self) -> None:
        for call in self.pending:
            carry_out(self.durable, call)
        self.pending.clear()
        self.is_named = True

    def fail(self, random: Random, survival: Survival) -> bytes | None:
        """Return what is found after the power failed, `None` where not even the file's name is."""
        if survival == "nothing":
            return bytes(self.durable) if self.is_named else None
        content = bytearray(self.durable)
        for call in self.pending:
            if survival == "some sectors" and call.kind == "write":
                for part in cut(call):
                    if random.random() < 0.5:
                        carry_out(content, part)
            elif survival == "everything" or random.random() < 0.5:
                carry_out(content, call)
        return bytes(content)


def carry_out(content: bytearray, call: Call) -> None:
    end = call.offset + len(call.data)
    if call.kind == "truncate":
        del content[call.offset :]
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    content[call.offset : end] = call.data


def cut(call: Call) -> Iterator[Call]:
    """Yield a write in parts that lie in one sector each."""
    start = 0
    while start < len(call.data):
        end = min(len(call.data), start + SECTOR - (call.offset + start) % SECTOR)
        yield Call(call.kind, call.path, call.offset + start, call.data[start:end])
        start = end


@dataclass
class Disk:
    """Files, and those removed whose removal the disk may not know of yet."""

    files: dict[str, File] = field(default_factory=dict[str, File])
    removed: dict[str, File] = field(default_factory=dict[str, File])

    def take(self, call: Call) -> None:
        if call.kind == "remove":
            self._remove(call)
            return
        self.removed.pop(call.path, None)
        file = self.files.setdefault(call.path, File())
        if call.kind == "sync":
            if not file.is_named:
                self.removed.clear()  # SQLite syncs the folder of a new file too, and with it what was removed there
            file.sync()
        else:
            file.pending.append(call)

    def _remove(self, call: Call) -> None:
        file = self.files.pop(call.path, None)
        if call.offset:
            self.removed.clear()
        elif file is not None:
            self.removed[call.path] = file

    def fail(self, random: Random) -> dict[str, bytes]:
        """Return the files that are found after the power failed now."""
        survival = random.choice(SURVIVALS)
        there = dict(self.files)
        if random.random() < 0.5:
            there |= self.removed
        found = {path: file.fail(random, survival) for path, file in there.items()}
        return {path: content for path, content in found.items() if content is not None}


@dataclass
class Recording:
    """What a process asked of the disk and acknowledged; `start` is where it had made its schema."""

    lines: list[Call | Acknowledged]
    start: int

    @classmethod
    def read(cls, path: Path) -> Recording:
        lines = [parse(json.loads(line)) for line in path.read_text().splitlines()]
        return cls(lines, next(index for index, line in enumerate(lines) if not isinstance(line, Call)))

    def count_checkpoints(self) -> int:
        """Return how often the log was carried over into the database."""
        calls = [line for line in self.lines[self.start :] if isinstance(line, Call)]
        return sum(call.kind == "sync" and call.path == NAME for call in calls)


def parse(line: dict[str, Any]) -> Call | Acknowledged:
    if "acknowledged" in line:
        return line["acknowledged"]
    return Call(line["kind"], line["path"], line["offset"], base64.b64decode(line["data"]))


@dataclass
class Losses:
    """How many images there were, and in which what is wrong."""

    images: int = 0
    corrupt: int = 0
    lost: int = 0
    torn: int = 0
    examples: list[str] = field(default_factory=list[str])

    @property
    def is_none(self) -> bool:
        return not (self.corrupt or self.lost or self.torn)


async def fail_often(recording: Recording, folder: Path, images: int, seed: int) -> Losses:
    """Let the power fail at so many random points, and see what each leaves."""
    random, disk, losses, acknowledged = Random(seed), Disk(), Losses(), list[Acknowledged]()
    points = sorted(random.randrange(recording.start, len(recording.lines)) for _ in range(images))
    done = 0
    for point in points:
        for line in recording.lines[done : point + 1]:
            if isinstance(line, Call):
                disk.take(line)
            else:
                acknowledged.append(line)
        done = point + 1
        files = disk.fail(random)
        # The seal is written after the commit and synced by nobody: any former one may be found, or none.
        if (seal := random.choice([None, *(each["seal"] for each in acknowledged[-LATEST:])])) is not None:
            files[f"{NAME}{SEAL_SUFFIX}"] = base64.b64decode(seal)
        wrong = await judge(write_image(folder, files), acknowledged, is_thorough=losses.images % THOROUGH == 0)
        note(losses, wrong, f"seed {seed}, after line {point}: {wrong}")
    return losses


def note(losses: Losses, wrong: str, example: str) -> None:
    losses.images += 1
    losses.corrupt += wrong.startswith("corrupt")
    losses.lost += wrong.startswith("lost")
    losses.torn += wrong.startswith("torn")
    if wrong and len(losses.examples) < 5:
        losses.examples.append(example)


def write_image(folder: Path, files: dict[str, bytes]) -> Path:
    for left in folder.glob(f"{NAME}*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder / NAME


async def judge(path: Path, acknowledged: Sequence[Acknowledged], *, is_thorough: bool) -> str:
    """Return what is wrong with an image, or nothing.

    Ids, tokens, counts and the file's own integrity are looked at always; contents, chains and search if `is_thorough`:
    then the file is opened as a server opens it, which must take it for whole.
    """
    try:
        if is_thorough:
            async with open_store(path) as store:
                wrong = await find_lost(store, acknowledged) or await find_uncounted(store)
                wrong = wrong or await find_damaged(store, acknowledged)
            check_integrity(path)
            return wrong
        check_integrity(path)
        async with open_inline(path, SystemClock(), "OFF") as store:
            return await find_lost(store, acknowledged) or await find_uncounted(store)
    except (StoreError, OSError, ValueError, apsw.Error) as error:
        # A server refuses what is not whole, in words; without that it would be served.
        is_refused = is_thorough and isinstance(error, StoreError)
        return f"lost, and refused: {error}" if is_refused else f"corrupt: {error!r}"


def check_integrity(path: Path) -> None:
    connection = Connection(path, 0)
    try:
        connection.set_pragma("synchronous", "OFF")
        checked = connection.execute("PRAGMA integrity_check; PRAGMA foreign_key_check")
        if checked != [("ok",)]:
            raise ValueError(f"SQLite finds {checked[:3]}")
    finally:
        connection.close()


async def find_lost(store: Store, acknowledged: Sequence[Acknowledged]) -> str:
    """Return the first note or token that was acknowledged and is not there."""
    ids = await store.get_digests(COLLECTION)
    tokens = {record.key.name.removeprefix("k.store:") for record in await store.list_metadata(idempotency.KIND)}
    for each in acknowledged:
        id, token = each.get("id"), each.get("token")
        if (id is not None and id not in ids) or (token is not None and token not in tokens):
            return f"lost: {each}"
    return ""


async def find_uncounted(store: Store) -> str:
    """Return how many notes there are and how many are counted, where these differ."""
    notes = len(await store.get_digests(COLLECTION))
    record = await store.get_metadata(MetadataKey(ORG, quotas.KIND, f"{QUOTA_NAME}:org"))
    counted = record.value["used"] if record else 0
    return "" if counted == notes else f"torn: {notes} notes, {counted} counted"


async def find_damaged(store: Store, acknowledged: Sequence[Acknowledged]) -> str:
    """Return what is wrong with contents, supersessions, chains or search."""
    ids = sorted(await store.get_digests(COLLECTION))
    documents = {each.id: each for each in await store.get_documents(COLLECTION, ids) if each is not None}
    for each in acknowledged:
        if (id := each.get("id")) is not None and documents[id].title != each["title"]:
            return f"lost: {each}"
        if (old := each.get("old")) is not None and documents[old].data.get("superseded_by") != each["new"]:
            return f"lost: {each}"
    if broken := await find_broken_chains(store, ORG):
        return f"torn: chains of {broken}"
    found = await store.find(FindRequest(COLLECTION, depth=len(ids) + 1))
    return "" if {each.id for each in found.candidates} == set(ids) else "torn: not everything is found"
