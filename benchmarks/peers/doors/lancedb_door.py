"""LanceDB over the line protocol: a table with vectors and a full-text index, asked for both and fused by its default.

What was added after the index was last brought up to date is found too: LanceDB reads it beside the index.
"""

from __future__ import annotations

import os
from typing import Any

import lancedb
import pyarrow as pa
from encoder import DIMENSIONS, encode
from served import serve

SCHEMA = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("text", pa.string()),
        pa.field("vector", pa.list_(pa.float32(), DIMENSIONS)),
    ]
)
database = lancedb.connect(os.path.join(os.environ["PEER_HOME"], "lance"))
if "notes" in database.table_names():
    table = database.open_table("notes")
else:
    table = database.create_table("notes", schema=SCHEMA, exist_ok=True)


def _row(note: dict[str, str]) -> dict[str, Any]:
    text = f"{note['title']}\n\n{note['body']}"
    return {"key": note["key"], "text": text, "vector": encode([text])[0]}


def store(key: str, title: str, body: str) -> dict[str, Any]:
    """Add a row."""
    table.add([_row({"key": key, "title": title, "body": body})])
    return {"id": key}


def replace(id: str, key: str, title: str, body: str) -> dict[str, Any]:
    """Put another text in a row's place."""
    rows = [_row({"key": id, "title": title, "body": body})]
    table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    return {"id": id}


def search(query: str, limit: int) -> dict[str, Any]:
    """Return the texts found, best first: by both where there is a full-text index, else by vector."""
    table.checkout_latest()
    vector = encode([query])[0]
    if any("text" in index.columns for index in table.list_indices()):
        found = table.search(query_type="hybrid").vector(vector).text(query).limit(limit).to_list()
    else:
        found = table.search(vector).limit(limit).to_list()
    return {"found": [[each["key"], each["text"]] for each in found]}


def everything() -> dict[str, Any]:
    """Return the keys of all rows."""
    table.checkout_latest()
    return {"keys": table.to_arrow().column("key").to_pylist()}


def fill(notes: list[dict[str, str]]) -> dict[str, Any]:
    """Add many rows."""
    table.add([_row(note) for note in notes])
    return {}


def settle() -> dict[str, Any]:
    """Make the full-text index, as an owner of a filled table does."""
    table.optimize()
    table.create_fts_index("text", replace=True)
    return {}


if __name__ == "__main__":
    serve(
        {
            "store": store,
            "replace": replace,
            "search": search,
            "everything": everything,
            "fill": fill,
            "settle": settle,
        }
    )
