"""What the first answer of a new process costs on a large store, and what memory a further process takes to itself.

    python -m benchmarks.first_answer [--documents N]

The store holds 100,000 invented notes with vectors of 384 dimensions, one file, its index frozen by a process before;
no other process has it open. Beside it: the same texts in an FTS5 table and the same vectors in a file that numpy maps.
In turns a new process of each answers one question by words and by meaning, its vector given, for the first 100 of each
list, and reads the ten best. Counted is all CPU the process has used from its start to its end, Python's own start and
all imports included.

Private memory is what the operating system calls anonymous: heap and stacks, not what is mapped from files, which all
processes share. It is read after the answer: in all, and what opening the store and answering added. The model that
embeds a question is no part of either.

Exit status 1 when ours takes more than `MOST_TIMES` the CPU, or a process more than `MOST_PRIVATE_MB`.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import anyio
import numpy as np

from benchmarks.scale import DOCUMENTS, MODEL, Part, Question, World, load, make_part, make_questions
from refdesk.core.search.analysis import parse_query
from refdesk.model import FindRequest, VectorQuery
from refdesk.stores.sqlite import open_store

ROUNDS = 7
MOST_TIMES, MOST_PRIVATE_MB = 5.0, 50.0

OURS = """
import sys
from pathlib import Path
import anyio, numpy as np
from benchmarks.memory import get_private_bytes
from refdesk.core.search.analysis import parse_query
from refdesk.model import Collection, FindRequest, VectorQuery
from refdesk.stores.sqlite import open_store

async def answer(path, org, words, vector):
    place, before = Collection(org, "knowledge"), get_private_bytes()
    async with open_store(Path(path)) as store:
        query = VectorQuery(np.load(vector), "invented")
        found = await store.find(FindRequest(place, text=parse_query(words), vector=query, counts=False))
        documents = await store.get_documents(place, [each.id for each in found.candidates[:10]])
        after = get_private_bytes()
    print(len(found.candidates), len(documents), after - before, after)

anyio.run(answer, *sys.argv[1:])
"""

PEER = """
import sqlite3, sys
import numpy as np

path, words, vector = sys.argv[1:]
connection = sqlite3.connect(path)
matched = connection.execute(
    "SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY bm25(notes, 2.0, 1.0) LIMIT 100", (words,)
).fetchall()
cosines = np.load(path + ".npy", mmap_mode="r") @ np.load(vector)
near = np.argpartition(-cosines, 100)[:100]
scores = {}
for found in ([row for row, in matched], near[np.argsort(-cosines[near])].tolist()):
    for rank, row in enumerate(found):
        scores[row] = scores.get(row, 0.0) + 1 / (60 + rank)
best = sorted(scores, key=scores.get, reverse=True)[:10]
documents = [connection.execute("SELECT * FROM notes WHERE rowid = ?", (row,)).fetchone() for row in best]
print(len(scores), len(documents), 0, 0)
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One process: CPU seconds, bytes that opening and answering added, and bytes in all."""

    seconds: float
    added: int
    private: int


async def fill(folder: Path, part: Part, question: Question) -> float:
    """Write the store and what stands beside it; return the CPU seconds of the first search, which makes the index."""
    async with open_store(folder / "store.sqlite3") as store:
        await load(store, [part])
    start = process_time()
    async with open_store(folder / "store.sqlite3") as store:
        query = VectorQuery(question.vector, MODEL.name)
        await store.find(FindRequest(part.place, text=parse_query(question.text), vector=query, counts=False))
    took = process_time() - start
    with closing(sqlite3.connect(folder / "peer")) as connection:
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5(title, body, tokenize = 'porter')")
        rows = ((number, each.title, each.body) for number, each in enumerate(part.documents))
        connection.executemany("INSERT INTO notes (rowid, title, body) VALUES (?, ?, ?)", rows)
        connection.commit()
    np.save(folder / "peer.npy", part.vectors)
    return took


def run(code: str, *arguments: str) -> Measured:
    """Run a process to its end."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, env=environment)
    with process:
        output = process.stdout.read() if process.stdout else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"The process ended with {process.returncode}.")
    *_, added, private = map(int, output.split())
    return Measured(usage.ru_utime + usage.ru_stime, added, private)


def measure(documents: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return the figures."""
    world = World(documents)
    part = make_part(world, "local", documents)
    question = make_questions(world, "natural")[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        building = anyio.run(fill, folder, part, question)
        np.save(folder / "question.npy", question.vector)
        del part
        ours, peers = list[Measured](), list[Measured]()
        words = " OR ".join(question.text.split())
        for _ in range(rounds):
            vector = str(folder / "question.npy")
            ours.append(run(OURS, str(folder / "store.sqlite3"), "local", question.text, vector))
            peers.append(run(PEER, str(folder / "peer"), words, vector))
    seconds, beside = (median(each.seconds for each in held) for held in (ours, peers))
    return {
        "documents": documents,
        "index_cpu_seconds": round(building, 2),
        "cpu_seconds": round(seconds, 3),
        "peer_cpu_seconds": round(beside, 3),
        "ratio": round(seconds / beside, 2),
        "private_mb": round(median(each.private for each in ours) / 1e6, 1),
        "added_private_mb": round(median(each.added for each in ours) / 1e6, 1),
    }


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=DOCUMENTS, metavar="N")
    figures = measure(parser.parse_args().documents)
    print(json.dumps(figures, indent=2))
    return int(figures["ratio"] > MOST_TIMES or figures["private_mb"] > MOST_PRIVATE_MB)


if __name__ == "__main__":
    sys.exit(main())
