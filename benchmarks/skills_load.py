"""What learning costs, and whether a new skill is made in time beside everybody else.

    python -m benchmarks.skills_load [--conversations 1000] [--skills 10000] [--clients 32] [--windows 3] [--count 40]

First real conversations (a folder `star/` of JSON Lines below the folder of real records) are learned at once, as
`refdesk skills learn` does, and one after another by create and update, as agents do; each twice, the second time with
every embedding remembered, so that the CPU seconds printed are those beside embedding.

Then a server with many skills is asked over REST. One client creates skills, each of another conversation, alone and
then beside all others, who update skills of their own, search, read and report at full speed; the windows alternate, so
that what else the machine does meanwhile falls on both. Printed is the 95th percentile of a creation beside the others
over that of one alone.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from random import Random
from time import perf_counter, process_time
from typing import Any

import anyio

from benchmarks.fairness import percentile
from benchmarks.quality import get_data_folder
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.local import LocalEmbedder
from refdesk.language_models.rules import RulesModel
from refdesk.model import Principal, Vector
from refdesk.playbooks import Playbook, SkillDraft, Step
from refdesk.protocols import Embedder
from refdesk.stores.memory import MemoryStore
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.skills import batches, records
from refdesk.toolsets.skills.learning import Learner
from refdesk.toolsets.skills.queries import get_queries
from refdesk.toolsets.skills.transcript_files import SourceTranscript

ORG, AGENT = "local", "library"
MOST_SECONDS = 60.0
"""Of a processor, for 1,000 conversations beside embedding."""

MOST_RATIO = 3.0
"""Of a creation's 95th percentile beside the others to that alone."""

SERVE = ("serve", "--no-auth", "--toolset", "skills", "--port", "0")
BATCH = 500
UPDATERS, REPORTERS, READERS = 8, 4, 4
"""Of the other clients; the rest of them search."""

THINGS = ("printer", "router", "invoice", "password", "parcel", "heating", "contract", "camera", "backup", "licence")
FAULTS = ("is late", "does not start", "shows a wrong name", "was charged twice", "is locked", "lost its settings")
PLACES = ("in the office", "at home", "since the update", "after the move", "on the phone", "abroad", "every morning")


@dataclass(slots=True)
class RememberingEmbedder:
    """An embedder that embeds each text once."""

    inner: Embedder
    known: dict[str, Vector] = field(default_factory=dict[str, "Vector"])

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of the texts."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.known]
        if missing:
            self.known.update(zip(missing, await self.inner.embed_passages(missing), strict=True))
        return [self.known[text] for text in texts]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the embedder has
        return getattr(self.inner, name)


