"""An emulator as a process that a test or the demo starts, scripts and stops."""

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

REPOSITORY = Path(__file__).resolve().parent.parent
START_SECONDS = 30.0
STOP_SECONDS = 5.0
_LONGEST_LINE = 16_384


class EmulatorError(RuntimeError):
    """The emulator did not start or refused what it was told; the message holds what it said."""


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A handle on an emulator's process. `said` is what it printed when it listened."""

    pid: int
    said: Mapping[str, str]
    control: httpx2.AsyncClient

    @property
    def url(self) -> str:
        """The address that a client of the service is given."""
        return self.said["url"]

    async def set_faults(self, rules: Sequence[Mapping[str, object]]) -> None:
        """Put these rules in force (see `faults.FaultRule`) and count requests from 1 again; `[]` ends them all."""
        await self.call("POST", "faults", list(rules))

    async def requests(self) -> list[dict[str, object]]:
        """Return the requests to the service so far, oldest first.

        Each has number, method, path, query, options, headers, body, status, fault. `options` is the decoded query;
        `status` is `None` where no answer was sent.
        """
        return cast("list[dict[str, object]]", json.loads(await self.call("GET", "requests")))

    async def forget_requests(self) -> None:
        """Empty the log of requests."""
        await self.call("DELETE", "requests")

    async def call(self, method: str, path: str, body: object = None) -> bytes:
        """Return what the control side answers.

        Raises:
            EmulatorError: it refused.
        """
        content = None if body is None else json.dumps(body)
        response = await self.control.request(method, path, content=content)
        if response.status_code >= 400:
            raise EmulatorError(response.text)
        return response.content


@asynccontextmanager
async def running_process(module: str, arguments: Sequence[str]) -> AsyncGenerator[RunningProcess]:
    """Run an emulator in a process of its own, with this interpreter, while the block runs.

    It listens before the block starts and is gone when the block has ended, however it ended; it also ends by itself
    when this process dies.

    Raises:
        EmulatorError: it ended, or was not listening after 30 s.
    """
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile() as errors:
        process = await anyio.open_process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=REPOSITORY
        )
        try:
            said = await _read_first_line(process, errors)
            # Plain HTTP on loopback: without `verify` no trust store is read, which costs more than a request.
            async with httpx2.AsyncClient(
                base_url=said["control"], trust_env=False, verify=False, timeout=30
            ) as control:
                yield RunningProcess(process.pid, said, control)
        finally:
            with anyio.CancelScope(shield=True):
                await _stop(process)


def name_file(option: str, path: Path | None) -> list[str]:
    """Return the arguments that name a file to an emulator's process, which runs in a folder of its own choice."""
    return [] if path is None else [option, str(path.resolve())]


async def _read_first_line(process: Process, errors: IO[bytes]) -> dict[str, str]:
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
