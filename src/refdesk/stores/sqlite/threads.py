"""The store's own threads, for calls that wait for the disk: a hop to one takes a third as long as to a pool's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.lowlevel

R = TypeVar("R")

_Job: TypeAlias = "tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]"


class Threads:
    """Up to `most` threads, which begin calls in order of arrival; each is started when it is first needed."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._in_hand = 0

    async def run(self, call: Callable[[], R]) -> R:
        """Return what `call` returns, or raise what it raises; a task cancelled meanwhile still waits for it."""
        await anyio.lowlevel.checkpoint_if_cancelled()
        results = list[R]()
        with anyio.CancelScope(shield=True):
            results.append(await self.run_shielded(call))
        return results[0]

    async def run_shielded(self, call: Callable[[], R]) -> R:
        """Do the same for a task that is already shielded from cancellation."""
        self._in_hand += 1
        try:
            if len(self._threads) < min(self._in_hand, self._most):
                self._start()
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[R] = loop.create_future()
            self._jobs.put((loop, answer, call))
            return await answer
        finally:
            self._in_hand -= 1

    def close(self) -> None:
        """Let the threads end once they have done the calls they were given; does not wait for that."""
        while self._threads:
            self._threads.pop()
            self._jobs.put(None)

    def _start(self) -> None:
        # A daemon, so that a process can end without closing the store: nobody relies on what was not acknowledged.
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, answer, call = job
            settle = _do(answer, call)
            # The caller may be gone, and its event loop with it.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle)
            del job, answer, call, settle


def _do(answer: asyncio.Future[R], call: Callable[[], R]) -> Callable[[], None]:
    """Do a call; return a callback that hands its outcome to the waiting task."""
    try:
        result = call()
    except BaseException as error:
        failure = error
        return lambda: None if answer.done() else answer.set_exception(failure)
    return lambda: None if answer.done() else answer.set_result(result)
