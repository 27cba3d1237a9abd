"""A TCP proxy that spoils what comes back from a server, as bad networks do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import Literal, TypeAlias, get_args

Fault: TypeAlias = Literal["none", "dropped", "half", "sliced", "slow", "refused"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
SLOW_SECONDS = 0.03


@dataclass
class Proxy:
    """Stands before servers on the loopback interface, which take turns with new connections.

    Attributes:
        targets: The ports of the servers, in turn.
        fault: What happens to replies from now on: `dropped` swallows them, `half` cuts one in two and hangs up,
            `sliced` sends them byte by byte, `slow` late, `refused` hangs up at once.
        spoils: After so many spoiled replies all is well again; never, unless it is set.
    """

    targets: Iterator[int]
    port: int = 0
    fault: Fault = "none"
    spoils: int = sys.maxsize
    _writers: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self._writers.add(writer)
        with suppress(OSError):
            if self.fault != "refused":
                there, back = await asyncio.open_connection("127.0.0.1", next(self.targets))
                self._writers.add(back)
                await asyncio.gather(self._carry(reader, back), self._bring_back(there, writer))
        self._hang_up(writer)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        self._hang_up(writer)

    async def _bring_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if not await self._give(data, writer):
                    break
        self._hang_up(writer)

    async def _give(self, data: bytes, writer: asyncio.StreamWriter) -> bool:
        """Pass a reply on as the fault has it; return whether the connection stays."""
        fault = self._spoil()
        if fault == "dropped":
            return True
        if fault == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        if fault in ("half", "refused"):
            data = data[: len(data) // 2] if fault == "half" else b""
        for start in range(0, len(data), 1 if fault == "sliced" else max(1, len(data))):
            writer.write(data[start : start + 1] if fault == "sliced" else data)
            await writer.drain()
        return fault not in ("half", "refused")

    def _spoil(self) -> Fault:
        """Return what happens to the next reply."""
        fault = self.fault
        self.spoils -= fault != "none"
        if not self.spoils:
            self.fault, self.spoils = "none", sys.maxsize
        return fault

    def _hang_up(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.close()

    def hang_up(self) -> None:
        """End every connection."""
        for writer in list(self._writers):
            self._hang_up(writer)


@asynccontextmanager
async def open_proxy(*ports: int) -> AsyncGenerator[Proxy]:
    """Yield a proxy before servers, given by their ports; it is gone when the block is left."""
    proxy = Proxy(cycle(ports))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.hang_up()
        await server.wait_closed()
        # What is still carried ends with its connections.
        mine = [task for task in asyncio.all_tasks() if "Proxy." in repr(task.get_coro())]
        await asyncio.gather(*mine, return_exceptions=True)
