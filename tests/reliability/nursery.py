"""A process that has imported the command and starts it by forking, since importing it takes most of a start.

`python -m tests.reliability.nursery` takes one order a line, as JSON: the command's `arguments`, its `home`, the `log`
(a named pipe) that its stdout and stderr go to, and perhaps `calls`: then it is killed in place of so many-th write,
truncation, sync or removal on the disk. It says the child's process id, and then, once that is gone, its status.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from importlib import import_module
from itertools import count
from typing import Any

import anyio

from refdesk import cli
from refdesk.factories.toolsets import load_toolsets
from tests.reliability import careless_move, early, early_watermark
from tests.reliability.disk import Call, watch
from tests.reliability.lives import CARELESS_MOVE, EARLY, EARLY_WATERMARK

NEEDED = (
    *("refdesk.server.process", "refdesk.server.http", "refdesk.stores.sqlite", "refdesk.core.background.syncing"),
    *("refdesk.toolsets.azure_updates.source", "refdesk.toolsets.azure_updates.records", "refdesk.embedders.hashing"),
)
"""Modules that the command imports when it needs them. None of them may start a thread, which a fork would lose."""

FAULTY: dict[str, Callable[[], Awaitable[None]]] = {
    EARLY: early.serve,
    EARLY_WATERMARK: early_watermark.sync,
    CARELESS_MOVE: careless_move.move,
}


def die_at(calls: int) -> None:
    numbers = count(1)

    def die(_: Call) -> None:
        if next(numbers) >= calls:
            os.kill(os.getpid(), signal.SIGKILL)

    watch(die)


def live(order: dict[str, Any]) -> None:
    log = os.open(order["log"], os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if order["calls"] is not None:
        die_at(order["calls"])
    os.environ["REFDESK_HOME"] = order["home"]
    sys.argv = ["refdesk", *order["arguments"]]
    if order["arguments"][0] in FAULTY:
        anyio.run(FAULTY[order["arguments"][0]])
    else:
        cli.main()


def say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    load_toolsets()
    for module in NEEDED:
        import_module(module)
    assert threading.active_count() == 1
    say("ready")
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            live(json.loads(line))
            os._exit(0)
        say(child)
        say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
