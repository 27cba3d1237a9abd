"""Serves a desk over a local socket: MCP for each client, single calls for the command line, and the commands of
operators."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from refdesk import __version__, errors
from refdesk.core.operations import find_operation
from refdesk.forwarder import hello, rendezvous
from refdesk.kit import memory
from refdesk.server import mcp, stdio
from refdesk.server.calls import Caller
from refdesk.server.descriptions import choose_tools
from refdesk.server.local import callers, syncing, working
from refdesk.server.local.calls import describe_calls, describe_failure
from refdesk.server.local.lines import Lines, Session, open_lines
from refdesk.server.local.memory_keeper import MemoryKeeper
from refdesk.server.local.report import report

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from mcp.server.lowlevel import Server

    from refdesk.app import Desk
    from refdesk.forwarder.locking import FileLock
    from refdesk.forwarder.rendezvous import Place
    from refdesk.server.local.links import Links

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often a desk checks whether it is still wanted, and its files are still there."""

HELLO_BYTES = 1_000_000
HELLO_SECONDS = 10.0
GRACE_SECONDS = 5.0
"""How much longer than the time limit of a request a desk that lets go of its clients waits for requests it has
read."""


@dataclass(slots=True, eq=False)
class Client:
    """A client that is being served."""

    caller: callers.LocalCaller
    session: Session
    since: float = field(default_factory=time.time)
    name: str = ""

    def describe(self) -> dict[str, object]:
        """Return what `refdesk status` shows of the client."""
        shown: dict[str, object] = {"pid": self.caller.pid, "client": self.name, "agent": self.caller.principal.agent}
        return shown | {"org": self.caller.principal.org, "since": self.since, "calls": len(self.session.open_calls)}


