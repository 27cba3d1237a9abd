"""The emulator as a process that a test or the demo starts, scripts and stops."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import anyio
import httpx2
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from sample_world.azure_updates.world import Record

REPOSITORY = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 30.0
STOP_SECONDS = 5.0
_LONGEST_LINE = 4096


class EmulatorError(RuntimeError):
    """The emulator did not start or refused what it was told; the message holds what it said."""


@dataclass(frozen=True, slots=True)
class RunningEmulator:
    """A handle on the emulator's process; `url` is the address of the feed, as a client is given it."""

    url: str
    pid: int
    _control: httpx2.AsyncClient

    async def set_faults(self, rules: Sequence[Mapping[str, object]]) -> None:
        """Put these rules in force (see `faults.FaultRule`) and count requests from 1 again; `[]` ends them all."""
        await self._call("POST", "faults", list(rules))

    async def set_world(self, records: Sequence[Record] | None = None, *, day: int = 1) -> None:
        """Let the feed hold exactly `records`, or without them the sample world's state of `day`."""
        await self._call("POST", "world", {"day": day} if records is None else list(records))

    async def requests(self) -> list[Record]:
        """Return the requests to the feed so far, oldest first: number, path, query, options, headers, status, fault.

        `options` is the decoded query; `status` is `None` where no answer was sent.
        """
        return cast("list[Record]", json.loads(await self._call("GET", "requests")))

    async def forget_requests(self) -> None:
        """Empty the log of requests."""
        await self._call("DELETE", "requests")

    async def _call(self, method: str, path: str, body: object = None) -> bytes:
        content = None if body is None else json.dumps(body)
        response = await self._control.request(method, path, content=content)
        if response.status_code >= 400:
            raise EmulatorError(response.text)
        return response.content


@asynccontextmanager
async def running_emulator(
    *,
    day: int = 1,
    records: Path | None = None,
    faults: Path | None = None,
    port: int = 0,
) -> AsyncGenerator[RunningEmulator]:
    """Run the emulator in a process of its own, with this interpreter, while the block runs.

    It listens before the block starts and is gone when the block has ended, however it ended; it also ends by itself
    when this process dies.

    Args:
        day: State of the sample world to start with, 1 or 2.
        records: JSON file of records to serve instead.
        faults: JSON file of fault rules to start with.
        port: Port to listen on; 0 takes a free one.

    Raises:
        EmulatorError: it ended, or was not listening after 30 s.
    """
    command = _build_command(day, records, faults, port)
    with tempfile.TemporaryFile() as errors:
        process = await anyio.open_process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=REPOSITORY
        )
        try:
            addresses = await _read_addresses(process, errors)
            # Plain HTTP on loopback: without `verify` no trust store is read, which costs more than a request.
            async with httpx2.AsyncClient(
                base_url=addresses["control"], trust_env=False, verify=False, timeout=30
            ) as control:
                yield RunningEmulator(addresses["url"], process.pid, control)
        finally:
            with anyio.CancelScope(shield=True):
                await _stop(process)


def _build_command(day: int, records: Path | None, faults: Path | None, port: int) -> list[str]:
    command = [sys.executable, "-m", "sample_world.azure_updates", "--port", str(port), "--day", str(day)]
    command += [] if records is None else ["--records", str(records.resolve())]
    return command + ([] if faults is None else ["--faults", str(faults.resolve())])


async def _read_addresses(process: Process, errors: IO[bytes]) -> dict[str, str]:
    assert process.stdout is not None
    try:
        with anyio.fail_after(START_SECONDS):
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", _LONGEST_LINE)
    except (TimeoutError, anyio.IncompleteRead, anyio.EndOfStream) as error:
        errors.seek(0)
        said = errors.read()[-2000:].decode(errors="replace").strip()
        raise EmulatorError(f"The emulator did not start: {said or 'it said nothing'}") from error
    return cast("dict[str, str]", json.loads(line))


async def _stop(process: Process) -> None:
    assert process.stdin is not None
    await process.stdin.aclose()
    for end in (process.terminate, process.kill):
        with anyio.move_on_after(STOP_SECONDS):
            await process.wait()
            break
        end()
    await process.aclose()
