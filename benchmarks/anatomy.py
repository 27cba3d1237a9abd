"""Where the time of a search and of a store goes, stage by stage, as bars.

    python -m benchmarks.anatomy [--notes 2000] [--write]

Each stage is called on its own, in turns with the others, on one store of invented notes with the hashing embedder; the
best of `ROUNDS` is shown, which other work on the machine moves least. `--write` puts the bars into
`docs/explanation/speed.md`.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

from benchmarks.writes import BODY, SCOPES, BareFile
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.embedders.local import PASSAGE_PIECES, QUERY_PIECES
from refdesk.model import FindRequest, Metadata, MetadataKey, Principal
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.writes import prepare_documents
from refdesk.toolsets.knowledge import models
from refdesk.toolsets.knowledge.models import SearchInput, StoreInput
from refdesk.toolsets.knowledge.operations import search_knowledge, store_knowledge

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "speed.md"
START, END = "<!-- measured -->\n", "<!-- /measured -->\n"
ROUNDS = 40
WIDTH = 40
WORDS = 4000
STORE = "refdesk.sqlite3"
QUESTION = "card payments fail at the bank gateway"

Work = Callable[[], Awaitable[Any]]


@dataclass(slots=True)
class Stages:
    """What is timed, by name, and how long it took each time, in milliseconds."""

    works: dict[str, Work]
    times: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    async def measure(self) -> None:
        """Time each in turns with the others, after a round that does not count."""
        for number in range(ROUNDS + 1):
            for name, work in self.works.items():
                start = perf_counter()
                await work()
                if number:
                    self.times.setdefault(name, []).append((perf_counter() - start) * 1000)

    def to_lines(self) -> list[str]:
        """Return a bar for each, the longest `WIDTH` signs."""
        best = {name: min(times) for name, times in self.times.items()}
        longest = max(best.values())
        return [f"{name:44}{ms:8.2f} ms  {'█' * max(1, round(ms / longest * WIDTH))}" for name, ms in best.items()]


def make_notes(count: int) -> list[StoreInput]:
    """Return invented notes of words that are drawn as unevenly as those of a language."""
    chance = random.Random(7)
    words = ["payments", "gateway", "bank", "card", "fail", *(f"word{number}" for number in range(WORDS))]
    edges = [*accumulate(1 / (rank + 10) for rank in range(len(words)))]
    texts = (chance.choices(words, cum_weights=edges, k=128) for _ in range(count))
    return [StoreInput.model_validate({"title": " ".join(text[:8]), "body": " ".join(text)}) for text in texts]


def read_model_stages() -> dict[str, Work]:
    """Return a question and a passage embedded by the local model, in int8 and as in its file."""
    from refdesk.embedders.local.model import SentenceEncoder

    stages: dict[str, Work] = {}
    for name, encoder in (("int8", SentenceEncoder()), ("float32", SentenceEncoder(in_int8=False))):
        stages[f"a question, {name}"] = as_work(lambda encoder=encoder: encoder.encode(QUESTION, QUERY_PIECES))
        stages[f"a passage of 256 pieces, {name}"] = as_work(
            lambda encoder=encoder: encoder.encode(BODY * 2, PASSAGE_PIECES)
        )
    return stages


def as_work(function: Callable[[], Any]) -> Work:
    """Return a plain function as one that can be awaited."""

    async def work() -> None:
        function()

    return work


def list_store_stages(context: Context, store: Store, folder: Path) -> dict[str, Work]:
    """Return storing a note, whole and in parts, beside the bare commit of the same rows."""
    note = {"title": "Card payments fail", "body": BODY, "tags": ["payments", "night"]}
    entry = StoreInput.model_validate(note)
    document = models.to_document(entry, id="0", org="acme", author="agent", now=context.knowledge_base.clock.now())
    bare = BareFile(folder / "bare.sqlite3", folder / STORE)
    return {
        "a store, whole": lambda: store_knowledge(context, StoreInput.model_validate(note)),
        "of it: check the arguments": as_work(lambda: StoreInput.model_validate(note)),
        "of it: analyse and encode the note": as_work(lambda: prepare_documents([document])),
        "of it: a durable transaction of one record": lambda: keep_one(store),
        "beside it: a bare commit of the same rows": as_work(lambda: bare.commit(1)),
    }


async def keep_one(store: Store) -> None:
    """Commit the least that there is to commit."""
    async with store.transaction() as transaction:
        await transaction.put_metadata([Metadata(MetadataKey("acme", "benchmark", "one"), {"n": 1})])


def list_search_stages(context: Context, store: Store) -> dict[str, Work]:
    """Return a search by words, whole and in parts."""
    collection = models.get_collection("acme")
    request = FindRequest(collection, text=parse_query(QUESTION))
    found: list[str] = []

    async def find() -> None:
        found[:] = [each.id for each in (await store.find(request)).candidates[:10]]

    return {
        "a search, whole": lambda: search_knowledge(context, SearchInput.model_validate({"query": QUESTION})),
        "of it: analyse the question": as_work(lambda: parse_query(QUESTION)),
        "of it: find the candidates": find,
        "of it: read the ten that are shown": lambda: store.get_documents(collection, found),
    }


async def measure(count: int) -> list[str]:
    """Return all bars."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        async with open_store(Path(name) / STORE) as store:
            base = KnowledgeBase(store, Semantics(store, HashingEmbedder()))
            context = Context(Principal("acme", "agent", SCOPES | {"knowledge:read"}), base)
            for note in make_notes(count):
                await store_knowledge(context, note)
            for works in (list_store_stages(context, store, Path(name)), list_search_stages(context, store)):
                lines += [*(await draw(works)), ""]
    return [*lines, *(await draw(read_model_stages()))]


async def draw(works: dict[str, Work]) -> list[str]:
    """Return the bars of these stages."""
    stages = Stages(works)
    await stages.measure()
    return stages.to_lines()


def write(lines: Sequence[str]) -> None:
    """Put the bars into the page, in place of those before."""
    before, _, rest = PAGE.read_text().partition(START)
    after = rest.partition(END)[2]
    PAGE.write_text(before + START + "```text\n" + "\n".join(lines) + "\n```\n" + END + after)


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=2000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = anyio.run(measure, options.notes)
    print("\n".join(lines))
    if options.write:
        write(lines)


if __name__ == "__main__":
    main()
