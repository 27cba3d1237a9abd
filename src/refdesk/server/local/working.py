"""Does long work for the command line: reports progress, and stops when nobody listens any more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from refdesk import errors
from refdesk.forwarder import hello
from refdesk.server.local.calls import describe_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from refdesk.app import Desk
    from refdesk.model import Principal
    from refdesk.server.local.lines import Lines

    Note: TypeAlias = Callable[[int, int | None], None]

logger = logging.getLogger(__name__)


async def answer(lines: Lines, what: str, do: Callable[[Note], Awaitable[object]]) -> None:
    """Do some work: write lines with its `progress`, then one with its `value` or with what `failed`."""
    found: dict[str, object] = {}
    put, take = anyio.create_memory_object_stream[dict[str, object]](1)

    def note(done: int, total: int | None) -> None:
        try:
            put.send_nowait({"progress": [done, total]})
        except anyio.WouldBlock:
            return  # the next report makes up for it

    async def tell() -> None:
        async for step in take:
            await _say(lines, step)

    async def watch() -> None:
        while await lines.next() is not None:
            pass
        logger.info("%s ends early", what, extra={"reason": "whoever asked for it has gone"})
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        async with take, anyio.create_task_group() as telling:
            telling.start_soon(tell)
            with put:
                found = await _do(do, note)
        await _say(lines, found)
        group.cancel_scope.cancel()


async def answer_work(desk: Desk, principal: Principal, said: Mapping[str, Any], lines: Lines) -> None:
    """Read the texts that belong to a piece of work, one line each, and do it."""
    from refdesk.server.local import work  # not at start-up

    name, count = str(said.get("work")), int(said.get("texts") or 0)
    texts = [hello.unpack(await lines.next() or b"") for _ in range(count)]
    arguments: Mapping[str, Any] = said.get("arguments") or {}
    if not work.can_do(desk, name, arguments) or not all(texts):
        await _say(lines, {"unknown": name})
        return
    logger.info("work of the command line", extra={"work": name, "org": principal.org, "agent": principal.agent})
    done = 0

    async def do(note: Note) -> object:
        def advance() -> None:
            nonlocal done
            done += 1
            note(done, count)

        given = [text for text in texts if text is not None]
        return await work.do(desk, work.Work(name, principal, arguments, given, advance))

    await answer(lines, "work", do)


async def _do(do: Callable[[Note], Awaitable[object]], note: Note) -> dict[str, object]:
    try:
        return {"value": await do(note)}
    except errors.RefdeskError as error:
        return describe_failure(error)


async def _say(lines: Lines, value: Mapping[str, object]) -> None:
    await lines.write(hello.pack(value))
