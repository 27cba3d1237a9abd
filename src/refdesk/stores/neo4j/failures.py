"""Translates the driver's errors."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from neo4j import exceptions

from refdesk.errors import ConflictError, InvalidInputError, RefdeskError, StoreError

UNREACHABLE = "The database server of the store cannot be reached, or stopped answering. Try again later."
BEHIND = (
    "The database answers, but lacks what was committed to it. If an older dump was loaded, restart refdesk; a cluster "
    "may have yet to catch up."
)
SET_BACK = "The database was set back to an older state than refdesk has seen, as by loading a dump. Restart refdesk."
SLOW = "The database took too long and was given up. Try again later."
UNKNOWN_OUTCOME = (
    "The connection to the database was lost while it was writing: whether it kept the change is unknown. "
    "Look whether it is there before you repeat it."
)
UNSURE = (
    "The database failed while it was keeping the change: whether it did is unknown. See its log, and look whether the "
    "change is there before you repeat it."
)
UNDONE = "The database undid the change. Repeat all of it."
ENDED = f"An earlier failure ended this transaction. {UNDONE}"
READ_ONLY = (
    "The database takes no writes: it is set to be read only. Let it take them, or name another in the store's URL."
)
BROKEN = "The database has failed and works again only once it is restarted, as after its disk was full; see its log."
_CONSTRAINED = (
    "A constraint that another application made in the database forbids the change. Give refdesk a database of its "
    "own, or drop the constraint: see SHOW CONSTRAINTS."
)
_OWN_KEY = "`space`"
"""Is in what the server says of a violated constraint of refdesk: each of those includes the namespace."""

_STOPPED = "The database is not available: it was stopped, or is still starting. Try again later; see its log."
_REFUSED = "The database refused the user or the password, or the user may not do this. Check the store's URL."
_LOCKED_OUT = (
    "The database lets this user in no more for some seconds, after several wrong passwords. Check the password in the "
    "store's URL, wherever refdesk or another program signs in with it, and try again."
)
_EXPIRED = (
    "The user's password must be changed first, as that of a new server's first user: ALTER CURRENT USER SET PASSWORD. "
    "Then put the new one into the store's URL."
)

_LOST = (exceptions.ServiceUnavailable, exceptions.SessionExpired, exceptions.ConnectionPoolError, OSError)
_MEANINGS: tuple[tuple[str, str], ...] = (
    ("Neo.ClientError.Security.AuthenticationRateLimit", _LOCKED_OUT),
    ("Neo.ClientError.Security.CredentialsExpired", _EXPIRED),
    ("Neo.ClientError.Security.", _REFUSED),
    ("Neo.ClientError.Transaction.TransactionTimedOut", SLOW),
    ("Neo.ClientError.Transaction.LockClientStopped", SLOW),
    ("Neo.TransientError.Transaction.LockAcquisitionTimeout", SLOW),
    ("Neo.ClientError.Database.DatabaseNotFound", "The store's URL names a database that the server does not have."),
    ("Neo.TransientError.General.MemoryPoolOutOfMemoryError", "The change is too large for the database's memory."),
    ("Neo.TransientError.General.DatabaseUnavailable", _STOPPED),
    ("Neo.ClientError.General.WriteOnReadOnlyAccessDatabase", READ_ONLY),
    ("Neo.TransientError.", f"The database was busy. {UNDONE}"),
    ("Neo.DatabaseError.Transaction.TransactionStartFailed", BROKEN),
)
"""Prefixes of the server's error codes with their meanings, the specific ones before the general."""


@contextmanager
def translated() -> Generator[None, None, None]:
    """Run the block; whatever the driver raises in it is translated into an error of refdesk.

    Raises:
        StoreError: The database failed, refused or is gone; the message names no statement, address or secret.
        ConflictError: Another wrote the same thing at the same time.
        InvalidInputError: A text holds half of a surrogate pair.
    """
    try:
        yield
    except (exceptions.Neo4jError, exceptions.DriverError, OSError) as error:
        raise describe(error) from error
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            "A text holds a lone surrogate, which cannot be stored or looked up: leave it out."
        ) from error


def describe(error: Exception) -> RefdeskError:
    """Return an error of the driver, or of the network under it, as the error that a caller gets."""
    if isinstance(error, TimeoutError):
        return StoreError(SLOW)
    if isinstance(error, _LOST):
        return StoreError(UNREACHABLE)
    if isinstance(error, exceptions.TransactionError):
        return StoreError(ENDED)
    if isinstance(error, exceptions.ConstraintError):
        if _OWN_KEY not in (error.message or ""):
            return StoreError(_CONSTRAINED)
        return ConflictError("It changed at the same time. Read it again and repeat the change.")
    code = (error.code or "") if isinstance(error, exceptions.Neo4jError) else ""
    for beginning, meaning in _MEANINGS:
        if code.startswith(beginning):
            return StoreError(meaning)
    if isinstance(error, exceptions.AuthError | exceptions.Forbidden):
        return StoreError(_REFUSED)
    return StoreError(
        f"The database failed ({type(error).__name__}). Try again later; the server's log has the details."
    )


def describe_commit(error: Exception) -> RefdeskError:
    """Return an error that ended a commit; after some nobody knows whether it was kept."""
    described = describe(error)
    if isinstance(described, StoreError) and described.message in (UNREACHABLE, SLOW):
        return StoreError(UNKNOWN_OUTCOME)
    # A server whose disk is full fails so, and has kept the change when it is started again.
    is_failure = isinstance(error, exceptions.Neo4jError) and (error.code or "").startswith("Neo.DatabaseError.")
    return StoreError(UNSURE) if is_failure else described


def is_passing(error: Exception) -> bool:
    """Return whether the same read may well succeed on a new connection, or a moment later."""
    if isinstance(error, exceptions.Neo4jError | exceptions.DriverError):
        return error.is_retryable() or isinstance(error, exceptions.ServiceUnavailable)
    return isinstance(error, OSError) and not isinstance(error, TimeoutError)
