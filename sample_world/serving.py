"""How an emulator serves: one line of JSON when it listens, and an end that nothing can prevent."""

from __future__ import annotations

import argparse
import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from sample_world.control import CONTROL_PATH
from sample_world.delivery import ConnectionProtocol


def add_listening_arguments(parser: argparse.ArgumentParser) -> None:
    """Let the parser take what every emulator takes: `--host`, `--port` and `--faults`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one (default)")
    parser.add_argument("--faults", type=Path, help="JSON file with a list of fault rules")


def serve(options: argparse.Namespace, build: Callable[[str], tuple[Starlette, Mapping[str, str]]]) -> None:
    """Serve until SIGTERM, SIGINT or, where standard input is a pipe, its end.

    One line goes to standard output as soon as connections are taken: a JSON object with `control`, the address of the
    control side, and what the emulator itself has to say.

    Args:
        options: Has `host` and `port`.
        build: Takes the origin that is listened on; returns the application and what to say.
    """
    listener = _listen(options.host, options.port)
    host, port = listener.getsockname()[:2]
    origin = f"http://{host}:{port}"
    application, said = build(origin)
    config = uvicorn.Config(
        application, http=ConnectionProtocol, ws="none", log_level="critical", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    _stop_at_end_of_input(server)
    print(json.dumps({**said, "control": origin + CONTROL_PATH}), flush=True)
    server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    # With the protocol said, asyncio sends small answers at once; else each would wait some 40 ms for more.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def load_json(path: Path) -> object:
    """Return what a JSON file holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def _stop_at_end_of_input(server: uvicorn.Server) -> None:
    # A parent that dies closes its end of the pipe, so no emulator outlives the test run that started it.
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=_watch_input, args=(server,), daemon=True).start()


def _watch_input(server: uvicorn.Server) -> None:
    while os.read(0, 4096):
        pass
    server.should_exit = server.force_exit = True
