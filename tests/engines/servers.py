"""What the servers of the engine tests share: where they listen, and who reads what they say."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

_DIE_WITH_PARENT = 1
_spawner = ThreadPoolExecutor(1, "spawner")


def find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def spawn(command: Sequence[str], **options: Any) -> subprocess.Popen[str]:  # noqa: ANN401 - those of `Popen`
    """Begin a process on a thread that lives as long as the tests do: for the kernel that thread is its parent, and a
    worker thread, on which tests kill servers and start them again, goes after some seconds without work."""
    return _spawner.submit(subprocess.Popen[str], command, text=True, **options).result()


def read_up(output: IO[str]) -> threading.Thread:
    """Read what a server says until its last process has ended, and close the pipe: a full one would stop it."""
    thread = threading.Thread(target=_read_and_close, args=(output,), daemon=True)
    thread.start()
    return thread


def _read_and_close(output: IO[str]) -> None:
    with output:
        output.read()


def end_with_parent(how: signal.Signals) -> None:
    """Have the kernel end this process when the tests' process is gone, however it went."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, how)
