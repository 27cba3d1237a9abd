"""The audit log: who did what to which records, when and from where, written in the transaction of the act itself.

Each org has a chain of its own, so that none waits for another. An entry's digest covers the entry and, through the
digest of the previous one, everything before it: whoever changes, removes or moves an entry has to rewrite every later
one. A chain alone cannot show that its end was cut off: an earlier end that was noted elsewhere can (`verify`).

An entry holds names, ids and numbers, never a text that somebody wrote and never a secret.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from refdesk.errors import InvalidInputError
from refdesk.model import SHARED_ORG, AuditEntry, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from refdesk.model import Document, JsonObject, JsonValue, Link, Metadata, Principal, Revision
    from refdesk.protocols import Clock, Reader, Store, Transaction

PAGE = 1000
DONE = "done"
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, and from where.

    Attributes:
        transport: `mcp`, `rest`, `cli`, or `server` for its own work.
        address: Where the request came from; empty if unknown.
        credential: The public id of the API key, or the application that holds the token.
    """

    org: str
    agent: str
    transport: str
    address: str = ""
    credential: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """Return what goes on record: the fields that are known, without the org."""
        facts = {"agent": self.agent, "transport": self.transport, "address": self.address}
        return {name: value for name, value in {**facts, "credential": self.credential}.items() if value}


SERVER = Actor(SHARED_ORG, "refdesk", "server")
"""The actor for whoever runs the server, and for the server's own work."""


def make_actor(principal: Principal, transport: str) -> Actor:
    """Return a caller as an actor."""
    return Actor(principal.org, principal.agent, transport, principal.address, principal.credential)


@dataclass(frozen=True, slots=True)
class Break:
    """Where a chain is broken: the first number at which something is wrong, and what is wrong."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What checking an org's chain found.

    Attributes:
        entries: How many entries are intact, counted from the first.
        last: The digest of the last intact entry; together with its number it is the anchor for the next check.
        broken: The first bad link; `None` if there is none.
    """

    org: str
    entries: int
    last: str
    broken: Break | None = None

    @property
    def anchor(self) -> str:
        """The end of the chain, as `verify` takes it."""
        return f"{self.entries}:{self.last}"


def make_entry(last: AuditEntry | None, org: str, at: datetime, act: JsonObject) -> AuditEntry:
    """Return the entry that follows `last` in the chain of an org, or begins the chain."""
    number, previous = (last.number + 1, last.digest) if last is not None else (1, "")
    return AuditEntry(org, number, at, act, previous, _digest(org, number, at, act, previous))


async def append(transaction: Transaction, org: str, at: datetime, act: JsonObject) -> None:
    """Put an act on the record of an org, in the act's own transaction."""
    await transaction.put_audit([make_entry(await transaction.get_last_audit(org), org, at, act)])


async def verify(reader: Reader, org: str, expected: str | None = None) -> Verdict:
    """Check every link of an org's chain.

    Args:
        reader: The store.
        org: Whose chain.
        expected: An anchor, `NUMBER:DIGEST`, noted earlier: the chain must still hold that entry.

    Raises:
        InvalidInputError: The anchor is malformed.
    """
    anchor, number, previous = _read_anchor(expected), 0, ""
    while entries := await reader.get_audit(org, number, PAGE):
        for entry in entries:
            reason = _find_fault(entry, number + 1, previous) or _find_difference(entry, anchor)
            if reason is not None:
                return Verdict(org, number, previous, Break(number + 1, reason))
            number, previous = entry.number, entry.digest
    if anchor is not None and number < anchor[0]:
        reason = f"the log ends at {number}, but reached {anchor[0]} before: its end was cut off"
        return Verdict(org, number, previous, Break(number + 1, reason))
    return Verdict(org, number, previous)


def is_unchanged(entry: AuditEntry) -> bool:
    """Return whether an entry is as it was written, as far as its own digest can tell."""
    return entry.digest == _digest(entry.org, entry.number, entry.at, entry.act, entry.previous)


