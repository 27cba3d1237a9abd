"""Clients of the official SDK that go on storing and searching while their desk is killed again and again."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import anyio
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from refdesk.forwarder.journal import MOST_ATTEMPTS, MOST_REPEAT_SECONDS
from tests.acceptance.processes import kill_desks, list_desks, make_environment, run
from tests.acceptance.test_desk import list_processes

SERVE = ["-m", "refdesk", "serve", "--stdio"]
LOOK_SECONDS = 0.005
MOST_ANSWERS = 12
"""How many answers a desk gives at most before it is killed."""


@dataclass
class DeskKills:
    """One data folder, its clients, and what they were told.

    Attributes:
        variables: Of the clients and so of the desk.
        stored: Titles whose store was acknowledged.
        unsure: Titles of which nobody could say whether they were stored.
        faults: What must not happen, by name.
        kills: How many desks were killed.
        given_up: How many calls with a key were answered as unsure, because so many desks ended under them, or for so
            long, that nobody repeats them any more.
    """

    home: Path
    seed: int
    clients: int = 4
    variables: dict[str, str] = field(default_factory=dict[str, str])
    stored: set[str] = field(default_factory=set[str])
    unsure: set[str] = field(default_factory=set[str])
    faults: set[str] = field(default_factory=set[str])
    kills: int = 0
    given_up: int = 0
    _answers: int = 0
    _is_over: bool = False

    async def run(self, kills: int) -> set[str]:
        """Return the names of the faults that so many kills have shown."""
        with anyio.fail_after(240 + kills * 60):
            async with AsyncExitStack() as stack:
                clients = [await self._open(stack) for _ in range(self.clients)]
                async with anyio.create_task_group() as group:
                    for number, client in enumerate(clients):
                        group.start_soon(self._work, client, number)
                    await self._kill(kills)
                    self._is_over = True
                self._look_at_processes()
        self._look_at_notes()
        kill_desks(self.home)
        return self.faults

    async def _open(self, stack: AsyncExitStack) -> Client:
        # What is late on a busy machine is late, and no fault.
        settings = {"REFDESK_EMBEDDER": "hashing", "REFDESK_REQUEST_TIMEOUT_SECONDS": "3600"}
        environment = make_environment(self.home, **settings, **self.variables)
        command = StdioServerParameters(command=sys.executable, args=SERVE, env=environment)
        return await stack.enter_async_context(Client(stdio_client(command), mode="legacy"))

    async def _work(self, client: Client, number: int) -> None:
        step = 0
        while not self._is_over:
            step += 1
            try:
                await self._store(client, f"note {step} of client {number}", UUID(int=number * 10**9 + step))
                if step % 3 == 0:
                    found = await client.call_tool("search_knowledge", {"query": f"note {step}"})
                    self._note(found.is_error, "a search was answered with an error")
            except MCPError:
                self.faults.add("a client ended")
                return
            self._answers += 1

    async def _store(self, client: Client, title: str, token: UUID) -> None:
        is_keyed = token.int % 2 == 0
        arguments = {"title": title, "body": "b", **({"clientToken": str(token)} if is_keyed else {})}
        began, kills = time.monotonic(), self.kills
        result = await client.call_tool("store_knowledge", arguments)
        if not result.is_error:
            self.stored.add(title)
            return
        self.unsure.add(title)
        is_given_up = self.kills - kills >= MOST_ATTEMPTS or time.monotonic() - began >= MOST_REPEAT_SECONDS
        self.given_up += is_keyed and is_given_up
        self._note(is_keyed and not is_given_up, f"a store with a key was answered with an error: {result.content}")
        self._note("may have been written" not in str(result.content), "an error did not say that it is unsure")

    async def _kill(self, kills: int) -> None:
        choice = random.Random(self.seed)
        for _ in range(kills):
            wanted = self._answers + choice.choice([0, 0, *range(MOST_ANSWERS)])
            while not (desks := list_desks(self.home)) or self._answers < wanted:  # noqa: ASYNC110 - of other processes
                await anyio.sleep(LOOK_SECONDS)
            self._note(len(desks) > 1, "two desks are announced")
            for desk in desks:
                with suppress(ProcessLookupError):
                    os.kill(desk, signal.SIGKILL)
                    self.kills += 1
            while list_desks(self.home) == desks and not self._has_all_ended():  # noqa: ASYNC110
                await anyio.sleep(LOOK_SECONDS)

    def _has_all_ended(self) -> bool:
        return "a client ended" in self.faults

    def _look_at_processes(self) -> None:
        self._note(len(list_processes(self.home)) > 1, "two desks run")
        sockets = list((self.home / "desk").glob("*.sock"))
        self._note(len(sockets) > 1, "sockets were left behind")

    def _look_at_notes(self) -> None:
        exported = run(["export", "knowledge", "--output", str(self.home / "all.jsonl")], self.home)
        assert exported.returncode == 0, exported.stderr
        lines = (self.home / "all.jsonl").read_text().splitlines()
        titles = Counter(str(entry.get("title")) for entry in map(json.loads, lines))
        self._note(any(title not in titles for title in self.stored), "lost")
        self._note(any(titles[title] > 1 for title in self.stored | self.unsure), "doubled")

    def _note(self, is_so: bool | None, fault: str) -> None:
        if is_so:
            self.faults.add(fault)
