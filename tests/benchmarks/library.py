"""A rival of a few lines: `python library.py [honest | late | stale | silent]`, over the line protocol of the doors.

`honest` writes each note before it answers. `late` answers first and writes every hundredth time. `stale` adds where it
should replace, and finds the oldest first. `silent` never says that it is filled.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

MANNER = sys.argv[1]
FILE = Path(os.environ["PEER_HOME"]) / "notes.jsonl"
waiting: list[str] = []


def write(arguments: dict[str, Any]) -> dict[str, Any]:
    waiting.append(json.dumps(arguments) + "\n")
    if MANNER != "late" or len(waiting) == 100:
        with FILE.open("a") as file:
            file.write("".join(waiting))
        waiting.clear()
    return {"id": arguments["key"]}


def read() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []


def replace(arguments: dict[str, Any]) -> dict[str, Any]:
    if MANNER != "stale":
        kept = [note for note in read() if note["key"] != arguments["id"]]
        FILE.write_text("".join(json.dumps(note) + "\n" for note in kept))
    return write({name: arguments[name] for name in ("key", "title", "body")})


def search(arguments: dict[str, Any]) -> dict[str, Any]:
    words = set(arguments["query"].lower().split())
    notes = read()
    texts = [f"{note['title']} {note['body']}" for note in notes]
    order = sorted(range(len(notes)), key=lambda n: -len(words & set(texts[n].lower().split())))
    return {"found": [[notes[n]["key"], texts[n]] for n in order][: arguments["limit"]]}


def list_all(_: dict[str, Any]) -> dict[str, Any]:
    return {"keys": [note["key"] for note in read()]}


def fill(arguments: dict[str, Any]) -> dict[str, Any]:
    if MANNER == "silent":
        sys.stdin.read()
    for note in arguments["notes"]:
        write(note)
    return {}


TOOLS = {
    "store": write,
    "replace": replace,
    "search": search,
    "everything": list_all,
    "fill": fill,
}

for line in sys.stdin:
    said = json.loads(line)
    if "id" in said:
        called = said["params"]
        result: dict[str, Any] = {"tools": []}
        if said["method"] == "tools/call":
            result = {"structuredContent": TOOLS[called["name"]](called["arguments"])}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": result}) + "\n")
        sys.stdout.flush()
