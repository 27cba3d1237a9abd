"""A store that is moved under load while the mover, and the servers on it, are killed again and again.

Clients write through two servers, and read through the other one what was just acknowledged. A write without an answer
is repeated with its token until there is one. Once the move is through, the new store alone is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
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
    """

    random: Random
    urls: dict[int, str] = field(default_factory=dict[int, str])
    stored: dict[str, str] = field(default_factory=dict[str, str])
    faults: set[str] = field(default_factory=set[str])
    refused: int = 0
    is_over: bool = False
    answers: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(0))

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
            self.stored[answer.json()["id"]] = title
            self.answers.release()
            await self._read(answer.json()["id"], title, 1 - place)

    async def _read(self, id: str, title: str, place: int) -> None:
        _, answer = await self._ask(partial(_get, id), place, is_read=True)
        if answer.status_code != 200 or answer.json()["title"] != title:
            self.faults.add(f"not read: {answer.status_code}")

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
            if is_read or answer.status_code == 200:
                return place, answer
            self.refused += 1
            if answer.json()["error"]["code"] != "STORE_UNAVAILABLE":
                self.faults.add(f"answered {answer.status_code}: {answer.text}")
                return place, answer


async def _post(body: dict[str, str], client: httpx2.AsyncClient) -> httpx2.Response:
    return await client.post("/knowledge", json=body)


async def _get(id: str, client: httpx2.AsyncClient) -> httpx2.Response:
    return await client.get(f"/knowledge/{id}")


@dataclass
class Trial:
    """One move with so many kills.

    Attributes:
        command: What moves, before the addresses.
        strike: What happens in place of the mover's being killed; it ends as it likes. Undone by `mend`.
        open_target: Opens the new store, to look at it in the end.
    """

    home: Path
    seed: int
    target: str
    open_target: Callable[[], AbstractAsyncContextManager[Store]]
    command: tuple[str, ...] = ("migrate", "--serving")
    strike: Callable[[], None] | None = None
    mend: Callable[[], None] | None = None
    kills: int = 0
    server_kills: int = 0
    writes: int = 0
    refused: int = 0

    @property
    def old(self) -> Path:
        return self.home / "old.sqlite3"

    async def run(self, kills: int) -> set[str]:
        """Return what was wrong after a move whose mover was killed at most so often."""
        load = Load(Random(self.seed))
        with ExitStack() as stack:
            # A nursery has one child at a time.
            homes = [self.home / name for name in ("server-0", "server-1", "mover")]
            store = f"sqlite:///{self.old}"
            *nurseries, nursery = [stack.enter_context(nursing(home, REFDESK_STORE=store)) for home in homes]
            servers = [await self._serve(nurseries[place], stack, load, place) for place in (0, 1)]
            async with anyio.create_task_group() as group:
                for writer in range(WRITERS):
                    group.start_soon(load.write, writer)
                await self._wait(load, MOST_BETWEEN // 4)
                while self.kills < kills and await self._move(nursery, load, is_killed=True):
                    self.kills += 1
                    if self.kills % 3 == 0:
                        place = load.random.choice((0, 1))
                        servers[place].kill()
                        await anyio.to_thread.run_sync(servers[place].wait)
                        servers[place] = await self._serve(nurseries[place], stack, load, place)
                        self.server_kills += 1
                await self._move(nursery, load, is_killed=False)
                await self._wait(load, AFTER_THE_MOVE)
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
        is_struck = is_killed and self.strike is not None
        by_calls = load.random.randint(1, MOST_CALLS) if is_killed and load.random.random() < 0.5 else None
        addresses = ("--from", f"sqlite:///{self.old}", "--to", self.target)
        with nursery.start(*self.command, *addresses, calls=None if is_struck else by_calls) as life:
            if is_struck or (is_killed and by_calls is None):
                # Early: a target that is struck after the switch is what servers need, which is no matter of moving.
                await self._wait(load, load.random.randint(1, MOST_BETWEEN // (4 if is_struck else 1)))
                await anyio.to_thread.run_sync(self.strike or life.kill)
            status = await anyio.to_thread.run_sync(life.wait)
        if is_struck and self.mend is not None:
            await anyio.to_thread.run_sync(self.mend)
        if status not in (0, KILLED) and not is_struck:
            load.faults.add(f"the mover ended with {status}")
        return status != 0

    async def _wait(self, load: Load, answers: int) -> None:
        for _ in range(answers):
            await load.answers.acquire()

    async def _look(self, load: Load) -> None:
        async with open_store(self.old) as old, self.open_target() as new:
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


@asynccontextmanager
async def open_file(path: Path) -> AsyncGenerator[Store]:
    """Yield the store in a file."""
    async with open_store(path) as store:
        yield store
