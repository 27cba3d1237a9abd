"""`refdesk logs`: shows what the desks of this data folder log."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from refdesk.cli.desk import list_desks, list_running
from refdesk.cli.views_of_entries import printable
from refdesk.forwarder import identity, rendezvous

if TYPE_CHECKING:
    from collections.abc import Generator

LOOK_SECONDS = 0.3
PIECE_BYTES = 65536
ELSEWHERE = (
    "A server runs, started with refdesk serve (process {}). It writes to its own standard error and not here: look in "
    "the terminal where it was started, or in what the system keeps of it, such as journalctl or docker logs."
)
_FACTS = frozenset({"time", "level", "message", "logger"})


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on with what is written from now on, until Ctrl-C.")
@click.option("--lines", "-n", "most", default=50, show_default=True, type=click.IntRange(0), help="The last so many.")
@click.option("--json", "as_json", is_flag=True, help="Print the entries as they are written, as JSON.")
def logs(follow: bool, most: int, as_json: bool) -> None:
    """Print what the desk of this data folder wrote down last, oldest first.

    A server that was started with refdesk serve writes to its own standard error, and not here.
    """
    path, servers = find_log(), list_servers()
    for pid in servers:
        click.echo(ELSEWHERE.format(pid), err=True)
    if path is None:
        if not servers:
            click.echo(f"No desk has run for {identity.find_home()}, so there is no log.", err=True)
        return
    with suppress(KeyboardInterrupt), closing(read_on(path, most)) as lines:
        for line in lines:
            if line is not None:
                click.echo(line if as_json else tell(line))
            elif not follow:
                return
            else:
                time.sleep(LOOK_SECONDS)


def list_servers() -> list[int]:
    """Return the ids of processes that serve this data folder over HTTP, and therefore log elsewhere."""
    if all(found.kind != "http" for _, found in list_desks()):
        return []
    return [int(each["pid"]) for each in list_running() if each["kind"] == "http"]


def find_log() -> Path | None:
    """Return the desk log that was written to most recently, or `None` if there is none."""
    folder = Path(identity.find_home()) / rendezvous.FOLDER
    return max(folder.glob("*.log"), key=lambda each: each.stat().st_mtime, default=None)


def read_on(path: Path, most: int) -> Generator[str | None]:
    """Yield the last lines of a log, including those of the previous file if it is short, and then new lines.

    `None` is yielded whenever there is nothing more at the moment. A full file may be replaced by a new one.
    """
    file = path.open("rb")
    try:
        *lines, left = file.read().split(b"\n")
        before = path.with_name(f"{path.name}.old")
        if len(lines) < most and before.is_file():
            lines = [*before.read_bytes().splitlines(), *lines]
        yield from map(_decode, lines[-most:] if most else [])
        while True:
            if piece := file.read(PIECE_BYTES):
                *lines, left = (left + piece).split(b"\n")
                yield from map(_decode, lines)
            elif _is_another(file.fileno(), path):
                file.close()
                file, left = path.open("rb"), b""
            else:
                yield None
    finally:
        file.close()


def _decode(line: bytes) -> str:
    return line.decode(errors="replace")


def _is_another(number: int, path: Path) -> bool:
    with suppress(OSError):
        return not os.path.samestat(os.fstat(number), path.stat())
    return False


def tell(line: str) -> str:
    """Return a log entry for a person to read, without terminal control characters; any other line as it is."""
    try:
        entry: dict[str, Any] = json.loads(line)
        facts = [f"{name}={_write(value)}" for name, value in entry.items() if name not in _FACTS]
        told = f"{str(entry['time'])[:19].replace('T', ' ')}  {entry['level']:<7}  {entry['message']}"
        text = "  ".join([told, *facts])
    except (ValueError, KeyError, AttributeError):
        text = line
    return printable(text).replace("\n", "\n    ")


def _write(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
