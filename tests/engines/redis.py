"""A real Redis of the test's own, from the Debian package `redis-server`, with its append-only file on."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
import redis

from refdesk.queues.bullmq import Shared, open_shared
from tests.engines.servers import end_with_parent, find_free_port, read_up, spawn

PATIENCE_SECONDS = 180.0
LOOK_SECONDS = 0.02
READY = "Ready to accept connections"


class RedisServer:
    """One server in a folder of its own, on a port of the loopback interface. `start` after `kill` is a recovery.

    Args:
        options: Of redis-server, beside the ones that every test has.
    """

    def __init__(self, *options: str) -> None:
        self._binary = find_binary()
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread()
        self.folder = Path(tempfile.mkdtemp(prefix="refdesk-redis-"))
        self.port = find_free_port()

    @property
    def url(self) -> str:
        """Where it is, as refdesk is told."""
        return f"redis://127.0.0.1:{self.port}/0"

    def ask(self, *command: str) -> object:
        """Return the answer to a command of the tests' own."""
        with redis.Redis(port=self.port, decode_responses=True, socket_timeout=PATIENCE_SECONDS) as client:
            return cast("Any", client).execute_command(*command)

    def list_keys(self) -> list[str]:
        """Return the names of everything in it, in order."""
        return sorted(cast("list[str]", self.ask("KEYS", "*")))

    def put_record(self, id: str, **fields: str) -> None:
        """Let a job wait whose record holds this, as no library of BullMQ's writes it."""
        record = {
            "name": "embed",
            "data": "{}",
            "opts": "{}",
            "timestamp": "0",
            "delay": "0",
            "priority": "0",
            **fields,
        }
        self.ask("HSET", f"bull:embeddings:{id}", *chain.from_iterable(record.items()))
        self.ask("LPUSH", "bull:embeddings:wait", id)
        self.ask("ZADD", "bull:embeddings:marker", "0", "0")

    def start(self) -> None:
        """Return when it takes connections."""
        options = ["--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "", "--appendonly", "yes"]
        self._process = process = spawn(
            [self._binary, "--port", str(self.port), *options, *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=partial(end_with_parent, signal.SIGKILL),
        )
        assert process.stdout is not None
        said: list[str] = []
        while line := process.stdout.readline():
            said.append(line)
            if READY in line:
                self._reader = read_up(process.stdout)
                return
        process.wait(PATIENCE_SECONDS)
        process.stdout.close()
        pytest.fail("".join(said[-20:]))

    def kill(self) -> None:
        """End it at once; what the operating system has been given stays."""
        self._send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(PATIENCE_SECONDS)
            self._reader.join(PATIENCE_SECONDS)
            self._process = None

    def freeze(self) -> None:
        """Let it take connections and say nothing any more: a black hole."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._send(signal.SIGCONT)

    def remove(self) -> None:
        """End it and remove its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _send(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)


def find_binary() -> str:
    """Return the server's program; without it, skip the test or fail it where it is required."""
    binary = shutil.which("redis-server")
    if binary is None:
        reason = "Redis is not installed: install redis-server, or run `make test-engines`"
        if "redis" in os.environ.get("REFDESK_TEST_ENGINES", ""):
            pytest.fail(reason)
        pytest.skip(reason)
    return binary


@contextmanager
def running(*options: str) -> Generator[RedisServer]:
    """Yield a server that is nobody else's; remove it on leaving."""
    server = RedisServer(*options)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@cache
def get_server() -> RedisServer:
    """Return the server that the tests of this process share; none of them may end it."""
    server = RedisServer()
    atexit.register(server.remove)
    server.start()
    return server


def get_fresh_server() -> RedisServer:
    """Return the shared server with nothing in it."""
    server = get_server()
    server.ask("FLUSHALL")
    return server


def do_nothing() -> None:
    """Wake nobody."""


@asynccontextmanager
async def open_patiently(url: str, wake: Callable[[], None] = do_nothing, desk: str = "") -> AsyncGenerator[Shared]:
    """Yield what is shared there. An answer is waited for as long as a slow machine takes to bring it: where nothing is
    broken, Redis is never away."""
    async with open_shared(url, wake, desk=desk, patience=PATIENCE_SECONDS) as shared:
        yield shared


async def until(is_so: Callable[[], Awaitable[bool]], seconds: float = PATIENCE_SECONDS) -> None:
    """Return when it is so; fail when it is not in time."""
    with anyio.fail_after(seconds):
        while not await is_so():  # noqa: ASYNC110 - what is waited for happens in other processes
            await anyio.sleep(LOOK_SECONDS)
