"""Citus: tables are distributed by org, and what a transaction does for an org is done where its rows are.

The coordinator passes everything that is sent for an org to the node that holds it, in one call of a function that
Citus delegates. There the statements run on the org's own shards, which are tables like any other: they are the same
statements as on a single node, prepared once, and see what those before them have set. A search only names statements
that were sent before on its connection; if the node does not know one of them, as after a restart, it answers nothing,
and all are sent again with their texts. Citus itself sends to all nodes what is for all orgs.

A transaction that writes first increments the org's change sequence through the coordinator. From that Citus knows that
the node is written to: it commits on several nodes together or not at all, and moves no shard away from under a
transaction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from psycopg import abc
from psycopg.adapt import Transformer
from psycopg.pq import Format

from refdesk.errors import StoreError
from refdesk.stores.postgres.connections import (
    Connections,
    Prepared,
    Scope,
    Statement,
    name_structure,
    part,
    to_text,
)
from refdesk.stores.postgres.failures import translated
from refdesk.stores.postgres.pool import Connection, Row

_BEGINS = "BEGIN"
_READS = "READ ONLY"
_ENDS = {"COMMIT", "ROLLBACK"}
_DEFINES = ("CREATE", "DROP", "ALTER")

# Gives the transaction a number of its own, by which others see that something changed, and one connection to each
# node, on which statements for all orgs see what was written for one.
_PREPARE_WRITING = """
    SELECT pg_current_xact_id(), set_config('citus.multi_shard_modify_mode', 'sequential', true)
"""
_PROPAGATE = "SELECT set_config('citus.propagate_set_commands', 'local', true)"
_SEE_ALL = "SET LOCAL refdesk.all_orgs TO 'on'"
_COUNT_UP = """
    INSERT INTO orgs (org, changes) VALUES (%s, 1) ON CONFLICT (org) DO UPDATE SET changes = orgs.changes + 1
"""
_RUN = "SELECT refdesk_run(%s, %s, %s)"
_LIMIT = """
    SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true),
        set_config('plan_cache_mode', 'force_generic_plan', true),
        set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)