@dataclass(slots=True, eq=False)
class LocalService:
    """A desk's side of its local socket.

    Attributes:
        lock: Held for as long as this process is the desk of its place.
        kind: `desk`, or `http` if the process serves over HTTP too and outlives its local clients.
        links: Makes links to its console, if the process serves over HTTP too.
        idle_seconds: How long the desk may be without a client before it ends; `None` if it never does.
    """

    desk: Desk
    place: Place
    lock: FileLock
    kind: str = "desk"
    links: Links | None = None
    idle_seconds: float | None = None
    started: float = field(default_factory=time.time)
    _clients: set[Client] = field(default_factory=set["Client"])
    _asking: int = 0
    _last: float = field(default_factory=time.monotonic)
    _let_go: anyio.Event = field(default_factory=anyio.Event)
    _servers: dict[tuple[str, ...], Server[Any]] = field(default_factory=dict[tuple[str, ...], "Server[Any]"])

    async def run(self, listener: socket.socket) -> None:
        """Serve until nobody has needed the desk for long enough, or it is to end."""
        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as connections:
                memory.keep_what_is_loaded()
                logger.info("the desk serves", extra={"pid": os.getpid(), "desk": self.place.key})
                group.start_soon(self._watch)
                group.start_soon(MemoryKeeper(self.desk.quiet).run)
                accepting = anyio.CancelScope()
                connections.start_soon(self._accept, listener, connections, accepting)
                await self._let_go.wait()
                accepting.cancel()
                self.place.withdraw()
                for client in self._clients:
                    client.session.let_go()
            group.cancel_scope.cancel()

    @property
    def is_ending(self) -> bool:
        """Whether the desk is letting go of its clients."""
        return self._let_go.is_set()

    def end(self, reason: str) -> None:
        """Accept no new clients, answer the requests that were read, and let go of every client."""
        if not self._let_go.is_set():
            logger.info("the desk ends", extra={"reason": reason, "clients": len(self._clients)})
            self._let_go.set()

    async def _accept(self, listener: socket.socket, group: TaskGroup, scope: anyio.CancelScope) -> None:
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        with listener, scope:
            while True:
                try:
                    connection, _ = await loop.sock_accept(listener)
                except OSError:  # such as too many open files
                    await anyio.sleep(0.1)
                    continue
                group.start_soon(self._serve, connection)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            async with open_lines(connection, max(HELLO_BYTES, mcp.MESSAGE_BYTES)) as lines:
                await self._answer(connection, lines)
        except (OSError, TimeoutError):
            return
        except Exception:
            logger.exception("a local connection broke")

    async def _answer(self, connection: socket.socket, lines: Lines) -> None:
        with anyio.fail_after(HELLO_SECONDS):
            await self._check_peer(connection, lines)
            said = hello.unpack(await lines.next() or b"") or {}
        lines.read = 0
        if said.get("ask") == "serve" and _is_newer(str(said.get("version"))):
            self.end(f"a client of version {said.get('version')} takes over")
        if self._let_go.is_set():
            return  # without an answer: the client turns to the next desk
        self._asking += 1
        try:
            await self._answer_to(said, lines)
        except errors.RefdeskError as error:
            await _say(lines, {"error": error.message})
        finally:
            self._asking -= 1
            self._last = time.monotonic()

    async def _answer_to(self, said: Mapping[str, Any], lines: Lines) -> None:
        match said.get("ask"):
            case "serve":
                await self._serve_client(said, lines)
            case "call":
                await _say(lines, await self._call(said))
            case "sync":
                await syncing.answer(self.desk, said, lines)
            case "work":
                caller = callers.read_caller(self.desk.settings, self.desk.toolsets, said, "cli")
                await working.answer_work(self.desk, caller.principal, said, lines)
            case "status":
                await _say(lines, await self._describe())
            case "link" if self.links is not None:
                await _say(lines, {"link": await self.links.make(self.desk)})
            case "stop":
                await _say(lines, {"kind": self.kind})
                if self.kind == "desk":
                    self.end("it was asked to")
            case "yield":
                self.end("another process takes its place")
            case _:
                raise errors.InvalidInputError("Nothing that a desk knows was asked.")

    async def _check_peer(self, connection: socket.socket, lines: Lines) -> None:
        """Check that the other end belongs to this user; raise OSError if it does not."""
        if connection.family != socket.AF_INET:
            rendezvous.require_own(connection)
            return
        nonce = os.urandom(16).hex()
        said = hello.unpack(await lines.next() or b"") or {}
        await _say(lines, {"proof": self.place.prove("desk", str(said.get("nonce"))), "nonce": nonce})
        answer = hello.unpack(await lines.next() or b"") or {}
        if answer.get("proof") != self.place.prove("client", nonce):
            raise PermissionError("that client does not know the folder's secret")

    async def _serve_client(self, said: Mapping[str, Any], lines: Lines) -> None:
        caller = callers.read_caller(self.desk.settings, self.desk.toolsets, said, "stdio")
        server = self._get_server(caller.settings.tools)
        seconds = self.desk.settings.request_timeout_seconds + GRACE_SECONDS
        client = Client(caller, Session(lines, seconds))
        self._clients.add(client)
        try:
            offered = choose_tools(self.desk.toolsets, caller.settings.tools)
            greeting = {"version": __version__, "pid": os.getpid(), "calls": describe_calls(offered)}
            await _say(lines, greeting)

            def note(message: object) -> None:
                client.session.note(message)
                client.name = client.name or _find_name(message)

            era = caller.settings.stdio_era
            await stdio.serve_lines(server, client.session, era, client.session, note=note, caller=caller)
        finally:
            self._clients.discard(client)

    def _get_server(self, tools: tuple[str, ...]) -> Server[Any]:
        """Return the server that offers these tools; raises ConfigurationError if there is no such tool."""
        if tools not in self._servers:
            self._servers[tools] = mcp.build_server(self.desk, callers.identify, tools)
        return self._servers[tools]

    async def _call(self, said: Mapping[str, Any]) -> dict[str, object]:
        """Return the answer to a single call, or its error."""
        caller = callers.read_caller(self.desk.settings, self.desk.toolsets, said, "cli")
        operation = find_operation(self.desk.toolsets, str(said.get("operation")))
        if operation is None:
            return {"unknown": said.get("operation")}
        try:
            answer = await Caller(self.desk, caller.principal, "cli").run(operation, said.get("arguments"))
        except errors.RefdeskError as error:
            return describe_failure(error)
        return {"value": answer.value, "meta": answer.meta}

    async def _describe(self) -> dict[str, object]:
        told = None
        with anyio.move_on_after(LOOK_SECONDS):
            told = await report(self.desk)
        return {
            "pid": os.getpid(),
            "version": __version__,
            "kind": self.kind,
            "started": self.started,
            "toolsets": [toolset.name for toolset in self.desk.toolsets],
            "clients": [client.describe() for client in sorted(self._clients, key=lambda each: each.since)],
            "memory": memory.measure(),
            "work": self.desk.list_work(),
            "url": self.links.url if self.links is not None else None,
            "report": told,
            "idle_seconds": self.idle_seconds,
        }

    async def _watch(self) -> None:
        """End the desk when nobody has needed it for long enough, or its files were removed."""
        while not self._let_go.is_set():
            with anyio.move_on_after(min(LOOK_SECONDS, self.idle_seconds or LOOK_SECONDS)):
                await self._let_go.wait()
            if not self.lock.is_in_place() or self.place.find() is None:
                self.end("its files were taken away")
            elif self._is_idle():
                self.end(f"no client for {self.idle_seconds:g} seconds")

    def _is_idle(self) -> bool:
        if self.idle_seconds is None:
            return False
        if self._asking or self.desk.list_work():
            self._last = time.monotonic()
        return time.monotonic() - self._last >= self.idle_seconds


async def _say(lines: Lines, said: Mapping[str, object]) -> None:
    await lines.write(hello.pack(said))


def _find_name(message: object) -> str:
    """Return the client's name if a message contains it, else an empty text."""
    match message:
        case {"method": "initialize", "params": {"clientInfo": {"name": str(name)}}}:
            return name
        case {"params": {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": str(name)}}}}:
            return name
        case _:
            return ""


def _is_newer(version: str) -> bool:
    return _order(version) > _order(__version__)


def _order(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]
