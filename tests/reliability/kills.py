"""Clients that write to a real server which is killed and started again, and remember what it acknowledged.

A call without an answer may have happened or not. With a token it is repeated until it is answered, and must then have
happened once; without one it may have happened at most once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import anyio
import httpx2

from refdesk.core.background.embedding import Indexer
from refdesk.core.background.quiet import QUIET_SECONDS
from refdesk.core.clock import SystemClock
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing import quotas
from refdesk.core.writing.quotas import Quota
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.model import Collection
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from refdesk.toolsets.knowledge import TOOLSET_NAME
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from tests.reliability.chains import find_broken_chains
from tests.reliability.lives import Life, Nursery, nursing

ORG = "local"
COLLECTION = Collection(ORG, TOOLSET_NAME)
CLIENTS = 4
SERVE = ("serve", "--no-auth", "--toolset", "knowledge", "--port", "0")
READY_SECONDS = 120.0
READERS = 8
MOST_SEARCHED = 2


@dataclass(frozen=True)
class Call:
    """A call as a client makes it. `word` is in no other entry's text."""

    path: str
    body: dict[str, Any]
    word: str = ""

    @property
    def is_repeatable(self) -> bool:
        return "newId" in self.body or "clientToken" in self.body


@dataclass
class Ledger:
    """What the clients know."""

    random: Random
    stored: dict[str, Call] = field(default_factory=dict[str, Call])
    superseded: dict[str, str] = field(default_factory=dict[str, str])
    unanswered: list[Call] = field(default_factory=list[Call])
    own: list[list[str]] = field(default_factory=lambda: [[] for _ in range(CLIENTS)])
    made: int = 0
    faults: set[str] = field(default_factory=set[str])

    def next_call(self, own: list[str]) -> Call:
        """Return what a client does next: mostly store, with or without a token, else supersede one of its own."""
        if len(own) > 1 and self.random.random() < 0.2:
            return Call(f"/knowledge/{own.pop(0)}/supersede", {"newId": own[-1]})
        self.made += 1
        word = f"zq{self.made}x"
        body = {"title": f"Note {word}", "body": f"What {word} is about. " * self.random.choice((1, 1, 40))}
        token = str(UUID(int=self.random.getrandbits(128), version=4))
        return Call("/knowledge", body | ({"clientToken": token} if self.random.random() < 0.7 else {}), word)

    def note(self, call: Call, answer: dict[str, Any], own: list[str]) -> None:
        if "newId" in call.body:
            self.superseded[answer["oldId"]] = call.body["newId"]
        else:
            self.stored[answer["id"]] = call
            own.append(answer["id"])


def connect(url: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=url, trust_env=False, verify=False, timeout=READY_SECONDS)


async def make(client: httpx2.AsyncClient, call: Call, ledger: Ledger, own: list[str]) -> bool:
    """Make a call and note the answer; return whether there was one."""
    try:
        answer = await client.post(call.path, json=call.body)
    except httpx2.TransportError:
        ledger.unanswered.append(call)
        return False
    if answer.status_code == 200:
        ledger.note(call, answer.json(), own)
    else:
        ledger.faults.add(f"{call.path.split('/')[-1]} answered {answer.status_code}: {answer.text}")
    return True


async def load_until_killed(url: str, ledger: Ledger, kill: Callable[[], None], after: int | None) -> None:
    """Write with several clients at once until the server is gone; have it killed after so many answers."""
    answers = 0

    async def write(own: list[str]) -> None:
        nonlocal answers
        async with connect(url) as client:
            while await make(client, ledger.next_call(own), ledger, own):
                answers += 1
                if answers == after:
                    kill()

    async with anyio.create_task_group() as group:
        for own in ledger.own:
            group.start_soon(write, own)


async def repeat_unanswered(client: httpx2.AsyncClient, ledger: Ledger) -> None:
    waiting, ledger.unanswered = ledger.unanswered, []
    for call in waiting:
        if call.is_repeatable:
            await make(client, call, ledger, ledger.own[0])


async def check_answers(client: httpx2.AsyncClient, ledger: Ledger, ids: Sequence[str]) -> None:
    """Read and search what was acknowledged, and wait until it is embedded."""
    async with anyio.create_task_group() as group:
        for first in range(READERS):
            group.start_soon(check_each, client, ledger, ids[first::READERS])


async def check_each(client: httpx2.AsyncClient, ledger: Ledger, ids: Sequence[str]) -> None:
    for id in ids:
        ledger.faults |= await find_fault(client, id, ledger.stored[id])
    for id in ids[-MOST_SEARCHED:]:
        asked = {"query": ledger.stored[id].word, "includeSuperseded": True, "limit": 50}
        answer = await client.post("/knowledge/search", json=asked)
        assert answer.status_code == 200, answer.text
        found = answer.json()["results"]
        if id not in [result["id"] for result in found]:
            ledger.faults.add("not found")


