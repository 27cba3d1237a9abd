"""Runs the emulator as a process of its own: `python -m sample_world.azure_updates --port 0`."""

from __future__ import annotations

import argparse
import json
import os
import socket
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from sample_world.azure_updates.delivery import ConnectionProtocol
from sample_world.azure_updates.emulator import CONTROL_PATH, FEED_PATH, Emulator, read_world
from sample_world.azure_updates.faults import parse_rules


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT or, where standard input is a pipe, its end.

    One line goes to standard output as soon as connections are taken: a JSON object with `url`, the address of the
    feed, and `control`, the address of the control side.
    """
    options = _parse_arguments(arguments)
    emulator = Emulator(
        read_world({"day": options.day} if options.records is None else _load(options.records)),
        parse_rules([] if options.faults is None else _load(options.faults)),
    )
    listener = socket.create_server((options.host, options.port), backlog=128)
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(
        emulator.build_application(),
        http=ConnectionProtocol,
        ws="none",
        log_level="critical",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    _stop_at_end_of_input(server)
    origin = f"http://{host}:{port}"
    print(json.dumps({"url": origin + FEED_PATH, "control": origin + CONTROL_PATH}), flush=True)
    server.run(sockets=[listener])


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m sample_world.azure_updates", description="An emulator of the release communications API."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one (default)")
    parser.add_argument("--day", type=int, choices=(1, 2), default=1, help="state of the sample world (default: 1)")
    parser.add_argument("--records", type=Path, help="serve the records of this JSON file instead of the sample world")
    parser.add_argument("--faults", type=Path, help="JSON file with a list of fault rules")
    return parser.parse_args(arguments)


def _load(path: Path) -> object:
    return json.loads(path.read_text(encoding="utf-8"))


def _stop_at_end_of_input(server: uvicorn.Server) -> None:
    # A parent that dies closes its end of the pipe, so no emulator outlives the test run that started it.
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=_watch_input, args=(server,), daemon=True).start()


def _watch_input(server: uvicorn.Server) -> None:
    while os.read(0, 4096):
        pass
    server.should_exit = server.force_exit = True


if __name__ == "__main__":
    main()
