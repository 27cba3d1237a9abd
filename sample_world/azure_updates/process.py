"""The emulator as a process that a test or the demo starts, scripts and stops."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sample_world.azure_updates.world import Record, load_roadmap
from sample_world.process import REPOSITORY, EmulatorError, RunningProcess, name_file, running_process

__all__ = ["REPOSITORY", "EmulatorError", "RunningEmulator", "running_emulator"]


@dataclass(frozen=True, slots=True)
class RunningEmulator(RunningProcess):
    """A handle on the emulator's process; `url` is the address of the feed, as a client is given it."""

    async def set_world(self, records: Sequence[Record] | None = None, *, day: int = 1) -> None:
        """Let the feed hold exactly `records`, or without them the sample world's state of `day`."""
        await self.call("POST", "world", {"day": day} if records is None else list(records))

    @property
    def roadmap_url(self) -> str:
        """The address of the Microsoft 365 roadmap, as a client is given it."""
        return self.said["roadmap"]

    async def set_roadmap(self, records: Sequence[Record] | None = None) -> None:
        """Let the roadmap hold exactly `records`, or without them those of the sample world."""
        await self.call("POST", "roadmap", load_roadmap() if records is None else list(records))


@asynccontextmanager
async def running_emulator(
    *,
    day: int = 1,
    records: Path | None = None,
    faults: Path | None = None,
    port: int = 0,
) -> AsyncGenerator[RunningEmulator]:
    """Run the emulator in a process of its own while the block runs (see `sample_world.process.running_process`).

    Args:
        day: State of the sample world to start with, 1 or 2.
        records: JSON file of records to serve instead.
        faults: JSON file of fault rules to start with.
        port: Port to listen on; 0 takes a free one.

    Raises:
        EmulatorError: it ended, or was not listening after 30 s.
    """
    arguments = [
        "--port",
        str(port),
        "--day",
        str(day),
        *name_file("--records", records),
        *name_file("--faults", faults),
    ]
    async with running_process("sample_world.azure_updates", arguments) as process:
        yield RunningEmulator(process.pid, process.said, process.control)
