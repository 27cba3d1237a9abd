"""What the servers of the engine tests share: where they listen, and who reads what they say."""

from __future__ import annotations

import ctypes
import signal
import socket
import threading
from typing import IO

_DIE_WITH_PARENT = 1


def find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


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
