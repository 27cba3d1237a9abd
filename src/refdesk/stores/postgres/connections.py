"""Sends statements to the database in as few round trips as possible.

Every setting is per transaction (`set_config(…, true)`), so that a pooler which hands its connections from
transaction to transaction may sit in between.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from types import NoneType
from typing import LiteralString, cast
from weakref import WeakKeyDictionary

import anyio
import psycopg
from psycopg import AsyncCursor
from psycopg.pq import ExecStatus
from psycopg.sql import SQL, Composed, Literal

from refdesk.errors import StoreError
from refdesk.kit.late_answers import LateAnswer
from refdesk.stores.postgres import failures
from refdesk.stores.postgres.failures import translated
from refdesk.stores.postgres.pool import Connection, Pool, Row, hang_up, is_idle

_NAMED = re.compile(r"%\((\w+)\)s")
_PLANNED = {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}
_SHORT = 100
"""Statements with fewer characters take no time to plan."""

WATCH_SECONDS = 2.0
"""How late an answer must be before it is checked whether the server answers at all; the check is then repeated."""

PROBE_SECONDS = 2.0
"""How long that check may take. Together with the time before it, a call that meets a silent server fails within five
seconds, as does one that connects first; one that waits behind such calls fails together with them."""

MOST_REMEMBERED = 1024
"""Most entries in each cache of statements: those that set the scope of an org, and the templates."""

MOST_PREPARED = 128
"""Most statements prepared on a connection: their plans stay in the server's memory for as long as it lasts."""

GRACE_SECONDS = 2.0
"""How much longer than the server's own limits to wait for an answer: by then the network must have swallowed it."""


class Text(str):
    """SQL composed of literals of this program and of values quoted by `quote`.

    The driver's own classes for that take longer to compose a search than the server takes to answer it.
    """

    __slots__ = ()

    def format(self, *parts: object, **named: object) -> Text:
        """Return the text with `{}` and `{name}` replaced by parts, which are other texts."""
        return Text(str.format(self, *parts, **named))

    def join(self, parts: Iterable[str], /) -> Text:
        """Return the texts joined by this one."""
        return Text(str.join(self, parts))


_EDGE = "\0"
"""Marks both ends of a value in a `Text`: nothing that the database accepts contains it."""


def quote(value: object) -> Text:
    """Return a value as a literal, quoted by the driver unless it is made of numbers, and marked as a value."""
    return Text(f"{_EDGE}{_quote(value)}{_EDGE}")


def _quote(value: object) -> str:
    if type(value) is str:
        # The driver would look up how to quote each type, which takes longer than all the rest.
        doubled = value.replace("'", "''")
        if _EDGE in value:
            return Literal(value).as_string(None)
        return f"""'{doubled}'""" if "\\" not in value else """ E'{}'""".format(doubled.replace("\\", "\\\\"))
    if type(value) is int or type(value) is float:
        return f" {value!r}"
    if value is None:
        return "NULL"
    if type(value) is bytes:
        return rf" E'\\x{value.hex()}'"
    if type(value) is list:
        return _quote_all(cast("list[object]", value))
    return Literal(value).as_string(None)


def _quote_all(values: list[object]) -> str:
    kinds = set(map(type, values)) - {NoneType}
    if kinds <= {int}:
        return f"'{{{','.join(['NULL' if each is None else str(each) for each in values])}}}'"
    if kinds == {bytes}:
        return _quote("{" + ",".join([rf'"\\x{each.hex()}"' for each in cast("list[bytes]", values)]) + "}")
    if kinds == {str}:
        return _quote("{" + ",".join(map(_quote_element, cast("list[str | None]", values))) + "}")
    return Literal(values).as_string(None)


def _quote_element(value: str | None) -> str:
    if value is None:
        return "NULL"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL and its values: in order for `%s`, by name for `%(name)s`; a `Text` already contains them.

    Attributes:
        scope: Whose rows are visible from here on, if the statement sets that.
    """

    text: LiteralString | SQL | Composed | Text
    values: Sequence[object] | dict[str, object] = ()
    scope: Scope | None = None


SEE = (
    "SELECT set_config('refdesk.org', %s, true), set_config('refdesk.all_orgs', %s, true), "
    "set_config('refdesk.any', '{0}', true), set_config('refdesk.all', '{-1}', true), "
    "set_config('enable_bitmapscan', 'off', true)"
)
"""Lets a transaction see a scope. Entries are visible whatever words they hold, and are reached by their keys: the
index of words would return all of them."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose rows the statements of a transaction may see: those of one org, or all for the server's own work."""

    org: str | None

    @property
    def values(self) -> tuple[str, str]:
        """The values of `SEE`."""
        return self.org or "", "off" if self.org is not None else "on"

    @property
    def statement(self) -> Statement:
        """The statement that sets this for the rest of the transaction."""
        return Statement(SEE, self.values, self)


