"""The stdio transport: stdout carries the protocol and nothing else, and the server ends as soon as stdin ends.

Lines are read in a daemon thread, so a signal ends the process even if nobody closes stdin.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

import anyio
import anyio.from_thread
import anyio.lowlevel
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from refdesk.server import eras, strict_json
from refdesk.server.envelopes import NOTHING, find_batch_problem, find_problem, get_wanted_version, parse
from refdesk.server.eras import Reading, Stream

if TYPE_CHECKING:
    from anyio.lowlevel import EventLoopToken
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server
    from mcp.shared._stream_protocols import WriteStream

    from refdesk.settings import StdioEra


async def serve(server: Server[Any], era: StdioEra, most_bytes: int) -> None:
    """Serve one client over stdin and stdout until stdin ends; messages have at most `most_bytes`."""
    async with _stdin_lines(most_bytes) as lines:
        messages = _Messages(lines, lambda _: None)
        # The SDK only iterates over it.
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", messages)) as (read, write):
            messages.answer_with(write)
            try:
                await eras.run(server, read, write, era)
            finally:
                sys.stdout.flush()  # flush what a handler printed while stdout still points away from the client


async def serve_lines(
    server: Server[Any],
    lines: AsyncIterable[str],
    era: StdioEra,
    out: LineWriter,
    *,
    note: Callable[[object], None] = lambda _: None,
    caller: object = None,
) -> None:
    """Serve one client until its lines end.

    Args:
        server: The server.
        lines: What the client sends.
        era: Which protocol eras may be spoken.
        out: Where answers go.
        note: Called with each message of the client before it is served, as plain JSON.
        caller: What handlers find as `context.request`.
    """
    messages, write = _Messages(lines, note), _Write(out)
    messages.answer_with(write)
    await eras.run(server, _Read(messages), write, era, caller)


class _Read(Reading):
    """Reads lines as messages; a line that is not a message becomes the error that says so."""

    def __init__(self, lines: _Messages) -> None:
        self._lines = aiter(lines)

    async def receive(self) -> SessionMessage | Exception:
        try:
            line = await anext(self._lines)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None
        try:
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValidationError as error:
            return error

    async def aclose(self) -> None:
        await self._lines.aclose()


class LineWriter(Protocol):
    """What lines are written to."""

    async def write(self, line: bytes) -> None:
        """Write a line that includes its newline; write it whole, even if the task is cancelled meanwhile."""
        ...


class _Write(Stream):
    """Writes each message in the task that answers, with no other task in between."""

    def __init__(self, out: LineWriter) -> None:
        self._out = out
        self._is_closed = False

    async def send(self, item: SessionMessage, /) -> None:
        if self._is_closed:
            raise anyio.ClosedResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        await self._out.write(text.encode() + b"\n")

    async def aclose(self) -> None:
        self._is_closed = True


class _Messages:
    """The messages on lines, with batches split; invalid messages are answered here."""

    def __init__(self, lines: AsyncIterable[str], note: Callable[[object], None]) -> None:
        self._lines = lines
        self._note = note
        self._version: str | None = None
        self._write: WriteStream[SessionMessage] | None = None
        self._can_answer = anyio.Event()

    def answer_with(self, write: WriteStream[SessionMessage]) -> None:
        """Set where answers go."""
        self._write = write
        self._can_answer.set()

    async def __aiter__(self) -> AsyncGenerator[str]:
        async for line in self._lines:
            value = parse(line)
            if isinstance(value, list):
                for each in await self._take_apart(cast("list[object]", value)):
                    self._note(each)
                    yield strict_json.dump(each)
            elif value is NOTHING or not await self._answer(find_problem(value)):
                self._note_version(value)
                self._note(value)
                yield line if value is not NOTHING else ""

    async def _take_apart(self, batch: list[object]) -> list[object]:
        if await self._answer(find_batch_problem(batch, self._version)):
            return []
        return [each for each in batch if not await self._answer(find_problem(each))]

    async def _answer(self, problem: types.JSONRPCError | None) -> bool:
        if problem is None:
            return False
        await self._can_answer.wait()
        assert self._write is not None
        await self._write.send(SessionMessage(problem))
        return True

    def _note_version(self, value: object) -> None:
        message = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if message.get("method") == "initialize":
            self._version = get_wanted_version(message)


@asynccontextmanager
async def _stdin_lines(most_bytes: int) -> AsyncGenerator[MemoryObjectReceiveStream[str]]:
    """Yield the lines of stdin; meanwhile anything else that reads file descriptor 0 finds it empty."""
    wire = _divert_stdin()
    send, receive = anyio.create_memory_object_stream[str](0)
    token = anyio.lowlevel.current_token()
    threading.Thread(target=_read_lines, args=(wire, send, token, most_bytes), name="stdin", daemon=True).start()
    async with receive:
        yield receive


def _divert_stdin() -> BinaryIO:
    try:
        wire, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
    except OSError:
        return sys.stdin.buffer
    return os.fdopen(wire, "rb", closefd=False)


def _read_lines(wire: BinaryIO, send: MemoryObjectSendStream[str], token: EventLoopToken, most_bytes: int) -> None:
    try:
        while line := wire.readline(most_bytes + 1):
            anyio.from_thread.run(send.send, _decode(wire, line, most_bytes), token=token)
        anyio.from_thread.run_sync(send.close, token=token)
    except (anyio.BrokenResourceError, anyio.RunFinishedError):
        return


def _decode(wire: BinaryIO, line: bytes, most_bytes: int) -> str:
    """Return a line as text; an empty text, which is not a message, if it is too long or not UTF-8."""
    is_whole = len(line) <= most_bytes
    while line and not line.endswith(b"\n") and not is_whole:
        line = wire.readline(most_bytes)
    try:
        return line.decode() if is_whole else ""
    except UnicodeDecodeError:
        return ""
