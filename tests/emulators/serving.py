"""How the emulators serve that need no event loop: a server with a thread for each request, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def serve(handler: type[BaseHTTPRequestHandler], stop: Callable[[], None]) -> None:
    """Print the port and serve until standard input is closed; `stop` lets go of what still waits then."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()
    stop()
    server.shutdown()
    server.server_close()


@contextmanager
def running(module: str) -> Generator[str]:
    """Yield the address of an emulator, a module that serves when it is run."""
    command = [sys.executable, "-m", module]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()
        process.wait()
