"""The rivals that are libraries: each behind the same line protocol, in a process of its own."""

from __future__ import annotations

import time
from abc import ABC
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.peers.client import Client, PeerError
from benchmarks.peers.rival import DOORS, Found, Note, Rival, keep_vectors, structured


class Library(Rival, ABC):
    """What they share: the door's five functions."""

    script: ClassVar[str]
    batch: ClassVar[int] = 1000
    door = "its Python interface, in a process of its own"
    is_server = False

    def command(self, home: Path) -> Sequence[str]:
        return [self.interpreter, str(DOORS / self.script)]

    def store(self, client: Client, note: Note) -> str:
        answer = client.call("store", {"key": note.key, "title": note.title, "body": note.body})
        return structured(answer)["id"]

    def correct(self, client: Client, handle: str, note: Note) -> str:
        arguments = {"id": handle, "key": note.key, "title": note.title, "body": note.body}
        return structured(client.call("replace", arguments))["id"]

    def search(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        return [Found(*each) for each in structured(client.call("search", {"query": query, "limit": limit}))["found"]]

    def list_keys(self, home: Path) -> set[str]:
        client = self.open(home)
        try:
            return set(structured(client.call("everything", {}))["keys"])
        finally:
            client.close()

    def fill(self, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
        client = self.open(home, **keep_vectors(vectors))
        until = time.monotonic() + seconds
        try:
            for start in range(0, len(notes), self.batch):
                if time.monotonic() > until:
                    raise PeerError(f"{start:,} of {len(notes):,} notes within {seconds:.0f} s")
                part = notes[start : start + self.batch]
                given = [{"key": n.key, "title": n.title, "body": n.body} for n in part]
                # All of a batch may be embedded in this one call.
                client.call("fill", {"notes": given}, max(1.0, until - time.monotonic()))
            self.settle(client)
        finally:
            client.close()

    def settle(self, client: Client) -> None:
        """Do what an owner does once a lot was added."""


class Mem0(Library):
    """mem0 with `infer=False`: notes as they are, in Qdrant's local files, with a history in SQLite."""

    name = "mem0"
    package = "mem0ai"
    script = "mem0_door.py"
    batch = 100
    settings = "`infer=False`, Qdrant's local files on disk, history in SQLite, common encoder as its embedder"
    corrects = "`update`: the text is replaced, the older stays in the history"


class Txtai(Library):
    """txtai with content and hybrid search."""

    name = "txtai"
    package = "txtai-minimal"
    script = "txtai_door.py"
    batch = 100_000
    settings = (
        "`content`, `hybrid`, faiss, common encoder as its external transform; a store is one `upsert` and one `save` "
        "in place, for without the latter nothing is kept; the package without torch"
    )
    corrects = "`upsert` under the same id: the text is replaced"


class LanceDB(Library):
    """A LanceDB table with a full-text index."""

    name = "lancedb"
    package = "lancedb"
    script = "lancedb_door.py"
    batch = 10_000
    settings = (
        "a table with vectors and a full-text index, hybrid search fused as by default; the vectors compared exactly"
    )
    corrects = "`merge_insert` under the same key: the row is replaced"

    def settle(self, client: Client) -> None:
        client.call("settle", {})
