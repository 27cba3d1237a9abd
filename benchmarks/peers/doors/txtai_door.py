"""txtai over the line protocol: hybrid search over stored content; a store is acknowledged when `save` has returned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from served import serve
from txtai import Embeddings

PLACE = Path(os.environ["PEER_HOME"]) / "index"


# Saved with the index and imported again when that is loaded, which it does only where it is told that it may.
os.environ["ALLOW_RESOLVE_TRANSFORM"] = "True"
SETTINGS = {"method": "external", "transform": "encoder.encode", "content": True, "hybrid": True}
embeddings = Embeddings(SETTINGS)
if PLACE.exists():
    embeddings.load(str(PLACE))


def _keep(notes: list[dict[str, str]]) -> None:
    embeddings.upsert([(note["key"], f"{note['title']}\n\n{note['body']}") for note in notes])
    embeddings.save(str(PLACE))


def store(key: str, title: str, body: str) -> dict[str, Any]:
    """Keep a note, and save the index."""
    _keep([{"key": key, "title": title, "body": body}])
    return {"id": key}


def replace(id: str, key: str, title: str, body: str) -> dict[str, Any]:
    """Put another text in a note's place."""
    return store(id, title, body)


def search(query: str, limit: int) -> dict[str, Any]:
    """Return the texts found, best first."""
    return {"found": [[each["id"], each["text"]] for each in embeddings.search(query, limit)]}


def everything() -> dict[str, Any]:
    """Return the keys of all notes."""
    return {"keys": [each["id"] for each in embeddings.search("select id from txtai", 1_000_000)]}


def fill(notes: list[dict[str, str]]) -> dict[str, Any]:
    """Keep many notes, and save the index once."""
    _keep(notes)
    return {}


if __name__ == "__main__":
    serve({"store": store, "replace": replace, "search": search, "everything": everything, "fill": fill})
