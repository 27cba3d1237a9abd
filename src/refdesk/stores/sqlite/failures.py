"""Translates SQLite's errors."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import apsw

from refdesk.errors import InvalidInputError, StoreError

_MEANINGS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    (
        (apsw.BusyError, apsw.LockedError),
        "Another process held the store too long. Try again; if it stays so, look for a process that hangs.",
    ),
    ((apsw.FullError,), "The disk that holds the store is full. Free some space and try again."),
    (
        (apsw.CorruptError, apsw.FormatError),
        "The store's file is damaged. Stop every process that uses it and restore it from a backup.",
    ),
    (
        (apsw.NotADBError,),
        "The store's file is not a SQLite database. Choose another file or restore it from a backup.",
    ),
    (
        (apsw.ReadOnlyError, apsw.PermissionsError),
        "The store cannot be written: its file or its folder is read-only for this process.",
    ),
    ((apsw.CantOpenError,), "The store's file cannot be opened. Check that its folder exists and may be written."),
    (
        (apsw.IOError,),
        "Reading or writing the store's file failed. Check the disk; what was acknowledged before is kept.",
    ),
    ((apsw.TooBigError,), "A value is larger than the store can hold."),
)


@contextmanager
def translated() -> Generator[None, None, None]:
    """Run the block; whatever SQLite or the file system raises in it leaves as an error of refdesk.

    Raises:
        StoreError: SQLite failed or refused; the cause is chained, the message names no path.
        InvalidInputError: A text holds half of a surrogate pair.
    """
    try:
        yield
    except apsw.Error as error:
        raise StoreError(describe(error)) from error
    except UnicodeEncodeError as error:
        raise InvalidInputError("A text holds a lone surrogate, which cannot be stored or looked up.") from error
    except OSError as error:
        raise StoreError(f"The store's file or folder cannot be used: {error.strerror}.") from error


def describe(error: apsw.Error) -> str:
    """Return one or two sentences on what happened and what to do next."""
    for kinds, meaning in _MEANINGS:
        if isinstance(error, kinds):
            return meaning
    return f"The store failed ({type(error).__name__}). The server's log has the details."