"""
_TABLE = r"\b(FROM|JOIN|INTO|UPDATE)(\s+)({})\b(?!\s*\.)(\s+AS\b|\s+(?!(?:{})\b)[a-z_]\w*)?"
_NO_ALIAS = (
    "CROSS|DEFAULT|EXCEPT|FETCH|FOR|FROM|FULL|GROUP|HAVING|INNER|INTERSECT|JOIN|LEFT|LIMIT|NATURAL|OFFSET|ON|ORDER|"
    "RETURNING|RIGHT|SELECT|SET|UNION|USING|VALUES|WHERE|WINDOW"
)
_GRAPH, _GRAPH_OF_SHARD = "'vectors_of_model_' || key", "'vectors_of_model_' || key || '_' || {{#vectors}}"
_FIELD = re.compile(r',(?:"((?:[^"\\]+|""|\\.)*)"|([^",]*))', re.DOTALL)

Load: TypeAlias = Callable[[str], Any]
Named: TypeAlias = tuple[str, str]
"""An org, and the name of a statement that was run for it."""

_LOADS: dict[int, Load] = {16: "t".__eq__, 20: int, 21: int, 23: int, 25: str, 701: float}
"""How Python reads the types of most columns, in a third of the driver's time: `boolean`, `bigint`, `smallint`,
`integer`, `text`, `double precision`."""

_ENCODER = json.JSONEncoder(ensure_ascii=False)


@dataclass(slots=True)
class _Transaction:
    """The transaction that a connection is in: whose rows it sees, and for which orgs it has written."""

    writes: bool = False
    scope: Scope | None = None
    orgs: set[str] = field(default_factory=set[str])

    @property
    def org(self) -> str | None:
        """The org whose rows are seen; empty for none, `None` for all."""
        return self.scope.org if self.scope is not None else ""


@dataclass(slots=True)
class _Piece:
    """What is sent to the coordinator as one statement.

    Attributes:
        statements: One; or, if an org is given, all that are run on its node.
        unasked: How many of them, the first ones, return rows that nobody asked for.
        is_alone: Whether nothing may be sent together with it.
    """

    statements: list[Statement]
    org: str = ""
    unasked: int = 0
    is_alone: bool = False


@dataclass(frozen=True, slots=True)
class _Call:
    """A statement that a node runs: its name, its text with places for values, and the values in brackets."""

    name: str
    structure: str
    values: str


class CitusConnections(Connections):
    """Connections to the coordinator of a cluster."""

    is_one_node = False

    def __init__(self, plain: Connections, path: str, tables: Iterable[str]) -> None:
        """Make them.

        Args:
            plain: The ordinary connections to the same database, whose pool is used.
            path: The search path, for other nodes.
            tables: The tables that are distributed, or copied to each node.
        """
        super().__init__("", plain.patience_seconds)
        self.pool = plain.pool
        self._path = path
        self._places = re.compile(_TABLE.format("|".join(sorted(tables)), _NO_ALIAS))
        self._transactions: WeakKeyDictionary[Connection, _Transaction] = WeakKeyDictionary()
        self._named: WeakKeyDictionary[Connection, set[Named]] = WeakKeyDictionary()
        self._place = lru_cache(1024)(self._place_tables)

    async def send(
        self, connection: Connection, *statements: Statement, seconds: float | None = None
    ) -> list[list[Row]]:
        """See `Connections.send`."""
        rows: list[list[Row]] = []
        message: list[_Piece] = []
        for piece in [*self._direct(connection, statements), None]:
            # Citus passes settings and definitions on as the whole text that they came in.
            if message and (piece is None or piece.is_alone or message[-1].is_alone):
                rows += await self._send_message(connection, message, seconds)
                message = []
            message += [piece] if piece is not None else []
        return rows

    async def _send_message(
        self, connection: Connection, pieces: Sequence[_Piece], seconds: float | None
    ) -> list[list[Row]]:
        with translated():
            calls = [[_part(each) for each in piece.statements] if piece.org else [] for piece in pieces]
        named = self._named.setdefault(connection, set()) if _is_whole_read(pieces) else set[Named]()
        every = await super().send(connection, *self._delegate(pieces, calls, named), seconds=seconds)
        if any(piece.org and found[0][0] is None for piece, found in zip(pieces, every, strict=True)):
            # What only reads can be repeated.
            named.clear()
            every = await super().send(connection, *self._delegate(pieces, calls, named), seconds=seconds)
        named |= {(piece.org, call.name) for piece, some in zip(pieces, calls, strict=True) for call in some}
        rows: list[list[Row]] = []
        for piece, found in zip(pieces, every, strict=True):
            answers = _decode(connection, found[0][0]) if piece.org else [found]
            rows += answers[piece.unasked :]
        return rows

    async def get_prepared(self, connection: Connection) -> Prepared:
        """See `Connections.get_prepared`: nothing, as the coordinator plans by the values, which say whom to ask."""
        return Prepared(is_direct=False)

    def _direct(self, connection: Connection, statements: Iterable[Statement]) -> list[_Piece]:
        """Return what is sent to the coordinator in place of statements."""
        pieces: list[_Piece] = []
        for statement in statements:
            text = statement.text if isinstance(statement.text, str) else to_text(statement)
            if text.startswith(_BEGINS):
                self._transactions[connection] = _Transaction(writes=_READS not in text)
                pieces.append(_Piece([statement]))
                pieces += [_Piece([Statement(_PREPARE_WRITING)], unasked=1)] if _READS not in text else []
                continue
            if text in _ENDS:
                self._transactions.pop(connection, None)
            transaction = self._transactions.setdefault(connection, _Transaction())
            if statement.scope is not None:
                transaction.scope = statement.scope
                pieces.append(_Piece([statement]))
                pieces += self._enter(transaction, statement)
            elif not transaction.org:
                pieces.append(_Piece([statement], is_alone=text.startswith(_DEFINES)))
            elif pieces and pieces[-1].org:
                pieces[-1].statements.append(statement)
            else:
                pieces.append(_Piece([statement], transaction.org))
        return pieces

    def _enter(self, transaction: _Transaction, statement: Statement) -> list[_Piece]:
        """Return what makes the nodes show the rows that the coordinator shows from here on."""
        org = transaction.org
        if org is None:
            return [_Piece([Statement(_PROPAGATE)], unasked=1), _Piece([Statement(_SEE_ALL)], unasked=1, is_alone=True)]
        if not org:
            return []
        entered = [_Piece([self._limit, statement], org, 2)]
        if transaction.writes and org not in transaction.orgs:
            transaction.orgs.add(org)
            entered.append(_Piece([Statement(_COUNT_UP, (org,))], unasked=1))
        return entered

    @property
    def _limit(self) -> Statement:
        milliseconds = int(self.patience_seconds * 1000)
        return Statement(_LIMIT, (f"{milliseconds}ms", f"{milliseconds + 1000}ms"))

    def _delegate(
        self, pieces: Iterable[_Piece], calls: Iterable[Iterable[_Call]], named: Set[Named]
    ) -> list[Statement]:
        """Return what is sent to the coordinator, without the texts of statements whose texts were sent before."""
        statements: list[Statement] = []
        for piece, some in zip(pieces, calls, strict=True):
            if not piece.org:
                statements.append(piece.statements[0])
                continue
            steps = [
                (call.name, None if (piece.org, call.name) in named else self._place(call.structure), call.values)
                for call in some
            ]
            statements.append(Statement(_RUN, (piece.org, self._path, _ENCODER.encode(steps))))
        return statements

    def _place_tables(self, structure: str) -> str:
        """Return the statement with marks for the shards of the tables that it names."""

        def mark(found: re.Match[str]) -> str:
            before, blank, table, alias = found.groups()
            return f"{before}{blank}{{{{{table}}}}}" + (alias or f" AS {table}")

        return self._places.sub(mark, structure).replace(_GRAPH, _GRAPH_OF_SHARD)


def _is_whole_read(pieces: Sequence[_Piece]) -> bool:
    """Return whether they are a whole transaction, from its beginning to its end, that only reads."""
    first, last = to_text(pieces[0].statements[0]), to_text(pieces[-1].statements[0])
    return first.startswith(_BEGINS) and _READS in first and last in _ENDS


def _part(statement: Statement) -> _Call:
    structure, literals = part(to_text(statement))
    return _Call(name_structure(structure), structure, f"({','.join(literals)})" if literals else "")


def _decode(connection: Connection, answer: str) -> list[list[Row]]:
    """Return the rows of each statement that a node ran; its answer says which types the columns have."""
    loaders = Transformer(connection)
    every: list[list[Row]] = []
    for types, rows in json.loads(answer):
        loads = [_LOADS.get(int(oid)) or partial(_load, loaders, int(oid)) for oid in types]
        every.append(_load_rows(loads, rows))
    return every


def _load(loaders: abc.Transformer, oid: int, text: str) -> object:
    return loaders.get_loader(oid, Format.TEXT).load(text.encode())


def _load_rows(loads: Sequence[Load], rows: Sequence[str]) -> list[Row]:
    """Return the values of rows, column by column, which takes half the time of row by row."""
    fields = [_split(row[1:-1]) for row in rows]
    if any(len(each) != len(loads) for each in fields):
        raise StoreError("A node's answer cannot be read. Repeat the question.")
    columns = [
        [None if text is None else load(text) for text in column]
        for load, column in zip(loads, zip(*fields, strict=True), strict=bool(fields))
    ]
    return list(zip(*columns, strict=True))


def _split(row: str) -> list[str | None]:
    """Return the texts of a row's values as PostgreSQL writes it: between commas, quoted where needed."""
    if '"' not in row:
        return [each or None for each in row.split(",")]
    return [_unescape(quoted) if plain is None else plain or None for quoted, plain in _list_fields(row)]


def _list_fields(inner: str) -> list[tuple[str, str | None]]:
    return [(found[1] or "", None if found[1] is not None else found[2]) for found in _FIELD.finditer(f",{inner}")]


def _unescape(quoted: str) -> str:
    # Both characters are doubled.
    return quoted.replace('""', '"').replace("\\\\", "\\")