def read_conversations() -> list[tuple[str, str]]:
    """Return real conversations, each with its task, in an order drawn by a seed."""
    folder = get_data_folder().parent / "star"
    if not folder.is_dir():
        sys.exit(f"No conversations in {folder}: set REFDESK_TEST_DATA to the folder of real records.")
    drawn = [
        (path.stem, line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()
    ]
    Random(1).shuffle(drawn)
    return drawn


def make_desk(embedder: Any) -> tuple[Learner, Context]:  # noqa: ANN401 - an embedder, or what stands for one
    """Return an empty desk that learns."""
    store = MemoryStore()
    base = KnowledgeBase(store, Semantics(store, embedder))
    return Learner(RulesModel()), Context(Principal(ORG, AGENT, frozenset()), base)


async def learn_at_once(embedder: RememberingEmbedder, drawn: Sequence[tuple[str, str]]) -> int:
    """Learn the conversations as the command does, and return how many skills they became."""
    learner, context = make_desk(embedder)
    transcripts = [SourceTranscript(text, str(number)) for number, (_, text) in enumerate(drawn)]
    plan = await batches.make_plan(learner, context, transcripts, confirmed=False)
    await batches.learn_plan(learner, context, plan, confirmed=False, advance=lambda: None)
    return len(await get_queries(context).list_skills())


async def learn_in_turn(embedder: RememberingEmbedder, drawn: Sequence[tuple[str, str]]) -> int:
    """Learn the conversations one after another, those of a task into one skill; return how many there are."""
    learner, context = make_desk(embedder)
    skills = dict[str, str]()
    for task, text in drawn:
        if task in skills:
            await learner.update(context, skills[task], text, "")
        else:
            skills[task] = (await learner.create(context, text, False, {})).skill.skill_id
    return len(await get_queries(context).list_skills())


async def measure_learning(count: int) -> bool:
    """Print what learning so many conversations takes, and return whether it is below the limit."""
    drawn, is_met = read_conversations()[:count], True
    async with LocalEmbedder() as inner:
        await inner.load()
        embedder = RememberingEmbedder(inner)
        for name, learn in (("at once", learn_at_once), ("one after another", learn_in_turn)):
            start = process_time()
            await learn(embedder, drawn)
            whole, start = process_time() - start, process_time()
            skills = await learn(embedder, drawn)
            spent = process_time() - start
            is_met &= spent <= MOST_SECONDS * count / 1000
            print(
                f"{count} conversations learned {name}: {skills} skills, {spent:.1f} CPU s beside embedding "
                f"(limit {MOST_SECONDS * count / 1000:g}), {whole:.1f} with it",
                flush=True,
            )
    return is_met


def invent_draft(number: int) -> SkillDraft:
    """Return one of many skills, no two of them alike."""
    thing, fault = THINGS[number % 10], FAULTS[number // 10 % 6]
    where = PLACES[number // 60 % 7]
    problem = f"My {thing} {fault} {where}, model {number} of series {number // 420}"
    steps = tuple(
        Step(f"Check the {part} of the {thing} {number}") for part in ("number", "state", "settings", "owner")
    )
    return SkillDraft(
        f"The {thing} {fault} {where} ({number})", problem, Playbook("Solved.", steps=steps), (where,), (thing,)
    )


async def fill(path: Path, count: int) -> None:
    """Keep so many invented skills with their vectors."""
    async with LocalEmbedder() as embedder, open_store(path) as store:
        await embedder.load()
        base = KnowledgeBase(store, Semantics(store, embedder))
        queries = get_queries(Context(Principal(ORG, AGENT, frozenset()), base))
        for start in range(0, count, BATCH):
            drafts = [invent_draft(number) for number in range(start, min(start + BATCH, count))]
            vectors = await embedder.embed_passages([draft.problem for draft in drafts])
            for draft, vector in zip(drafts, vectors, strict=True):
                id, now = base.identifiers.new(), base.clock.now()
                skill = records.make_skill(draft, {}, id=id, author=AGENT, model="invented", now=now)
                await queries.create_skill(replace(skill, embedding=vector.tolist()))


@dataclass(slots=True)
class Client:
    """Somebody who asks one thing after another over a connection that is kept.

    Attributes:
        took: The seconds of each answer.
        refused: How many were no good answers.
    """

    address: str
    asked: Iterator[tuple[str, str, object]]
    took: list[float] = field(default_factory=list[float])
    refused: int = 0

    def ask(self, connection: http.client.HTTPConnection) -> Any:  # noqa: ANN401 - JSON
        """Ask the next thing, and return the answer."""
        method, path, value = next(self.asked)
        start = perf_counter()
        connection.request(method, path, json.dumps(value).encode(), {"content-type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        self.took.append(perf_counter() - start)
        self.refused += answer.status != http.client.OK
        return json.loads(body)

    def work(self, until: threading.Event) -> None:
        """Ask until the event."""
        connection = http.client.HTTPConnection(self.address, timeout=120)
        while not until.is_set():
            self.ask(connection)
        connection.close()


def make_others(address: str, count: int, conversations: Iterator[str]) -> list[Client]:
    """Return the clients beside the one who creates; each updater has a skill of its own."""
    questions = (f"my {thing} {fault} {where}" for thing, fault, where in cycle(_cross()))
    connection = http.client.HTTPConnection(address, timeout=120)
    [*skills] = [_create(address, connection, conversations) for _ in range(UPDATERS)]
    connection.close()
    lock = threading.Lock()

    def take(source: Iterator[str]) -> str:
        with lock:
            return next(source)

    def update(id: str) -> Iterator[tuple[str, str, object]]:
        while True:
            yield "POST", "/update", {"skill_id": id, "conversation": take(conversations)}

    def report(id: str) -> Iterator[tuple[str, str, object]]:
        while True:
            yield "POST", "/outcome", {"skill_id": id, "outcome": "likely_resolved"}

    def read(id: str) -> Iterator[tuple[str, str, object]]:
        while True:
            yield "GET", f"/skills/{id}", None

    def search() -> Iterator[tuple[str, str, object]]:
        while True:
            yield "POST", "/search", {"query": take(questions)}

    made = [update(id) for id in skills] + [report(skills[n % UPDATERS]) for n in range(REPORTERS)]
    made += [read(skills[n % UPDATERS]) for n in range(READERS)]
    made += [search() for _ in range(count - len(made))]
    return [Client(address, asked) for asked in made[:count]]


def _cross() -> list[tuple[str, str, str]]:
    return [(thing, fault, where) for where in PLACES for thing in THINGS for fault in FAULTS]


def _create(address: str, connection: http.client.HTTPConnection, conversations: Iterator[str]) -> str:
    client = Client(address, _list_creations(conversations))
    return str(client.ask(connection)["skill_id"])


def _list_creations(conversations: Iterator[str]) -> Iterator[tuple[str, str, object]]:
    for text in conversations:
        yield "POST", "/create", {"conversation": text}


@contextmanager
def running_server(folder: Path) -> Generator[str]:
    """Give the address of a server over the folder's store."""
    environment = {**os.environ, "REFDESK_HOME": str(folder), "REFDESK_STORE": ""}
    command = [sys.executable, "-m", "refdesk", *SERVE]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        log = server.stderr
        try:
            url = next(entry["url"] for entry in map(json.loads, log) if "url" in entry)
            threading.Thread(target=lambda: [None for _ in log], daemon=True).start()
            yield url.removeprefix("http://")
        finally:
            server.terminate()


@contextmanager
def _meanwhile(clients: Sequence[Client]) -> Generator[None]:
    until = threading.Event()
    threads = [threading.Thread(target=client.work, args=(until,)) for client in clients]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        until.set()
        for thread in threads:
            thread.join()


def measure_creations(folder: Path, skills: int, clients: int, windows: int, count: int) -> bool:
    """Print how long a creation takes alone and beside the others; return whether the ratio is below the limit."""
    anyio.run(fill, folder / "refdesk.sqlite3", skills)
    alone, beside = list[float](), list[float]()
    conversations = iter([text for _, text in read_conversations()])
    with running_server(folder) as address:
        others = make_others(address, clients - 1, conversations)
        creator = Client(address, _list_creations(conversations))
        connection = http.client.HTTPConnection(address, timeout=120)
        for _ in range(windows):
            alone += _time_creations(creator, connection, count)
            with _meanwhile(others):
                beside += _time_creations(creator, connection, count)
        connection.close()
    answers = sum(len(client.took) for client in others)
    ratio, median = (percentile(beside, share) / percentile(alone, share) for share in (0.95, 0.5))
    refused = creator.refused + sum(client.refused for client in others)
    print(
        f"{skills} skills, {clients} clients: create p95 {ratio:.2f} x alone (limit {MOST_RATIO:g}), "
        f"p50 {median:.2f} x\n"
        f"  alone  {_describe(alone)}\n"
        f"  beside {_describe(beside)}, {answers} answers to the others, {refused} refused",
        flush=True,
    )
    return ratio <= MOST_RATIO


def _describe(seconds: Sequence[float]) -> str:
    return f"p50 {percentile([*seconds], 0.5) * 1000:.0f} ms, p95 {percentile([*seconds], 0.95) * 1000:.0f} ms"


def _time_creations(creator: Client, connection: http.client.HTTPConnection, count: int) -> list[float]:
    first = len(creator.took)
    for _ in range(count):
        creator.ask(connection)
    return creator.took[first:]


def main() -> None:
    """Measure; exit status 1 where a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=1000, help="to learn; 0 leaves this out")
    parser.add_argument("--skills", type=int, default=10_000, help="in the store; 0 leaves this out")
    parser.add_argument("--clients", type=int, default=32, help="the one who creates among them")
    parser.add_argument("--windows", type=int, default=3, help="how often the others come and go")
    parser.add_argument("--count", type=int, default=40, help="creations in each window")
    chosen = parser.parse_args()
    is_met = True
    if chosen.conversations:
        is_met &= anyio.run(measure_learning, chosen.conversations)
    if chosen.skills:
        with tempfile.TemporaryDirectory() as folder:
            is_met &= measure_creations(Path(folder), chosen.skills, chosen.clients, chosen.windows, chosen.count)
    sys.exit(not is_met)


if __name__ == "__main__":
    main()
