"""What SQLite asks of the disk, watched from below: each write, truncation, sync and removal of this process's files.

The watcher stands in SQLite's own table of file functions (its C interface for operating systems, `sqlite3_vfs` and
`sqlite3_io_methods`), so everything above runs as it is: any number of connections, the write-ahead log and its shared
memory included. It cannot be taken away again, so it belongs into a process of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import apsw

Kind: TypeAlias = Literal["write", "truncate", "sync", "remove"]


@dataclass(frozen=True)
class Call:
    """One call that changes what a loss of power would leave, as it is about to be carried out.

    Attributes:
        path: The file's name, without its folder.
        offset: Of a `write`; of a `truncate`, the new length; of a `remove`, whether the folder is synced after it.
    """

    kind: Kind
    path: str
    offset: int = 0
    data: bytes = b""


Watcher: TypeAlias = Callable[[Call], None]

_INT, _POINTER, _LONG = ctypes.c_int, ctypes.c_void_p, ctypes.c_int64
# A path is handed on as the pointer it is: SQLite keeps more of it before and behind the text.
_OPEN = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _POINTER, _INT, _POINTER)
_DELETE = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _INT)
_CLOSE = ctypes.CFUNCTYPE(_INT, _POINTER)
_WRITE = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _INT, _LONG)
_TRUNCATE = ctypes.CFUNCTYPE(_INT, _POINTER, _LONG)
_SYNC = ctypes.CFUNCTYPE(_INT, _POINTER, _INT)
_VFS_POINTER = 27
"""The file control that asks a connection for its `sqlite3_vfs`."""


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", _INT),
        ("file_size", _INT),
        ("longest_path", _INT),
        ("next", _POINTER),
        ("name", ctypes.c_char_p),
        ("data", _POINTER),
        ("open", _POINTER),
        ("delete", _POINTER),
    ]


class _Methods(ctypes.Structure):
    """The beginning is replaced; what follows (locks, shared memory) is copied as it is."""

    _fields_ = [
        ("version", _POINTER),
        ("close", _POINTER),
        ("read", _POINTER),
        ("write", _POINTER),
        ("truncate", _POINTER),
        ("sync", _POINTER),
        ("others", _POINTER * 13),
    ]


class _File(ctypes.Structure):
    _fields_ = [("methods", ctypes.POINTER(_Methods))]


_kept: list[object] = []
"""SQLite holds pointers to these until the process ends."""


def watch(watcher: Watcher) -> None:
    """Have `watcher` called before each call on any file that SQLite opens from now on, in the thread that makes it."""
    vfs = _find_vfs()
    open_file, delete = _OPEN(_get(vfs, "open")), _DELETE(_get(vfs, "delete"))
    tables: dict[int, _Methods] = {}
    names: dict[int, str] = {}

    def opened(this: int, path: int | None, file: int, flags: int, out_flags: int) -> int:
        status = open_file(this, path, file, flags, out_flags)
        if status == 0 and path is not None:
            names[file] = _name(path)
            handle = _File.from_address(file)
            address = ctypes.cast(handle.methods, _POINTER).value or 0
            if address not in tables:
                tables[address] = _replace_methods(handle.methods.contents, names, watcher)
            handle.methods = ctypes.pointer(tables[address])
        return status

    def deleted(this: int, path: int, is_synced: int) -> int:
        watcher(Call("remove", _name(path), is_synced))
        return delete(this, path, is_synced)

    _set(vfs, "open", _OPEN(opened))
    _set(vfs, "delete", _DELETE(deleted))
    _kept.append(tables)


def _find_vfs() -> _Vfs:
    address = ctypes.c_void_p()
    connection: Any = apsw.Connection(":memory:")
    assert connection.file_control("main", _VFS_POINTER, ctypes.addressof(address))
    connection.close()
    return _Vfs.from_address(address.value or 0)


def _replace_methods(own: _Methods, names: dict[int, str], watcher: Watcher) -> _Methods:
    """Return a table like `own` whose functions tell the watcher first."""
    write, truncate, sync = _WRITE(_get(own, "write")), _TRUNCATE(_get(own, "truncate")), _SYNC(_get(own, "sync"))

    def written(file: int, data: int, size: int, offset: int) -> int:
        watcher(Call("write", names[file], offset, ctypes.string_at(data, size)))
        return write(file, data, size, offset)

    def truncated(file: int, size: int) -> int:
        watcher(Call("truncate", names[file], size))
        return truncate(file, size)

    def synced(file: int, flags: int) -> int:
        watcher(Call("sync", names[file]))
        return sync(file, flags)

    table = _Methods.from_buffer_copy(own)
    _set(table, "write", _WRITE(written))
    _set(table, "truncate", _TRUNCATE(truncated))
    _set(table, "sync", _SYNC(synced))
    return table


def _get(table: ctypes.Structure, name: str) -> int:
    return getattr(table, name)


def _set(table: ctypes.Structure, name: str, function: Any) -> None:  # noqa: ANN401 - ctypes' own type is private
    _kept.append(function)
    setattr(table, name, ctypes.cast(function, _POINTER))


def _name(path: int) -> str:
    return Path(ctypes.string_at(path).decode()).name
