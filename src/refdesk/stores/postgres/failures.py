"""Translates the driver's errors. No message repeats the driver's, which may hold SQL or hosts."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import errors as pg

from refdesk.core.keeping.moves import MOVED, REFUSED
from refdesk.errors import InvalidInputError, StoreError

HELD = "Another transaction held the store too long. Try again; if it stays so, look for a process that hangs."
LOST = (
    "The connection to the database was lost or could not be made. What was acknowledged before is kept; try again, "
    "and check that the server runs and that REFDESK_STORE names its user, password and database."
)
UNCERTAIN = (
    "The connection to the database was lost while a change was being committed: it may have been written or not. "
    "Repeat it only if that is harmless."
)
BUSY = "No connection to the database came free in time. Try again; if it stays so, look at its load."
SLOW = "The database did not answer in time. Try again; if it stays so, look at its load."

NONE_WRITABLE = (
    "None of the servers that REFDESK_STORE names takes writes. What was acknowledged before is kept; try again, and "
    "if it stays so, promote a standby, or name the primary server, too."
)
FULL = (
    "The database takes no more connections. Try again; if it stays so, raise max_connections or the limit of "
    "refdesk's role, or end what holds them: each process of refdesk needs up to ten."
)
NO_TLS = (
    "No TLS connection to the database could be made: check sslmode and sslrootcert in REFDESK_STORE, and the server's "
    "certificate, which must be valid and name its host."
)
NO_ENTRY = (
    "The database does not let refdesk in: check the user, the password and the database that REFDESK_STORE names, and "
    "what pg_hba.conf asks of them."
)
_REFUSALS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("session is read-only", "server is in hot standby mode"), NONE_WRITABLE),
    (("too many clients", "too many connections", "remaining connection slots"), FULL),
    (("authentication failed", "no password supplied", "pg_hba.conf", "FATAL:  role", "FATAL:  database"), NO_ENTRY),
    (("not support SSL", "certificate"), NO_TLS),
)
"""What the texts of refused connections hold, which come without a code; a server with another language has others."""

_MEANINGS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure), HELD),
    ((pg.QueryCanceled,), SLOW),
    ((pg.IdleInTransactionSessionTimeout,), "A transaction stood idle too long and was undone. Repeat all of it."),
    ((pg.InFailedSqlTransaction,), "An earlier failure has undone this transaction. Repeat all of it."),
    ((pg.DiskFull,), "The disk that holds the database is full. Free some space and try again."),
    ((pg.TooManyConnections,), BUSY),
    (
        (pg.InsufficientPrivilege,),
        "The database's role may not do this: it must own the tables and may not be limited to reading.",
    ),
    (
        (pg.ReadOnlySqlTransaction,),
        "The database takes no writes: name the primary server in REFDESK_STORE, not a standby, with a role and a "
        "database whose default_transaction_read_only is off.",
    ),
    (
        (pg.TransactionTimeout,),
        "The server ended a transaction at its transaction_timeout: set that to 0 for refdesk's role.",
    ),
    (
        (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedObject),
        "The database does not have refdesk's tables as this version needs them. If a newer version has changed them, "
        "start this server anew with that one; otherwise restore the database from a backup.",
    ),
    ((psycopg.OperationalError, psycopg.InterfaceError, OSError), LOST),
)


@contextmanager
def translated() -> Generator[None, None, None]:
    """Run the block; whatever the driver raises in it leaves it as an error of refdesk.

    Raises:
        StoreError: The database failed, refused or cannot be reached; the cause is chained.
        InvalidInputError: A text cannot be stored or looked up.
    """
    try:
        yield
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            "A text holds a lone surrogate, which cannot be stored or looked up: leave it out."
        ) from error
    except pg.ProgramLimitExceeded as error:
        raise InvalidInputError("A value is longer than the database can hold: shorten it.") from error
    except psycopg.DataError as error:
        raise InvalidInputError(
            "A value cannot be stored or looked up, such as a text with a NUL: leave it out."
        ) from error
    except (psycopg.Error, OSError) as error:
        raise StoreError(describe(error)) from error


def describe(error: Exception) -> str:
    """Return one or two sentences on what happened and what to do next."""
    if isinstance(error, pg.RaiseException) and MOVED in str(error):
        return REFUSED
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        text = str(error)
        return next((meaning for parts, meaning in _REFUSALS if any(part in text for part in parts)), LOST)
    for kinds, meaning in _MEANINGS:
        if isinstance(error, kinds):
            return meaning
    return f"The database failed ({type(error).__name__}). The server's log has the details."
