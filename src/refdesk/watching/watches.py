"""Watches: what agents asked to be told of, kept as metadata of their org.

A watch belongs to the agent that made it. It records where each audit log ended when it was made, so that it tells
nothing from before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.core.search.matches import Match
    from refdesk.model import JsonObject, JsonValue
    from refdesk.protocols import Reader, Transaction

WATCH = "watch"
"""Kind of the record of a watch, named by the watch's id."""

STATE = "watch_state"
"""How often watches were made, changed or removed, so that every process notices that it has to read them again."""

PROGRESS = "watch_progress"
"""The number of the last act of an audit log that an org has heard of, named by the log's name."""

SEEN = "watch_seen"
"""What bears on the subject of a watch without a write to it (impacts, contradictions), named by the watch's id."""

EXPIRY = "watch_expiry"
"""When the subject of a watch expires; due then, named by the watch's id."""

UNREAD = "watch_unread"
"""A document that searches are still to judge by its vectors, once it has any."""

DELIVERY = "watch_delivery"
"""What is still to be sent to the webhook of a watch, named by the watch's id."""

MOST_WATCHES = 100_000
"""At most this many, of all orgs together, are followed."""

Kind: TypeAlias = Literal["search", "product", "entry", "skill"]

_STATE_KEY = MetadataKey(SHARED_ORG, STATE, "watches")


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where the news of a watch are sent.

    Attributes:
        secret: The secret that deliveries are signed with: `whsec_` and Base64.
    """

    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What one agent wants to be told of.

    Attributes:
        subject: For a search its question, for a product its id in `impact.products`, else the document's id.
        named: The product as the agent named it; empty for other kinds.
        label: What the agent calls the watch.
        toolsets: The toolsets to look in; for an entry or a skill, the one that keeps it.
        tags: Tags that documents must have, all of them.
        least: How well a document must match a search.
        scopes: The scopes that its agent had when it was made; they count if no known key made it.
        credential: The id of the key that made it; empty if there was none.
        begins: By an audit log's name, the number of the log's last act when the watch was made.
        paused: Whether it tells nothing. It still follows its subject, so that it can resume from there.
    """

    id: str
    org: str
    agent: str
    kind: Kind
    subject: str
    created_at: datetime
    named: str = ""
    label: str = ""
    toolsets: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    least: Match = "strong"
    scopes: frozenset[str] = frozenset()
    credential: str = ""
    begins: Mapping[str, int] = field(default_factory=dict[str, int])
    webhook: Webhook | None = None
    paused: bool = False

    @property
    def key(self) -> MetadataKey:
        """Where it is kept."""
        return make_key(self.org, self.id)

    def is_like(self, other: Watch) -> bool:
        """Return whether both tell the same agent of the same things in the same way."""
        return self._identity == other._identity

    @property
    def _identity(self) -> tuple[object, ...]:
        url = self.webhook.url if self.webhook is not None else None
        what = self.kind, self.subject, sorted(self.toolsets), sorted(self.tags), self.least
        return self.org, self.agent, *what, url


def make_key(org: str, id: str) -> MetadataKey:
    """Return the key of a watch's record."""
    return MetadataKey(org, WATCH, id)


def make_progress_key(org: str, log: str) -> MetadataKey:
    """Return the key of the record of how far an org has heard of an audit log."""
    return MetadataKey(org, PROGRESS, log)


def write_watch(watch: Watch) -> Metadata:
    """Return the record of a watch."""
    value: dict[str, JsonValue] = {
        **{name: getattr(watch, name) for name in ("id", "agent", "kind", "subject", "named", "label", "least")},
        **{name: list(getattr(watch, name)) for name in ("toolsets", "tags")},
        "created_at": watch.created_at.isoformat(),
        "scopes": sorted(watch.scopes),
        "credential": watch.credential,
        "begins": dict(watch.begins),
        "paused": watch.paused,
        "webhook": None if watch.webhook is None else {"url": watch.webhook.url, "secret": watch.webhook.secret},
    }
    return Metadata(watch.key, value)


def read_watch(record: Metadata) -> Watch:
    """Return the watch that `write_watch` wrote."""
    value = record.value
    webhook = cast("JsonObject | None", value["webhook"])
    return Watch(
        id=str(value["id"]),
        org=record.key.org,
        agent=str(value["agent"]),
        kind=cast("Kind", value["kind"]),
        subject=str(value["subject"]),
        created_at=datetime.fromisoformat(str(value["created_at"])),
        named=str(value["named"]),
        label=str(value["label"]),
        toolsets=_read_texts(value["toolsets"]),
        tags=_read_texts(value["tags"]),
        least=cast("Match", value["least"]),
        scopes=frozenset(_read_texts(value["scopes"])),
        credential=str(value["credential"]),
        begins=cast("Mapping[str, int]", value["begins"]),
        webhook=None if webhook is None else Webhook(str(webhook["url"]), str(webhook["secret"])),
        paused=bool(value.get("paused")),
    )


def _read_texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(each) for each in cast("Sequence[str]", value))


async def list_watches(reader: Reader, org: str | None = None) -> list[Watch]:
    """Return the watches of an org, or of all, oldest first."""
    records = await reader.list_metadata(WATCH, org=org, limit=MOST_WATCHES)
    return sorted(map(read_watch, records), key=lambda watch: (watch.created_at, watch.id))


async def count_change(transaction: Transaction) -> None:
    """Let every process see that the watches changed; call it first, so that orgs are always locked in one order."""
    count = await read_count(transaction)
    await transaction.put_metadata([Metadata(_STATE_KEY, {"count": count + 1})])


async def read_count(reader: Reader) -> int:
    """Return how often watches were made, changed or removed."""
    record = await reader.get_metadata(_STATE_KEY)
    return int(str(record.value["count"])) if record is not None else 0


async def put_watch(transaction: Transaction, watch: Watch, others: Iterable[Watch], expires: datetime | None) -> None:
    """Store a new watch; the first of an org begins at the present ends of the audit logs.

    Args:
        transaction: One in which `count_change` was called.
        watch: The watch.
        others: The watches that its org already has.
        expires: When its subject expires.
    """
    await transaction.put_metadata([write_watch(watch)])
    if not any(True for _ in others):
        keys = {log: make_progress_key(watch.org, log) for log in watch.begins}
        await transaction.put_metadata([Metadata(keys[log], {"number": end}) for log, end in watch.begins.items()])
    await put_expiry(transaction, watch, expires)


async def put_expiry(transaction: Transaction, watch: Watch, expires: datetime | None) -> None:
    """Record when the subject of a watch expires, or that it does not."""
    key = MetadataKey(watch.org, EXPIRY, watch.id)
    if expires is None:
        await transaction.remove_metadata([key])
    else:
        value: dict[str, JsonValue] = {"watch": watch.id, "agent": watch.agent, "id": watch.subject}
        await transaction.put_metadata([Metadata(key, value, due_at=expires)])


async def remove_watch(transaction: Transaction, watch: Watch) -> None:
    """Remove a watch and everything kept for it; `count_change` must have been called in the transaction."""
    kinds = (WATCH, SEEN, EXPIRY, DELIVERY)
    await transaction.remove_metadata([MetadataKey(watch.org, kind, watch.id) for kind in kinds])
