"""What a process did outside of itself, as the kernel saw it: its connections, look-ups and files.

`strace` follows the process and its children; nothing of what it says rests on the word of the program.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_CALLS = "connect,sendto,sendmsg,sendmmsg,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink"
_LINE = re.compile(r"^\d+ +(?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_PORT = re.compile(r'sin6?_port=htons\((\d+)\).*?(?:inet_addr\("|inet_pton\(AF_INET6, ")([^"]+)"')
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LOOK_UPS = ("/run/nscd/", "/run/systemd/resolve/")
_WRITES = ("O_WRONLY", "O_RDWR", "O_CREAT")
_ALWAYS = ("/dev/null", "/dev/tty", "/proc/self/")


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the settings name.

    Attributes:
        ports: Of this machine that may be connected to.
        home: The data folder: the only place where files are written.
        user: The user's own folder, in which nothing but the data folder is even looked at.
    """

    home: Path
    user: Path
    ports: frozenset[int] = frozenset()


def trace(log: Path) -> list[str]:
    """Return what stands before a command so that its deeds are written to a file; skips where there is no `strace`."""
    found = shutil.which("strace")
    if found is None:
        if os.environ.get("CI") == "true" and sys.platform == "linux":
            pytest.fail("strace is not installed")
        pytest.skip("strace is not installed")
    return [found, "-f", "-qq", "-s", "4096", "-e", f"trace={_CALLS}", "-o", str(log)]


def find_violations(log: Path, allowed: Allowed) -> list[str]:
    """Return each line of the log that shows a look-up, a connection or a file that the settings do not name."""
    lines = log.read_text(errors="replace").splitlines()
    assert any("openat(" in line for line in lines), "nothing was traced"
    return [line for line in _join(lines) if _is_violation(line, allowed)]


def _join(lines: list[str]) -> Iterator[str]:
    """Yield the lines, those of calls that another thread interrupted put together again."""
    begun: dict[str, str] = {}
    for line in lines:
        process = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            begun[process] = line.removesuffix("<unfinished ...>")
        elif "<... " in line and process in begun:
            yield begun.pop(process) + line.partition("resumed>")[2].lstrip()
        else:
            yield line
    yield from begun.values()


def _is_violation(line: str, allowed: Allowed) -> bool:
    if "AF_INET" in line or "AF_UNIX" in line:
        return _is_foreign(line, allowed)
    match = _LINE.match(line)
    if match is None or match["call"] in ("sendto", "sendmsg", "sendmmsg", "connect"):
        return False
    paths = [Path(os.path.normpath(path)) for path in _PATH.findall(match["arguments"])]
    return any(_is_outside(path, match["arguments"], match["call"], allowed) for path in paths)


def _is_foreign(line: str, allowed: Allowed) -> bool:
    if any(place in line for place in _LOOK_UPS):
        return "ENOENT" not in line
    address = _PORT.search(line)
    if address is None:
        return False
    port, host = int(address[1]), address[2]
    # A socket for datagrams that is "connected" to port 0 sends nothing: that is how addresses are sorted.
    return not (host in ("127.0.0.1", "::1") and port in allowed.ports | {0})


def _is_outside(path: Path, arguments: str, call: str, allowed: Allowed) -> bool:
    if path.is_relative_to(allowed.home) or str(path).startswith(_ALWAYS):
        return False
    if path.is_relative_to(allowed.user):
        return True
    is_read = call in ("open", "openat") and not any(flag in arguments for flag in _WRITES)
    return not is_read and "__pycache__" not in path.parts and path not in allowed.home.parents
