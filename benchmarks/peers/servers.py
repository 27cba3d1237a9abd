"""refdesk, and the rivals that are servers: MCP over stdio, as an agent's host starts them."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.peers.client import Client, PeerError, get_text
from benchmarks.peers.rival import DOORS, Found, Note, Rival, as_lines, as_text, keep_vectors, structured

KEY = re.compile(r"\bk-[a-z0-9-]*[a-z0-9]\b")
BATCH = 1000


def run(command: Sequence[str], variables: Mapping[str, str], seconds: float) -> str:
    """Return what a command prints.

    Raises:
        PeerError: It failed.
        TimeoutExpired: It took longer.
    """
    done = subprocess.run(
        command, env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, text=True, timeout=seconds
    )
    if done.returncode:
        raise PeerError((done.stderr or done.stdout)[-300:])
    return done.stdout


class Refdesk(Rival):
    """This repository's server, as hosts start it: a forwarder to the one desk of the machine."""

    name = "refdesk"
    package = "refdesk"
    settings = "as installed: the desk of the machine, packaged embedding model, `synchronous=FULL`"
    corrects = "`store_knowledge`, then `supersede_knowledge`: two calls; the older stays readable"

    def command(self, home: Path) -> Sequence[str]:
        return [str(Path(sys.executable).with_name("refdesk")), "serve", "--stdio", "--toolset", "knowledge"]

    def variables(self, home: Path) -> Mapping[str, str]:
        return {"REFDESK_HOME": str(home), "REFDESK_CONFIG": "none"}

    def store(self, client: Client, note: Note) -> str:
        arguments = {"title": note.title, "body": note.body, "tags": [note.key]}
        return structured(client.call("store_knowledge", arguments))["id"]

    def correct(self, client: Client, handle: str, note: Note) -> str:
        new = self.store(client, note)
        client.call("supersede_knowledge", {"oldId": handle, "newId": new})
        return new

    def search(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        answer = structured(client.call("search_knowledge", {"query": query, "limit": limit}))
        return [Found(each["tags"][0], f"{each['title']} {each['snippet']}") for each in answer["results"]]

    def list_keys(self, home: Path) -> set[str]:
        return set(KEY.findall(self._run(home, 600, "export", "knowledge")))

    def fill(self, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
        instant = "2026-01-01T00:00:00.000000+00:00"
        head = {"format": "refdesk-knowledge", "version": 1, "entries": len(notes)}
        lines = [
            {
                "id": str(uuid.uuid5(uuid.NAMESPACE_OID, note.key)),
                "title": note.title,
                "author": "bench",
                "source": "agent",
                "confidence": 80,
                "tags": [note.key],
                "state": "current",
                "createdAt": instant,
                "modifiedAt": instant,
                "body": note.body,
            }
            for note in notes
        ]
        path = home / "notes.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
        self._run(home, seconds, "import", "knowledge", "--format", "jsonl", str(path))
        path.unlink()
        self._run(home, seconds, "worker", "--until-idle", "--toolset", "knowledge")

    def _run(self, home: Path, seconds: float, *arguments: str) -> str:
        return run([self.command(home)[0], *arguments], self.variables(home), seconds)

    def read_version(self) -> str:
        from refdesk import __version__

        return __version__


class BasicMemory(Rival):
    """Markdown files with an index beside them. The folder of a note is its key, so that titles stay what they are."""

    name = "basic-memory"
    package = "basic-memory"
    settings = "semantic search on, common encoder in fastembed's place; hybrid search, its default then"
    corrects = "`write_note` with `overwrite`: the file is replaced"
    python = "3.12"

    def command(self, home: Path) -> Sequence[str]:
        return [self.interpreter, str(DOORS / "basic_memory_door.py"), "mcp"]

    def variables(self, home: Path) -> Mapping[str, str]:
        folders = {"BASIC_MEMORY_HOME": str(home / "notes"), "BASIC_MEMORY_CONFIG_DIR": str(home / "config")}
        return {**super().variables(home), **folders, "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "true"}

    def store(self, client: Client, note: Note) -> str:
        client.call("write_note", {"title": note.title, "directory": note.key, "content": note.body})
        return note.key

    def correct(self, client: Client, handle: str, note: Note) -> str:
        arguments = {"title": note.title, "directory": handle, "content": note.body, "overwrite": True}
        client.call("write_note", arguments)
        return handle

    def search(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        text = get_text(client.call("search_notes", {"query": query, "page_size": limit}))
        if text.startswith("# Search Failed"):
            raise PeerError(text[:300])
        parts = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
        found = [(re.search(r"permalink: main/(k-[a-z0-9-]+)/", part), part) for part in parts]
        return [Found(key[1], part) for key, part in found if key is not None]

    def list_keys(self, home: Path) -> set[str]:
        return {path.parent.name for path in (home / "notes").rglob("*.md")}

    def fill(self, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
        self.open(home).close()  # makes its project
        for note in notes:
            folder = home / "notes" / note.key
            folder.mkdir()
            title = re.sub(r"[^\w .-]", " ", note.title)[:100].strip(" .") or note.key
            front = f"---\ntitle: {json.dumps(note.title)}\ntype: note\npermalink: main/{note.key}/note\n---\n\n"
            (folder / f"{title}.md").write_text(f"{front}{note.body}\n")
        variables = {**self.variables(home), **keep_vectors(vectors)}
        run([*self.command(home)[:2], "reindex"], variables, seconds)


class MemoryService(Rival):
    """Notes with tags in SQLite, vectors by sqlite-vec."""

    name = "mcp-memory-service"
    package = "mcp-memory-service"
    settings = (
        "sqlite_vec, semantic search, common encoder in its ONNX model's place; each note in a conversation of its "
        "own, or near duplicates would be refused"
    )
    corrects = "`memory_update` with `versioned`: the older is marked superseded and hidden"

    def command(self, home: Path) -> Sequence[str]:
        return [self.interpreter, str(DOORS / "memory_service.py")]

    def variables(self, home: Path) -> Mapping[str, str]:
        store = {"MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec", "MCP_MEMORY_SQLITE_PATH": str(home / "memory.db")}
        return {**super().variables(home), **store, "MCP_MEMORY_BASE_DIR": str(home)}

    def store(self, client: Client, note: Note) -> str:
        arguments = {"content": as_text(note), "metadata": {"tags": note.key}, "conversation_id": note.key}
        return self._read_hash(client.call("memory_store", arguments))

    def correct(self, client: Client, handle: str, note: Note) -> str:
        updates = {"content": as_text(note), "tags": [note.key]}
        return self._read_hash(
            client.call("memory_update", {"content_hash": handle, "updates": updates, "versioned": True}), old=handle
        )

    def _read_hash(self, answer: dict[str, object], old: str = "") -> str:
        text = get_text(answer)
        hashes = [each for each in re.findall(r"\b[0-9a-f]{64}\b", text) if each != old]
        if not hashes:
            raise PeerError(text[:300])
        return hashes[-1]

    def search(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        text = get_text(client.call("memory_search", {"query": query, "limit": limit}))
        if text.startswith("Error"):
            raise PeerError(text[:300])
        parts = re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]
        keys = [(re.search(r"\[[^\]]*?(k-[a-z0-9-]+)", part), part) for part in parts]
        return [Found(key[1], part) for key, part in keys if key is not None]

    def list_keys(self, home: Path) -> set[str]:
        with closing(sqlite3.connect(home / "memory.db")) as database:
            rows = database.execute("SELECT tags FROM memories WHERE deleted_at IS NULL").fetchall()
        return {key for (tags,) in rows for key in KEY.findall(tags or "")}

    def fill(self, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
        fill_by_door(self, home, notes, vectors, seconds)


class Qdrant(Rival):
    """A vector collection in local files; one process at a time."""

    name = "mcp-server-qdrant"
    package = "mcp-server-qdrant"
    settings = "local files (`QDRANT_LOCAL_PATH`), common encoder through its `embedding_provider`"
    corrects = ""

    def command(self, home: Path) -> Sequence[str]:
        return [self.interpreter, str(DOORS / "qdrant.py")]

    def variables(self, home: Path) -> Mapping[str, str]:
        store = {"QDRANT_LOCAL_PATH": str(home / "qdrant"), "COLLECTION_NAME": "notes"}
        return {**super().variables(home), **store}

    def store(self, client: Client, note: Note) -> str:
        client.call("qdrant-store", {"information": as_text(note), "metadata": {"key": note.key}})
        return note.key

    def search(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        text = get_text(client.call("qdrant-find", {"query": query}))
        parts = text.split("<entry>")[1:]
        return [Found(self._read_key(part), part) for part in parts][:limit]

    def _read_key(self, part: str) -> str:
        keys = KEY.findall(part.rpartition("<metadata>")[2])
        return keys[-1] if keys else ""

    def list_keys(self, home: Path) -> set[str]:
        client = self.open(home, QDRANT_SEARCH_LIMIT="1000000")
        try:
            return {found.key for found in self.search(client, "note", 1_000_000)}
        finally:
            client.close()

    def fill(self, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
        fill_by_door(self, home, notes, vectors, seconds)


class Chroma(Rival):
    """A Chroma collection in local files."""

    name = "chroma-mcp"
    package = "chroma-mcp"
    settings = (
        "persistent client; its default embedding function, which downloads a model, stands on the common encoder; "
        "pydantic held below 2.11, with which it starts"
    )
    corrects = "`chroma_update_documents`: the text is replaced"

    def command(self, home: Path) -> Sequence[str]:
        return [self.interpreter, str(DOORS / "chroma.py"), "--client-type", "persistent", "--data-dir", str(home)]

    def prepare(self, client: Client) -> None:
        try:
            client.call("chroma_create_collection", {"collection_name": "notes"})
        except PeerError as error:
            if "already exists" not in str(error):
                raise

    def store(self, client: Client, note: Note) -> str:
        self._add(client, [note])
        return note.key

    def _add(self, client: Client, notes: Sequence[Note]) -> None:
        added = {"documents": [as_text(note) for note in notes], "ids": [note.key for note in notes]}
        client.call("chroma_add_documents", {"collection_name": "notes", **added})

    def correct(self, client: Client, handle: str, note: Note) -> str:
        updated = {"documents": [as_text(note)], "ids": [handle]}
        client.call("chroma_update_documents", {"collection_name": "notes", **updated})
        return handle

    def search(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        asked = {"collection_name": "notes", "query_texts": [query], "n_results": limit}
        answer = json.loads(get_text(client.call("chroma_query_documents", asked)))
        return [Found(key, text) for key, text in zip(answer["ids"][0], answer["documents"][0], strict=True)]

    def list_keys(self, home: Path) -> set[str]:
        client = self.open(home)
        try:
            answer = client.call("chroma_get_documents", {"collection_name": "notes", "limit": 1_000_000})
            return set(json.loads(get_text(answer))["ids"])
        finally:
            client.close()

    def fill(self, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
        client = self.open(home, **keep_vectors(vectors))
        try:
            within(seconds, partial(self._add, client), notes)
        finally:
            client.close()


class ReferenceServer(Rival):
    """The reference memory server: a graph in one file of lines, which every call reads."""

    name = "server-memory"
    package = "@modelcontextprotocol/server-memory"
    settings = (
        "no embeddings; search is by a piece of text, so a question is asked word by word and what holds more of its "
        "words comes first; times are of a call with one word"
    )
    corrects = "`delete_observations`, then `add_observations`: two calls; the older is gone"

    def command(self, home: Path) -> Sequence[str]:
        return ["node", str(self.environment / "node_modules" / self.package / "dist" / "index.js")]

    def variables(self, home: Path) -> Mapping[str, str]:
        return {"HOME": str(home), "MEMORY_FILE_PATH": str(home / "memory.jsonl")}

    def store(self, client: Client, note: Note) -> str:
        self._create(client, [note])
        return json.dumps([f"{note.title} [{note.key}]", note.body])

    def _create(self, client: Client, notes: Sequence[Note]) -> None:
        entities = [
            {"name": f"{note.title} [{note.key}]", "entityType": "note", "observations": [note.body]} for note in notes
        ]
        client.call("create_entities", {"entities": entities})

    def correct(self, client: Client, handle: str, note: Note) -> str:
        name, body = json.loads(handle)
        client.call("delete_observations", {"deletions": [{"entityName": name, "observations": [body]}]})
        client.call("add_observations", {"observations": [{"entityName": name, "contents": [note.body]}]})
        return json.dumps([name, note.body])

    def search(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        return self._find(client, query.split()[0])[:limit]

    def ask_words(self, client: Client, query: str, limit: int = 10) -> list[Found]:
        counts, texts = Counter[str](), dict[str, str]()
        for word in sorted(set(re.findall(r"\w{4,}", query.lower()))):
            for found in self._find(client, word):
                counts[found.key] += 1
                texts[found.key] = found.text
        return [Found(key, texts[key]) for key, _ in counts.most_common(limit)]

    def _find(self, client: Client, word: str) -> list[Found]:
        entities = structured(client.call("search_nodes", {"query": word}))["entities"]
        return [Found(KEY.findall(each["name"])[-1], " ".join(each["observations"])) for each in entities]

    def list_keys(self, home: Path) -> set[str]:
        lines = (home / "memory.jsonl").read_text(errors="replace")
        return set(re.findall(r"\[(k-[a-z0-9-]+)\]", lines))

    def fill(self, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
        client = self.open(home)
        try:
            within(seconds, partial(self._create, client), notes)
        finally:
            client.close()

    def read_version(self) -> str:
        described = self.environment / "node_modules" / self.package / "package.json"
        return json.loads(described.read_text())["version"] if described.exists() else "?"


def fill_by_door(rival: Rival, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> None:
    """Fill by the `fill` of a rival's door."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write(as_lines(notes))
        file.flush()
        variables = {**rival.variables(home), **keep_vectors(vectors)}
        run([*rival.command(home), "fill", file.name], variables, seconds)


def within(seconds: float, keep: Callable[[Sequence[Note]], None], notes: Sequence[Note]) -> None:
    """Keep notes in batches, for so many seconds at most.

    Raises:
        PeerError: The time was up before the notes were.
    """
    until = time.monotonic() + seconds
    for start in range(0, len(notes), BATCH):
        if time.monotonic() > until:
            raise PeerError(f"{start:,} of {len(notes):,} notes within {seconds:.0f} s")
        keep(notes[start : start + BATCH])
