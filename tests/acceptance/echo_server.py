"""Serves the echo toolsets over stdio as a process of its own, noisily."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import anyio

from refdesk.core.context import Context
from refdesk.core.operations import Toolset
from refdesk.server.process import serve_stdio
from refdesk.settings import load_settings
from tests.server import echo


async def shout(context: Context, asked: echo.GetInput) -> echo.Said:
    print("stray output of a handler")  # noqa: T201 - this is what must not reach the client
    os.write(1, b"stray bytes of a handler\n")
    await anyio.run_process([sys.executable, "-c", "print('stray output of a child')"], stdout=None)
    return await echo.get(context, asked)


def main() -> None:
    search, get, fail = echo.NESTED.operations
    noisy = Toolset(
        name="echo",
        description="Echoes.",
        listed=(search, replace(get, handler=shout), fail),
        load_rest=echo.NESTED.load_rest,
    )
    serve_stdio(load_settings(), [noisy], "a test")


if __name__ == "__main__":
    main()