ALL_ORGS = Scope(None)
_BEGIN_READING = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
_COMMIT = Statement("COMMIT")


class Connections:
    """Runs statements on connections of a pool; none is waited for longer than the patience plus some grace.

    Attributes:
        is_one_node: Whether one server runs all that is sent, as it is sent.
    """

    is_one_node = True

    def __init__(self, url: str, patience_seconds: float) -> None:
        self.patience_seconds = patience_seconds
        self.pool = Pool(url, patience_seconds)
        self._prepared: WeakKeyDictionary[Connection, Prepared] = WeakKeyDictionary()

    async def read(self, scope: Scope, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement, all from one snapshot that includes every commit made before the call.

        Takes one round trip.
        """
        limits = _get_limits(scope, int(self.patience_seconds * 1000))
        async with self.pool.lend() as connection:
            if len(statements) == 1 and self.is_one_node:
                # What is sent as one message is one transaction.
                return (await self.send(connection, limits, *statements))[1:]
            return (await self.send(connection, _BEGIN_READING, limits, *statements, _COMMIT))[2:-1]

    async def send(
        self, connection: Connection, *statements: Statement, seconds: float | None = None
    ) -> list[list[Row]]:
        """Return the rows of each statement (none if it returns none), sent together in one round trip.

        Args:
            connection: Lent by the pool.
            statements: In order; if one fails, those after it are not run.
            seconds: How long the server may take; the patience unless given.

        Raises:
            StoreError: One failed, or no answer came in time.
        """
        with translated(), _answered_within((seconds or self.patience_seconds) + GRACE_SECONDS):
            # A connection that was lost has none.
            cursor = connection.cursor()
            silence = self.pool.silence
            watch = LateAnswer(
                WATCH_SECONDS, partial(silence.is_answering, PROBE_SECONDS), partial(hang_up, connection)
            )
            try:
                prepared = await self.get_prepared(connection)
                # One message: the driver's pipeline would send each statement by itself, and wake the server for each.
                await cursor.execute(prepared.spell(statements).encode())
                silence.hear()
                return await _fetch_all(cursor)
            except BaseException as error:
                # It is no longer known which of them were prepared.
                self._prepared.pop(connection, None)
                if isinstance(error, psycopg.Error) and error.sqlstate is not None:
                    silence.hear()
                raise
            finally:
                watch.end()

    async def get_prepared(self, connection: Connection) -> Prepared:
        """Return what the server of a connection has prepared for it."""
        if connection not in self._prepared:
            if not is_idle(connection):
                return Prepared(is_direct=False)
            cursor = await connection.execute("SELECT pg_backend_pid()")
            is_direct = await cursor.fetchone() == (connection.info.backend_pid,)
            if is_direct:
                await connection.execute("DEALLOCATE ALL")
            self._prepared[connection] = Prepared(is_direct=is_direct)
        return self._prepared[connection]

    async def send_alone(self, connection: Connection, statement: Statement, seconds: float = 3600.0) -> None:
        """Run what can neither share a transaction with anything nor be sent together with it; errors as in `send`."""
        with translated(), _answered_within(seconds):
            await connection.execute(spell(statement).encode())


def spell(statement: Statement) -> str:
    """Return the statement with its values in it."""
    return to_text(statement).replace(_EDGE, "")


@lru_cache(MOST_REMEMBERED)
def _get_limits(scope: Scope, milliseconds: int) -> Statement:
    """Return the statement that sets how a read transaction runs, and what it sees.

    Everything that a search reads is reached by an index. A prepared statement is planned once, whatever its values;
    compiling a plan (JIT) takes longer than running any of these statements.
    """
    limits = Text(
        ", set_config('statement_timeout', {}, true), set_config('enable_seqscan', 'off', true), "
        "set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)"
    ).format(quote(f"{milliseconds}ms"))
    return Statement(Text(to_text(scope.statement) + limits), scope=scope)


def to_text(statement: Statement) -> Text:
    """Return the statement with its values in it, marked as such."""
    text, values = statement.text, statement.values
    if isinstance(text, Text):
        return text
    if not isinstance(text, str):
        return Text(text.as_string(None))
    if isinstance(values, dict):
        quoted = {name: quote(value) for name, value in values.items()}
        return Text(_NAMED.sub(lambda found: quoted[found[1]], text))
    pieces = text.split("%s")
    return Text("".join([piece + value for piece, value in zip(pieces, [*map(quote, values), ""], strict=True)]))


def name_structure(structure: str) -> str:
    """Return the name under which a statement is prepared."""
    return "refdesk_" + hashlib.blake2b(structure.encode(), digest_size=12).hexdigest()


class Prepared:
    """The statements that the server has prepared for one connection: it plans each once.

    Behind a pooler, which hands its connections from transaction to transaction, nothing is prepared. It is recognised
    by the number of the server's process, which is then not the one that the connection reports.
    """

    def __init__(self, *, is_direct: bool) -> None:
        self._is_direct = is_direct
        self._names: set[str] = set()

    def spell(self, statements: Sequence[Statement]) -> str:
        """Return the statements as one text, which prepares those that were not prepared before."""
        return ";".join(map(self._spell, statements))

    def _spell(self, statement: Statement) -> str:
        text, values = statement.text, statement.values
        if not self._is_direct or not isinstance(text, str):
            return spell(statement)
        if isinstance(text, Text) or _EDGE in text:
            structure, literals = part(to_text(statement))
            name = _name_planned(structure)
        else:
            template = _get_template(text, isinstance(values, dict))
            structure, name, literals = template.structure, template.name, template.list_literals(values)
        if not name or (name not in self._names and len(self._names) >= MOST_PREPARED):
            return spell(statement)
        call = f"EXECUTE {name}({','.join(literals)})" if literals else f"EXECUTE {name}"
        if name in self._names:
            return call
        self._names.add(name)
        return f"PREPARE {name} AS {structure};{call}"


@dataclass(frozen=True, slots=True)
class _Template:
    """A statement of this program, with `$1`, `$2`, … for its values.

    Attributes:
        name: The name under which it is prepared; empty if it is not.
        names: The names of the values, in the order of their places; `None` if values come in order.
    """

    structure: str
    name: str
    names: Sequence[str] | None

    def list_literals(self, values: Sequence[object] | dict[str, object]) -> list[str]:
        """Return the literals for the places."""
        if isinstance(values, dict):
            quoted = {name: _quote(value) for name, value in values.items()}
            return [quoted[name] for name in self.names or ()]
        return [_quote(value) for value in values]


@lru_cache(MOST_REMEMBERED)
def _get_template(text: str, is_named: bool) -> _Template:
    pieces = _NAMED.split(text) if is_named else text.split("%s")
    texts, names = (pieces[::2], pieces[1::2]) if is_named else (pieces, None)
    marks = [f"${place}" for place in range(1, len(texts))]
    structure = "".join([text + mark for text, mark in zip(texts, [*marks, ""], strict=True)])
    return _Template(structure, _name_planned(structure), names)


def _name_planned(structure: str) -> str:
    """Return the name under which a statement is prepared; empty if it takes no time to plan."""
    is_planned = len(structure) >= _SHORT and structure.split(None, 1)[0] in _PLANNED
    return name_structure(structure) if is_planned else ""


def part(text: Text) -> tuple[str, list[str]]:
    """Return the text with `$1`, `$2`, … for its values, and the values."""
    pieces = text.split(_EDGE)
    literals = pieces[1::2]
    pieces[1::2] = [f"${place}" for place in range(1, len(literals) + 1)]
    return "".join(pieces), literals


async def _fetch_all(cursor: AsyncCursor[Row]) -> list[list[Row]]:
    """Return the rows of each statement, except for those that prepare another one."""
    every: list[list[Row]] = []
    while True:
        if cursor.statusmessage != "PREPARE":
            # The description of the columns is not asked for: it takes longer than the rows.
            has_rows = cursor.pgresult is not None and cursor.pgresult.status == ExecStatus.TUPLES_OK
            every.append(await cursor.fetchall() if has_rows else [])
        if not cursor.nextset():
            return every


@contextmanager
def _answered_within(seconds: float) -> Generator[None, None, None]:
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError as error:
        raise StoreError(failures.SLOW) from error
