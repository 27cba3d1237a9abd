"""apsw's connection with the types it lacks, narrowed to what the store uses."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import apsw

Row: TypeAlias = tuple[Any, ...]
Value: TypeAlias = str | int | bytes | None
Bindings: TypeAlias = Sequence[Value] | Mapping[str, Value]

SQLITE_VERSION = apsw.sqlite_lib_version()


class Connection:
    """An open file, which must exist. Any thread may use it, one at a time; raises `apsw.Error`."""

    def __init__(self, path: Path | str, busy_milliseconds: int, flags: int = apsw.SQLITE_OPEN_READWRITE) -> None:
        self._driver: Any = apsw.Connection(str(path), flags=flags)
        self.set_busy_timeout(busy_milliseconds)

    def set_busy_timeout(self, milliseconds: int) -> None:
        """Set how long a statement waits for locks of other connections."""
        self._driver.set_busy_timeout(milliseconds)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._driver.in_transaction

    def execute(self, statements: str, bindings: Bindings = ()) -> list[Row]:
        """Run the statements to completion; return their rows."""
        return self._driver.execute(statements, bindings).fetchall()

    def change(self, statement: str, bindings: Bindings) -> int:
        """Run a statement that writes; return how many rows it wrote."""
        self._driver.execute(statement, bindings)
        return self._driver.changes()

    def execute_many(self, statement: str, bindings: Iterable[Bindings]) -> None:
        """Run the statement once for each of the bindings."""
        self._driver.executemany(statement, bindings)

    def get_row(self, statement: str, bindings: Bindings = ()) -> Row | None:
        """Return the first row, or `None` where there is none."""
        rows = self.execute(statement, bindings)
        return rows[0] if rows else None

    def stream(self, statement: str, bindings: Bindings = ()) -> Iterator[Row]:
        """Return the rows one by one, for reads too large to hold at once."""
        return self._driver.execute(statement, bindings)

    def get_pragma(self, name: str) -> str | int | None:
        """Return the value of a setting."""
        return self._driver.pragma(name)

    def set_pragma(self, name: str, value: str | int) -> str | int | None:
        """Change a setting; return SQLite's answer."""
        return self._driver.pragma(name, value)

    def set_checkpoint_on_close(self, *, is_on: bool) -> None:
        """Set whether the last connection to close moves the log into the file and removes the log."""
        self._driver.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(not is_on))

    def checkpoint(self) -> bool:
        """Move the log into the file, except what readers still need; return whether all of it was moved."""
        ((busy, frames, moved),) = self.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return not busy and frames == moved

    def watch_log(self, note: Callable[[int], None]) -> None:
        """Call a function after each commit with the number of pages in the log, moving none; see `checkpoint`."""

        def hook(connection: object, name: str, pages: int) -> int:
            del connection, name
            note(pages)
            return apsw.SQLITE_OK

        self._driver.set_wal_hook(hook)

    def define(self, name: str, function: Callable[..., Value]) -> None:
        """Let statements of this connection call a function of any number of values, which must be deterministic."""
        self._driver.create_scalar_function(name, function, deterministic=True)

    @contextmanager
    def savepoint(self) -> Generator[None, None, None]:
        """Run a block within a savepoint: an exception that leaves it undoes the block alone."""
        self.execute("SAVEPOINT block")
        try:
            yield
        except BaseException:
            # After a full disk or an I/O error SQLite may have undone the whole transaction already.
            if self.in_transaction:
                self.execute("ROLLBACK TO block; RELEASE block")
            raise
        self.execute("RELEASE block")

    def interrupt(self) -> None:
        """Abort what another thread is doing with the connection, if it is still open."""
        with suppress(apsw.ConnectionClosedError):
            self._driver.interrupt()

    def close(self) -> None:
        """Close the connection, rolling back an open transaction."""
        self._driver.close(True)


@contextmanager
def open_reading(path: Path) -> Generator[Connection, None, None]:
    """Yield a connection that reads the file with its log, even while others use it, and leaves both as they are."""
    connection = Connection(path, 10_000)
    try:
        connection.set_checkpoint_on_close(is_on=False)
        connection.set_pragma("query_only", 1)
        yield connection
    finally:
        connection.close()


@contextmanager
def open_snapshot(path: Path) -> Generator[Connection, None, None]:
    """Yield a connection that reads the file as it is: without its log, without locks, changing nothing."""
    address = f"{path.absolute().as_uri()}?immutable=1"
    connection = Connection(address, 0, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        yield connection
    finally:
        connection.close()
