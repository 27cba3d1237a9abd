"""A store that follows its own move to another store: its users notice nothing but a short wait.

While the store is not being moved, reads and writes check at most twice a second whether it is. While it is being
moved, each read checks first, and so does each transaction once it has begun, which the last step of the move waits
for. So nobody reads outdated data after somebody else has written to the new store.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio

from refdesk.core.keeping.moves import NOTHING, find_moves, read_move
from refdesk.errors import StoreError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup, TaskStatus

    from refdesk.model import Collection, EmbeddedCount
    from refdesk.protocols import Store, Transaction

LOOK_SECONDS = 0.5
"""How long a store may be used without checking whether it is being moved."""

NOTICE_SECONDS = 3 * LOOK_SECONDS
"""Shortest time that a move takes, so that everybody who uses the store has noticed it before it ends."""

MOST_MOVES = 16
"""Most moves that are followed one after the other."""

_CIRCLE = "The store was moved from one place to another in a circle: look at REFDESK_STORE."

logger = logging.getLogger(__name__)


@asynccontextmanager
async def follow(
    opened: AbstractAsyncContextManager[Store], open_other: Callable[[str], AbstractAsyncContextManager[Store]]
) -> AsyncGenerator[Store]:
    """Yield a store that goes where it is moved to, or was moved to before.

    Args:
        opened: Opens the store; it is yielded as it is if its engine cannot be moved while it serves.
        open_other: Opens the store at a URL.

    Raises:
        StoreError: It, or the store that it was moved to, cannot be opened.
    """
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened)
        if find_moves(store) is None:
            yield store
            return
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            try:
                following = FollowingStore(store, open_other, group)
                await following.look()
                yield cast("Store", following)
            except Exception as error:
                # Raised below, so that it does not come out wrapped in a group.
                failure = error
            finally:
                group.cancel_scope.cancel()
        if failure is not None:
            raise failure


class FollowingStore:
    """See `follow`; has all attributes of the store."""

    def __init__(
        self, store: Store, open_other: Callable[[str], AbstractAsyncContextManager[Store]], group: TaskGroup
    ) -> None:
        self._store = store
        self._open_other = open_other
        self._group = group
        self._turn = anyio.Lock()
        self._looked_at = float("-inf")
        self._is_moving = False
        self._delay = 0.0
        self._moves = 0

    @property
    def engine(self) -> str:
        """See `Store.engine`."""
        return self._store.engine

    @property
    def obstacle(self) -> str | None:
        """See `Store.obstacle`."""
        return self._store.obstacle

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        if name.startswith("_") or name == "moves":
            raise AttributeError(name)

        async def ask(*arguments: object, **options: object) -> object:
            await self._look_in_time()
            return await getattr(self._store, name)(*arguments, **options)

        self.__dict__[name] = ask
        return ask

    def loading(self) -> AbstractAsyncContextManager[None]:
        """See `Archive.loading`."""
        return self._store.loading()

    async def get_unembedded(self, collection: Collection, model: str, limit: int, since: str = "") -> list[str]:
        """See `Reader.get_unembedded`; a mark given by the store before a move is ignored."""
        await self._look_in_time()
        moves, _, mark = since.partition(":")
        known = mark if moves == str(self._moves) else ""
        return await self._store.get_unembedded(collection, model, limit, known)

    async def list_collections(self) -> Mapping[Collection, str]:
        """See `Store.list_collections`."""
        await self._look_in_time()
        moves = self._moves
        return {each: f"{moves}:{mark}" for each, mark in (await self._store.list_collections()).items()}

    async def count_embedded(self, model: str) -> list[EmbeddedCount]:
        """See `Store.count_embedded`."""
        await self._look_in_time()
        moves = self._moves
        return [replace(each, mark=f"{moves}:{each.mark}") for each in await self._store.count_embedded(model)]

    async def get_change_mark(self) -> str:
        """See `Store.get_change_mark`."""
        await self._look_in_time()
        return f"{self._moves}:{await self._store.get_change_mark()}"

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """See `Store.transaction`."""
        if not self._is_moving:
            await self._look_in_time()
        try:
            if not self._is_moving:
                async with self._store.transaction() as transaction:
                    yield transaction
            else:
                await anyio.sleep(self._delay)
                async with AsyncExitStack() as stack:
                    yield await self._begin(stack)
        except StoreError:
            # The old store may have refused it because it was moved.
            self._looked_at = float("-inf")
            raise

    async def _look_in_time(self) -> None:
        if self._is_moving or anyio.current_time() - self._looked_at > LOOK_SECONDS:
            await self.look()

    async def look(self) -> None:
        """Find out whether the store is being moved, and switch to the one that it was moved to.

        Raises:
            StoreError: It cannot be read, or the other one cannot be opened.
        """
        for _ in range(MOST_MOVES):
            store, now = self._store, anyio.current_time()
            move = await read_move(store)
            if move is None or move.stage == "moving":
                self._is_moving, self._looked_at = move is not None, now
                self._delay = move.delay if move is not None else 0.0
                return
            await self._go(store, move.target)
        raise StoreError(_CIRCLE)

    async def _begin(self, stack: AsyncExitStack) -> Transaction:
        """Return a transaction of a store that cannot be switched before the transaction ends."""
        for _ in range(MOST_MOVES):
            store = self._store
            async with AsyncExitStack() as own:
                transaction = await own.enter_async_context(store.transaction())
                await transaction.get_metadata(NOTHING)
                move = await read_move(store)
                if move is None or move.stage == "moving":
                    self._delay = move.delay if move is not None else 0.0
                    stack.push_async_exit(own.pop_all())
                    return transaction
            await self.look()
        raise StoreError(_CIRCLE)

    async def _go(self, store: Store, url: str) -> None:
        async with self._turn:
            if self._store is not store:
                return
            self._store = await self._group.start(self._hold, url)
            self._moves += 1
        logger.warning("the store was moved; name the new one in REFDESK_STORE before this is started anew")

    async def _hold(self, url: str, *, task_status: TaskStatus[Store]) -> None:
        """Keep a store open until the task group is cancelled, so that the task that opens it also closes it."""
        async with self._open_other(url) as store:
            task_status.started(store)
            await anyio.sleep_forever()
