"""Imports and exports an org's knowledge: the toolset's only module that touches files."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO, assert_never

import anyio.to_thread

from refdesk.errors import InvalidInputError, OperatorError, TooLargeError
from refdesk.toolsets.knowledge.transfer import basic_memory, jsonl, markdown, mcp_memory, mem0
from refdesk.toolsets.knowledge.transfer.intake import Intake, Line, NamedText
from refdesk.toolsets.knowledge.transfer.planning import apply_plan, plan_import
from refdesk.toolsets.knowledge.transfer.reports import (
    ExportFormat,
    ExportReport,
    ImportFormat,
    ImportReport,
    Progress,
    printable,
)
from refdesk.toolsets.knowledge.transfer.snapshot import take_snapshot

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.toolsets.knowledge.transfer.entries import Entry

LONGEST_LINE = 16 * 1024 * 1024
LARGEST_FILE = 256 * 1024 * 1024
"""The largest file, in bytes, of a format that is a single JSON text; other formats are read piece by piece."""

DEEPEST_FOLDER = 32

_SUFFIX = ".md"


async def export_entries(
    base: KnowledgeBase, org: str, target: Path | TextIO, format: ExportFormat, progress: Progress | None = None
) -> ExportReport:
    """Write every entry of an org, in every state, as one transaction sees them, without their version histories.

    A file or folder gets its name only once it is complete. A file replaces one that was there; a folder must not exist
    yet or be empty. Nothing is left behind on failure. The same entries always yield the same bytes.

    Args:
        target: The file (`jsonl`) or folder (`markdown`); for `jsonl` also a stream, which is written after the store
            has been read, and is neither flushed nor closed.
        progress: Called while the store is read.

    Raises:
        InvalidInputError: The target is of the wrong kind, or a folder that is not empty.
        OperatorError: It cannot be written.
        StoreError: The store failed; nothing was written.
    """
    if format == "markdown" and not isinstance(target, Path):
        raise InvalidInputError("Markdown is exported to a folder, one file an entry: name a folder.")
    if isinstance(target, Path):
        await anyio.to_thread.run_sync(_check_target, target, format)
    snapshot = await take_snapshot(base.store, org, progress)
    await anyio.to_thread.run_sync(_write, target, format, snapshot.entries)
    return ExportReport(
        format=format,
        entries=len(snapshot.entries) - sum(entry.erased_at is not None for entry in snapshot.entries),
        links=sum(len(entry.links) for entry in snapshot.entries),
        superseded=sum(entry.superseded_by is not None and entry.erased_at is None for entry in snapshot.entries),
        problems=tuple(snapshot.problems),
    )


async def import_entries(
    base: KnowledgeBase,
    org: str,
    author: str,
    source: Path,
    format: ImportFormat,
    dry_run: bool,
    progress: Progress | None = None,
) -> ImportReport:
    """Add the entries of a file or folder to an org, and report what was added and what was not, and why.

    Entries keep their ids, authors, dates, chains and links, and count towards the quota. Importing twice adds nothing.
    Stored entries are never changed: different content under a stored id is a conflict. Symbolic links are not
    followed.

    Args:
        author: The author of entries whose source names none.
        source: A folder for `markdown` and `basic-memory`, else a file.
        dry_run: Only report what would be done.
        progress: Called after each transaction.

    Raises:
        InvalidInputError: The source is missing, of the wrong kind or of another format; nothing was imported.
        TooLargeError: It is larger than the limit; nothing was imported.
        OperatorError: It cannot be read; nothing was imported.
        StoreError: The store failed; importing again adds what is missing.
    """
    intake = Intake(format, author, base.clock.now())
    await anyio.to_thread.run_sync(_read, source, intake)
    plan = await plan_import(base, org, intake)
    return plan.report if dry_run else await apply_plan(base, plan, progress)


def _check_target(target: Path, format: ExportFormat) -> None:
    with _explained("written"):
        if format == "jsonl" and target.is_dir():
            raise InvalidInputError("JSON lines are exported to a file, and this is a folder: name a file.")
        if format == "markdown" and (target.exists() or target.is_symlink()):
            if target.is_symlink() or not target.is_dir():
                raise InvalidInputError("Markdown is exported to a folder, and this is none: name a new folder.")
            if any(target.iterdir()):
                raise InvalidInputError("This folder is not empty, and an export replaces nothing: name a new one.")


def _write(target: Path | TextIO, format: ExportFormat, entries: Sequence[Entry]) -> None:
    with _explained("written"):
        if not isinstance(target, Path):
            target.writelines(jsonl.write(entries, len(entries)))
        elif format == "jsonl":
            _write_file(target, jsonl.write(entries, len(entries)))
        else:
            _write_folder(target, entries)


def _write_file(target: Path, lines: Iterable[str]) -> None:
    partial = _name_partial(target)
    try:
        with partial.open("xb") as file:
            file.writelines(line.encode() for line in lines)
            _flush(file)
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _flush_folder(target.parent)


def _write_folder(target: Path, entries: Sequence[Entry]) -> None:
    partial = _name_partial(target)
    try:
        partial.mkdir()
        for entry in entries:
            with (partial / markdown.name_file(entry)).open("xb") as file:
                file.write(markdown.write(entry).encode())
        # Flushing the first file makes many others durable too, so this is faster than flushing each as it is written.
        for path in partial.iterdir():
            with path.open("rb+") as file:
                _flush(file)
        _flush_folder(partial)
        if target.is_dir():
            target.rmdir()
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _flush_folder(target.parent)


def _name_partial(target: Path) -> Path:
    """Return a new name beside the target, on the same file system, so that renaming is atomic."""
    return target.parent / f".refdesk-{secrets.token_hex(8)}.partial"


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    # Where a folder cannot be opened, making its entries durable is left to the file system.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _read(source: Path, intake: Intake) -> None:
    with _explained("read"):
        match intake.format:
            case "jsonl":
                jsonl.read(_read_lines(source), intake)
            case "mcp-memory":
                mcp_memory.read(_read_lines(source), intake)
            case "mem0":
                mem0.read(_read_whole(source), intake)
            case "markdown":
                markdown.read(_read_folder(source, intake), intake)
            case "basic-memory":
                basic_memory.read(_read_folder(source, intake), intake)
            case _:
                assert_never(intake.format)


@contextmanager
def _explained(verb: str) -> Generator[None]:
    """Translate errors of the operating system into refdesk's, which name no path; not that of a closed pipe."""
    try:
        yield
    except UnicodeEncodeError:
        raise OperatorError("The output does not take UTF-8: export to a file, or set the stream to UTF-8.") from None
    except BrokenPipeError:
        raise  # whoever reads the output has seen enough
    except OSError as error:
        raise OperatorError(
            f"It cannot be {verb} ({error.strerror or 'the system refused'}): choose another place."
        ) from None


