"""A store that is moved under load while the mover, and the servers on it, are killed again and again.

Where the stores are servers themselves, these are killed, too.

Clients write through two servers, and read through the other one what was just acknowledged. A write without an answer
is repeated with its token until there is one. Once the move is through, the new store alone is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from uuid import UUID

import anyio
import anyio.to_thread
import httpx2

from refdesk.core.keeping.moves import read_move
from refdesk.model import Collection
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from tests.reliability.kills import ORG, SERVE, connect
from tests.reliability.lives import KILLED, Life, Nursery, nursing

COLLECTION = Collection(ORG, "knowledge")
WRITERS = 3
AFTER_THE_MOVE = 60
"""Writes that are acknowledged after the move, so that all servers have noticed it."""
MOST_BETWEEN = 120
MOST_CALLS = 900
"""The mover is killed after at most so many writes of the clients, or of its own to the disk."""


@dataclass
class Load:
    """What the clients do and know.

    Attributes:
        urls: Of the servers, by place.
        stored: The titles of what was acknowledged, by id.
        refused: How many writes were answered, and not by having stored anything.
        is_patient: Whether reads are repeated, too, while the store is gone.
        answers: Counts what the mover's end waits for: a write that was acknowledged, or a fault, which ends all.
    """

    random: Random
    is_patient: bool = False
    urls: dict[int, str] = field(default_factory=dict[int, str])
    stored: dict[str, str] = field(default_factory=dict[str, str])
    faults: set[str] = field(default_factory=set[str])
    refused: int = 0
    is_over: bool = False
    answers: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(0))

    def blame(self, fault: str) -> None:
        """Note what is wrong; the writers end, and who waits for them goes on."""
        self.faults.add(fault)
        self.answers.release()

    async def wait(self, answers: int) -> None:
        """Return after so many more writes were acknowledged, or when anything is wrong."""
        for _ in range(answers):
            if self.faults:
                return
            await self.answers.acquire()

    async def write(self, writer: int) -> None:
        """Store one note after the other, and read each."""
        number = 0
        while not self.is_over and not self.faults:
            number += 1
            title = f"Note {writer}-{number}"
            token = str(UUID(int=self.random.getrandbits(128), version=4))
            body = {"title": title, "body": f"What {title} is about.", "clientToken": token}
            post = partial(_post, body)
            place, answer = await self._ask(post, self.random.choice((0, 1)))
            if self.faults:
                break
            self.stored[answer.json()["id"]] = title
            self.answers.release()
            await self._read(answer.json()["id"], title, 1 - place)

    async def _read(self, id: str, title: str, place: int) -> None:
        _, answer = await self._ask(partial(_get, id), place, is_read=True)
        if answer.status_code != 200 or answer.json()["title"] != title:
            self.blame(f"not read: {answer.status_code}")

    async def _ask(
        self, ask: Callable[[httpx2.AsyncClient], Awaitable[httpx2.Response]], place: int, *, is_read: bool = False
    ) -> tuple[int, httpx2.Response]:
        """Return which server answered and what; one that is killed is asked again, once it has been started anew."""
        while True:
            try:
                async with connect(self.urls[place]) as client:
                    answer = await ask(client)
            except httpx2.TransportError:
                place = 1 - place
                continue
            if answer.status_code == 200 or (is_read and not self.is_patient):
                return place, answer
            self.refused += not is_read
            if answer.json()["error"]["code"] != "STORE_UNAVAILABLE":
                self.blame(f"answered {answer.status_code}: {answer.text}")
                return place, answer


async def _post(body: dict[str, str], client: httpx2.AsyncClient) -> httpx2.Response:
    return await client.post("/knowledge", json=body)


async def _get(id: str, client: httpx2.AsyncClient) -> httpx2.Response:
    return await client.get(f"/knowledge/{id}")


@dataclass(frozen=True)
class Place:
    """A store that is moved from or to.

    Attributes:
        open: Opens it, to look at it in the end.
        is_file: Whether the mover writes to it itself, so that it can be killed at the disk.
    """

    url: str
    open: Callable[[], AbstractAsyncContextManager[Store]]
    is_file: bool = False


@dataclass(frozen=True)
class Strike:
    """What happens in place of the mover's being killed: it ends as it likes.

    Attributes:
        is_early: Whether it may only come before the switch.
    """

    strike: Callable[[], None]
    mend: Callable[[], None]
    is_early: bool = False


@dataclass
class Trial:
    """One move with so many kills.

    Attributes:
        command: What moves, before the addresses.
        strikes: One of these, by chance, unless the mover is killed; without any the mover always is.
        spares_mover: Whether it is never killed where there are strikes.
    """

    home: Path
    seed: int
    source: Place
    target: Place
    command: tuple[str, ...] = ("migrate", "--serving")
    strikes: Sequence[Strike] = ()
    spares_mover: bool = False
    kills: int = 0
    server_kills: int = 0
    writes: int = 0
    refused: int = 0

    async def run(self, kills: int) -> set[str]:
        """Return what was wrong after a move whose mover was killed at most so often."""
        load = Load(Random(self.seed), is_patient=any(not each.is_early for each in self.strikes))
        with ExitStack() as stack:
            # A nursery has one child at a time.
            homes = [self.home / name for name in ("server-0", "server-1", "mover")]
            *nurseries, nursery = [stack.enter_context(nursing(home, REFDESK_STORE=self.source.url)) for home in homes]
            servers = [await self._serve(nurseries[place], stack, load, place) for place in (0, 1)]
            async with anyio.create_task_group() as group:
                for writer in range(WRITERS):
                    group.start_soon(load.write, writer)
                await load.wait(MOST_BETWEEN // 4)
                while self.kills < kills and await self._move(nursery, load, is_killed=True):
                    self.kills += 1
                    if self.kills % 3 == 0:
                        place = load.random.choice((0, 1))
                        servers[place].kill()
                        await anyio.to_thread.run_sync(servers[place].wait)
                        servers[place] = await self._serve(nurseries[place], stack, load, place)
                        self.server_kills += 1
                await self._move(nursery, load, is_killed=False)
                await load.wait(AFTER_THE_MOVE)
                load.is_over = True
        await self._look(load)
        self.writes, self.refused = len(load.stored), load.refused
        return load.faults

    async def _serve(self, nursery: Nursery, stack: ExitStack, load: Load, place: int) -> Life:
        life = stack.enter_context(nursery.start(*SERVE))
        said = await anyio.to_thread.run_sync(life.read_log, "listening")
        assert said is not None
        load.urls[place] = said["url"]
        return life

    async def _move(self, nursery: Nursery, load: Load, *, is_killed: bool) -> bool:
        """Return whether the mover was killed before it was through."""
        strike = self._choose_strike(load) if is_killed else None
        at_disk = is_killed and strike is None and self.source.is_file and load.random.random() < 0.5
        calls = load.random.randint(1, MOST_CALLS) if at_disk else None
        addresses = ("--from", self.source.url, "--to", self.target.url)
        with nursery.start(*self.command, *addresses, calls=calls) as life:
            if is_killed and not at_disk:
                await load.wait(load.random.randint(1, MOST_BETWEEN // (4 if strike and strike.is_early else 1)))
                await anyio.to_thread.run_sync(strike.strike if strike else life.kill)
            status = await anyio.to_thread.run_sync(life.wait)
        if strike is not None:
            await anyio.to_thread.run_sync(strike.mend)
        elif status not in (0, KILLED):
            load.blame(f"the mover ended with {status}")
        return status != 0

    def _choose_strike(self, load: Load) -> Strike | None:
        return load.random.choice([*self.strikes, *([] if self.spares_mover else [None])]) if self.strikes else None

    async def _look(self, load: Load) -> None:
        async with self.source.open() as old, self.target.open() as new:
            move = await read_move(old)
            ids = sorted(await new.get_digests(COLLECTION))
            documents = [each for each in await new.get_documents(COLLECTION, ids) if each is not None]
            titles = Counter(document.title for document in documents)
            log = await new.get_last_audit(ORG)
            is_so = {
                "not switched": move is None or move.stage != "switched",
                "lost": not load.stored.items() <= {each.id: each.title for each in documents}.items(),
                "doubled": any(count > 1 for count in titles.values()),
                "the log is short": log is None or log.number < len(load.stored),
                "nothing after the move": load.stored.keys() <= (await old.get_digests(COLLECTION)).keys(),
            }
        load.faults |= {name for name, is_true in is_so.items() if is_true}


def make_file(path: Path) -> Place:
    """Return the place of a store in a file."""

    @asynccontextmanager
    async def open_it() -> AsyncGenerator[Store]:
        async with open_store(path) as store:
            yield store

    return Place(f"sqlite:///{path}", open_it, is_file=True)