async def find_fault(client: httpx2.AsyncClient, id: str, call: Call) -> set[str]:
    """Return what is wrong with an entry, once it is embedded or the patience is over."""
    with anyio.move_on_after(READY_SECONDS):
        while True:
            answer = await client.get(f"/knowledge/{id}")
            if answer.status_code != 200 or answer.json()["title"] != call.body["title"]:
                return {"lost"}
            if answer.json()["embeddingStatus"] == "ready":
                return set()
            # Who asks without a pause keeps a server from what it does when nobody waits for an answer.
            await anyio.sleep(2 * QUIET_SECONDS)
    return {"not embedded"}


async def find_faults_at_rest(path: Path, ledger: Ledger) -> None:
    """Look at the whole file once nobody uses it."""
    connection = Connection(path, 10_000)
    if connection.execute("PRAGMA integrity_check") != [("ok",)]:
        ledger.faults.add("corrupt")
    connection.close()
    async with open_store(path) as store:
        ids = sorted(await store.get_digests(COLLECTION))
        documents = {each.id: each for each in await store.get_documents(COLLECTION, ids) if each is not None}
        titles = Counter(document.title for document in documents.values())
        usage = await quotas.read_usage(store, Quota(QUOTA_NAME), ORG, "http")
        indexer = Indexer(store, Semantics(store, HashingEmbedder()), SystemClock())
        pending = await indexer.count_pending()
        is_so = {
            "lost": not ledger.stored.keys() <= documents.keys(),
            "doubled": any(count > 1 for count in titles.values()),
            "miscounted": usage.org != len(documents),
            "supersession lost": any(
                old in documents and documents[old].data.get("superseded_by") != new
                for old, new in ledger.superseded.items()
            ),
            "chain broken": bool(await find_broken_chains(store, ORG)),
            "blocked": await indexer.run_once() != pending,
        }
    ledger.faults |= {name for name, is_true in is_so.items() if is_true}


@dataclass
class Trials:
    """Kills one server after another on one home, until something is wrong or all is done.

    Every other one dies in place of some write or sync to the disk, the others after some answer. How many of those a
    server makes before it is under load depends on the machine: one that dies earlier gives the next of its kind twice
    as many.

    Attributes:
        arguments: The command's.
        dies_at_disk: Whether it may also die at the disk.
        most_answers: It dies before or at this one.
    """

    home: Path
    seed: int
    arguments: Sequence[str] = SERVE
    dies_at_disk: bool = True
    most_answers: int = 80
    variables: dict[str, str] = field(default_factory=dict[str, str])
    kills: int = 0
    kills_under_load: int = 0
    too_few_calls: int = 0

    async def run(self, kills: int) -> set[str]:
        """Return what was wrong after so many kills."""
        ledger, done = Ledger(Random(self.seed)), set[str]()
        with nursing(self.home, **self.variables) as nursery:
            while self.kills < kills and not ledger.faults:
                await self._live(nursery, ledger, done)
                self.kills += 1
            if not ledger.faults:
                with nursery.start(*self.arguments) as life:
                    assert await self._check(life, ledger, done) is not None
        if not ledger.faults:
            await find_faults_at_rest(self.home / "refdesk.sqlite3", ledger)
        return ledger.faults

    async def _live(self, nursery: Nursery, ledger: Ledger, done: set[str]) -> None:
        """Check what the last life left, and end this one under load. One that dies at the disk may not get so far."""
        calls = ledger.random.randrange(1, 600) if self.dies_at_disk and self.kills % 2 else None
        if calls is not None:
            calls = max(calls, 2 * self.too_few_calls)
            self.too_few_calls = calls
        with nursery.start(*self.arguments, calls=calls) as life:
            url = await self._check(life, ledger, done)
            assert url is not None or calls is not None
            if url is not None and not ledger.faults:
                after = ledger.random.randint(1, self.most_answers) if calls is None else None
                await load_until_killed(url, ledger, life.kill, after)
                self.kills_under_load += 1
                self.too_few_calls = 0 if calls is not None else self.too_few_calls

    async def _check(self, life: Life, ledger: Ledger, done: set[str]) -> str | None:
        """Return where it listens; `None` when it died before it had answered everything."""
        said = await anyio.to_thread.run_sync(life.read_log, "listening")
        return said["url"] if said and await self._ask(said["url"], ledger, done) else None

    async def _ask(self, url: str, ledger: Ledger, done: set[str]) -> bool:
        """Return whether it lived until it had answered everything."""
        is_alive = False
        try:
            async with connect(url) as client:
                await repeat_unanswered(client, ledger)
                new = [id for id in ledger.stored if id not in done]
                await check_answers(client, ledger, new)
                done.update(new)
                is_alive = True
        except* httpx2.TransportError:
            assert not is_alive
        return is_alive