@contextmanager
def _open_file(path: Path) -> Generator[IO[bytes]]:
    if not path.exists():
        raise InvalidInputError("There is no such file: check its name.")
    if not path.is_file():
        raise InvalidInputError("This is not a file, and the format is one: name a file, or choose another format.")
    with path.open("rb") as file:
        yield file


def _read_whole(path: Path) -> bytes:
    with _open_file(path) as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise TooLargeError(f"The file is larger than {LARGEST_FILE} bytes: export it in parts and import each.")
    return data


def _read_lines(path: Path) -> Iterator[Line]:
    with _open_file(path) as file:
        number = 0
        while data := file.readline(LONGEST_LINE + 1):
            number += 1
            is_cut = len(data) > LONGEST_LINE
            rest = data
            while is_cut and rest and not rest.endswith(b"\n"):
                rest = file.readline(LONGEST_LINE)
            yield Line(number, b"" if is_cut else data.removesuffix(b"\n"), is_cut)


def _read_folder(folder: Path, intake: Intake) -> Iterator[NamedText]:
    """Yield the Markdown files of a folder and its subfolders, by path, and note whatever else is there."""
    if not folder.is_dir():
        is_there = folder.exists()
        raise InvalidInputError(
            "This is not a folder, and the format is one: name a folder, or choose another format."
            if is_there
            else "There is no such folder: check its name."
        )
    waiting = [(folder, "")]
    while waiting:
        at, prefix = waiting.pop()
        folders: list[tuple[Path, str]] = []
        for item in _list_folder(at, prefix, intake):
            path = f"{prefix}{os.fsencode(item.name).decode(errors='backslashreplace')}"
            if reason := _refuse(item, prefix):
                intake.leave_out(printable(path), reason)
            elif item.is_dir(follow_symlinks=False):
                folders.append((Path(item.path), f"{path}/"))
            elif file := _read_named(Path(item.path), path, intake):
                yield file
        waiting += reversed(folders)


def _list_folder(folder: Path, prefix: str, intake: Intake) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            return sorted(items, key=lambda item: item.name)
    except OSError as error:
        if not prefix:
            raise
        intake.refuse(printable(prefix), f"cannot be read: {error.strerror}")
        return []


def _refuse(item: os.DirEntry[str], prefix: str) -> str | None:
    """Return why something in a folder is not read, or `None`."""
    if item.is_symlink():
        return "is a symbolic link, which is not followed"
    if item.name.startswith("."):
        return "is hidden, and so not read"
    if item.is_dir(follow_symlinks=False):
        return "is nested too deep" if prefix.count("/") >= DEEPEST_FOLDER else None
    if not item.is_file(follow_symlinks=False) or not item.name.lower().endswith(_SUFFIX):
        return "is not a Markdown file"
    return None


def _read_named(path: Path, name: str, intake: Intake) -> NamedText | None:
    try:
        return _open_named(path, name)
    except OSError as error:
        intake.refuse(printable(name), f"cannot be read: {error.strerror}")
        return None


def _open_named(path: Path, name: str) -> NamedText:
    # Since the listing, the file may have become a link or a pipe: do not follow the one or wait for the other.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        data = file.read(LONGEST_LINE + 1) if stat.S_ISREG(status.st_mode) else b""
    return NamedText(name, data[:LONGEST_LINE], _read_date(status), len(data) > LONGEST_LINE)


def _read_date(status: os.stat_result) -> datetime | None:
    try:
        return datetime.fromtimestamp(status.st_mtime, UTC)
    except (OverflowError, ValueError, OSError):
        return None