def watch(
    store: Store,
    clock: Clock,
    actor: Actor,
    action: str,
    subjects: Mapping[str, JsonValue] | None = None,
    *,
    documents_only: bool = False,
) -> Store:
    """Return a view of the store whose transactions put on record what they wrote, if anything, under `action`.

    Args:
        store: Where both the documents and the record are kept.
        clock: Says when.
        actor: Who acts; the record goes into the chain of its org.
        action: What is done, by the name of its operation.
        subjects: The ids that were asked for.
        documents_only: Whether a transaction that wrote only bookkeeping is not put on record.
    """
    return cast("Store", _WatchedStore(store, clock, actor, action, subjects or {}, documents_only))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _WatchedStore:
    store: Store
    clock: Clock
    actor: Actor
    action: str
    subjects: Mapping[str, JsonValue]
    documents_only: bool

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self.store, name)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Transaction]:
        async with self.store.transaction() as transaction:
            watched = _WatchedTransaction(transaction)
            yield cast("Transaction", watched)
            if watched.records or (watched.has_written and not self.documents_only):
                act = make_act(self.actor, self.action, watched.records, self.subjects)
                await append(transaction, self.actor.org, self.clock.now(), act)


def make_act(
    actor: Actor,
    action: str,
    records: Sequence[Mapping[str, JsonValue]] = (),
    details: Mapping[str, JsonValue] | None = None,
    outcome: str = DONE,
) -> dict[str, JsonValue]:
    """Return an act as it goes on record."""
    act: dict[str, JsonValue] = {"action": action, **actor.to_json(), "outcome": outcome}
    if details:
        act["details"] = dict(details)
    if records:
        act["records"] = [dict(record) for record in records]
    return act


@dataclass(slots=True)
class _WatchedTransaction:
    transaction: Transaction
    records: list[dict[str, JsonValue]] = field(default_factory=list["dict[str, JsonValue]"])
    has_written: bool = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transaction has
        return getattr(self.transaction, name)

    async def put_documents(self, documents: Sequence[Document]) -> None:
        await self.transaction.put_documents(documents)
        self.records += [describe(document) for document in documents]

    async def put_revisions(self, revisions: Sequence[Revision]) -> None:
        await self.transaction.put_revisions(revisions)
        self.records += [describe(revision.document) for revision in revisions]

    async def put_links(self, links: Sequence[Link]) -> None:
        await self.transaction.put_links(links)
        self.has_written |= bool(links)

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        await self.transaction.put_metadata(records)
        self.has_written |= bool(records)


def describe(document: Document, change: str | None = None) -> dict[str, JsonValue]:
    """Return what is put on record of a document that was written: where it is, and how it changed."""
    if change is None:
        change = "created" if document.version == 1 else "changed"
        change = {State.SUPERSEDED: "superseded", State.WITHDRAWN: "withdrawn"}.get(document.state, change)
    place: dict[str, JsonValue] = {"toolset": document.collection.toolset, "id": document.id}
    return {**place, "version": document.version, "change": change}


def _digest(org: str, number: int, at: datetime, act: JsonObject, previous: str) -> str:
    content = _ENCODER.encode([org, number, at.isoformat(), act, previous])
    return hashlib.sha256(content.encode()).hexdigest()


def _find_fault(entry: AuditEntry, number: int, previous: str) -> str | None:
    if entry.number != number:
        return f"entry {number} is missing"
    if not is_unchanged(entry):
        return f"entry {number} is not as it was written"
    if entry.previous != previous:
        return f"entry {number} does not follow the one before it"
    return None


def _find_difference(entry: AuditEntry, anchor: tuple[int, str] | None) -> str | None:
    if anchor is None or entry.number != anchor[0] or entry.digest == anchor[1]:
        return None
    return f"entry {entry.number} is another one than was known before: the log was made anew"


def _read_anchor(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    number, _, digest = text.strip().partition(":")
    if not (number.isascii() and number.isdigit() and digest):
        raise InvalidInputError("The end to expect is NUMBER:DIGEST, as an earlier check or export printed it.")
    return int(number), digest
