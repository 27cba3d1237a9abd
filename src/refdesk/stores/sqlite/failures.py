"""Translates SQLite's errors."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import AbstractContextManager

import apsw

from refdesk.core.keeping.moves import MOVED, REFUSED
from refdesk.errors import InvalidInputError, StoreError

FULL = "The disk that holds the store is full. Free some space and try again."


class DamageError(StoreError):
    """What is in the file is not what was written; that does not go away by itself."""


_FULL = {errno.ENOSPC, errno.EDQUOT}
_DAMAGED = (apsw.CorruptError, apsw.FormatError, apsw.NotADBError, UnicodeDecodeError)

_MEANINGS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    (
        (apsw.BusyError, apsw.LockedError),
        "Another process held the store too long. Try again; if it stays so, look for a process that hangs.",
    ),
    ((apsw.FullError,), FULL),
    (
        (apsw.CorruptError, apsw.FormatError),
        "The store's file is damaged. Stop every process that uses it and put back a backup (refdesk restore); refdesk "
        "doctor --deep says what is damaged.",
    ),
    (
        (apsw.NotADBError,),
        "The store's file is not a SQLite database. Choose another file or put back a backup (refdesk restore).",
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


class Damage:
    """The damage found since the file was opened: it does not go away, so the store is unhealthy until it is repaired.

    Attributes:
        is_examined: Whether everything that there was reason to examine was examined.
    """

    def __init__(self) -> None:
        self._found: DamageError | None = None
        self.is_examined = True

    @property
    def is_ruled_out(self) -> bool:
        """Whether nothing was found and nothing is left to examine."""
        return self._found is None and self.is_examined

    def note(self, error: DamageError) -> None:
        """Remember what was found."""
        self._found = error

    def require_none(self) -> None:
        """Return if nothing was found.

        Raises:
            DamageError: Something was found.
        """
        if self._found is not None:
            raise DamageError(self._found.message)


def translated(note: Callable[[DamageError], None] = lambda _: None) -> AbstractContextManager[None]:
    """Run the block; whatever SQLite or the file system raises in it leaves it as an error of refdesk.

    The returned object can be used for one block after another, and for several at once.

    Args:
        note: Called with any damage that shows.

    Raises:
        StoreError: SQLite failed or refused; the cause is chained, the message names no path.
        DamageError: The file is damaged.
        InvalidInputError: A text holds half of a surrogate pair.
    """
    return _Translation(note)


class _Translation(AbstractContextManager[None]):
    """A class rather than a generator, because every statement runs in one."""

    __slots__ = ("_note",)

    def __init__(self, note: Callable[[DamageError], None]) -> None:
        self._note = note

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            self._translate(error)

    def _translate(self, error: BaseException) -> None:
        if isinstance(error, _DAMAGED):
            # Text that is no longer UTF-8 is damage, too.
            damage = DamageError(describe(error if isinstance(error, apsw.Error) else apsw.CorruptError()))
            self._note(damage)
            raise damage from error
        if isinstance(error, DamageError):
            self._note(error)
        elif isinstance(error, apsw.Error):
            raise StoreError(describe(error)) from error
        elif isinstance(error, UnicodeEncodeError):
            said = "A text holds a lone surrogate, which cannot be stored or looked up: leave it out."
            raise InvalidInputError(said) from error
        elif isinstance(error, OSError) and error.errno in _FULL:
            raise StoreError(FULL) from error
        elif isinstance(error, OSError):
            said = f"The store's file or folder cannot be used ({error.strerror}): tell whoever runs the server."
            raise StoreError(said) from error


def describe(error: apsw.Error) -> str:
    """Return one or two sentences on what happened and what to do next."""
    if MOVED in str(error):
        return REFUSED
    for kinds, meaning in _MEANINGS:
        if isinstance(error, kinds):
            return meaning
    return f"The store failed ({type(error).__name__}). The server's log has the details."
