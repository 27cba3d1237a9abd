"""Batching: coalesces concurrent requests for the same work into as few rounds as possible."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class _Request(Generic[Item, Result]):
    item: Item
    results: tuple[Result, ...] = ()
    failure: Exception | None = None


class Rounds(Generic[Item, Result]):
    """Collects the requests that arrive during a round, and serves them in the next one.

    Args:
        do: Runs a round: returns one result per item, in order; an exception is raised to everybody in the round.
        most: Most items in one round.
    """

    def __init__(self, do: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]], most: int) -> None:
        self._do = do
        self._most = most
        self._lock = anyio.Lock()
        self._waiting: list[_Request[Item, Result]] = []

    async def ask(self, item: Item) -> Result:
        """Return the item's result. Cancelling one request does not affect the others."""
        request = _Request[Item, Result](item)
        self._waiting.append(request)
        try:
            async with self._lock:
                while not request.results and request.failure is None:
                    await self._do_round()
        finally:
            if request in self._waiting:
                self._waiting.remove(request)
        if request.failure is not None:
            raise request.failure
        return request.results[0]

    async def _do_round(self) -> None:
        requests = self._waiting[: self._most]
        try:
            results = await self._do([request.item for request in requests])
        except Exception as failure:
            for request in requests:
                request.failure = failure
        else:
            for request, result in zip(requests, results, strict=True):
                request.results = (result,)
        self._waiting = [request for request in self._waiting if request not in requests]
