"""Watches: what agents asked to be told of, kept as bookkeeping of their org.

A watch belongs to the agent that made it. It knows where each audit log ended when it was made, so that it tells of
nothing that was there before.
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
"""A watch, named by its id."""

STATE = "watch_state"
"""How often watches were made or removed, so that every process sees that they are others now."""

PROGRESS = "watch_progress"
"""Up to which act of an audit log an org has heard, by the log's name."""

SEEN = "watch_seen"
"""What bears on the subject of a watch without being written there: impacts, contradictions; by the watch's id."""

EXPIRY = "watch_expiry"
"""When the subject of a watch expires, due then; by the watch's id."""

UNREAD = "watch_unread"
"""A document whose vectors searches are still to judge, once it has some."""

DELIVERY = "watch_delivery"
"""What is still to be sent to the webhook of a watch, named by its id."""

MOST_WATCHES = 100_000
"""So many of all orgs are followed."""

Kind: TypeAlias = Literal["search", "product", "entry", "skill"]

_STATE_KEY = MetadataKey(SHARED_ORG, STATE, "watches")


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where the news of a watch are sent.

    Attributes:
        secret: What deliveries are signed with: `whsec_` and Base64.
    """

    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What one agent wants to be told of.

    Attributes:
        subject: Of a search what is asked, of a product its id as `impact.products` knows it, else the document's id.
        named: A product as the agent named it; else empty.
        label: What the agent calls the watch.
        toolsets: Where is looked. Of an entry or a skill, the one that keeps it.
        tags: That documents must have, all of them.
        least: How well a document must match a search.
        scopes: What its agent was allowed when it was made: it hears of nothing else.
        credential: The id of the key that made it; empty where there was none.
        begins: By an audit log's name, the number of its last act when the watch was made.
        paused: Whether it tells nothing. It still follows what it watches, so that it goes on where that is.
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
        """Return whether both tell the same agent of the same in the same way."""
        return self._identity == other._identity

    @property
    def _identity(self) -> tuple[object, ...]:
        url = self.webhook.url if self.webhook is not None else None
        what = self.kind, self.subject, sorted(self.toolsets), sorted(self.tags), self.least
        return self.org, self.agent, *what, url


def make_key(org: str, id: str) -> MetadataKey:
    """Return where a watch is kept."""
    return MetadataKey(org, WATCH, id)


def make_progress_key(org: str, log: str) -> MetadataKey:
    """Return where it is kept up to which act of an audit log an org has heard."""
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
    """Let every process see that there are other watches; called first, so that orgs are locked in one order."""
    count = await read_count(transaction)
    await transaction.put_metadata([Metadata(_STATE_KEY, {"count": count + 1})])


async def read_count(reader: Reader) -> int:
    """Return how often watches were made or removed."""
    record = await reader.get_metadata(_STATE_KEY)
    return int(str(record.value["count"])) if record is not None else 0


async def put_watch(transaction: Transaction, watch: Watch, others: Iterable[Watch], expires: datetime | None) -> None:
    """Keep a new watch; the first of an org begins at the present ends of the audit logs.

    Args:
        transaction: In which `count_change` was called.
        watch: The watch.
        others: Those that its org has.
        expires: When its subject does.
    """
    await transaction.put_metadata([write_watch(watch)])
    if not any(True for _ in others):
        keys = {log: make_progress_key(watch.org, log) for log in watch.begins}
        await transaction.put_metadata([Metadata(keys[log], {"number": end}) for log, end in watch.begins.items()])
    await put_expiry(transaction, watch, expires)


async def put_expiry(transaction: Transaction, watch: Watch, expires: datetime | None) -> None:
    """Keep when the subject of a watch expires, or that it does not."""
    key = MetadataKey(watch.org, EXPIRY, watch.id)
    if expires is None:
        await transaction.remove_metadata([key])
    else:
        value: dict[str, JsonValue] = {"watch": watch.id, "agent": watch.agent, "id": watch.subject}
        await transaction.put_metadata([Metadata(key, value, due_at=expires)])


async def remove_watch(transaction: Transaction, watch: Watch) -> None:
    """Remove a watch with what is known for it; `count_change` was called in the transaction."""
    kinds = (WATCH, SEEN, EXPIRY, DELIVERY)
    await transaction.remove_metadata([MetadataKey(watch.org, kind, watch.id) for kind in kinds])
