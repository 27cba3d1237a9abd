"""The portable form of an entry (everything but its version history) and its mapping to a document."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from refdesk.core.writing import supersession
from refdesk.core.writing.tombstones import is_erased, make_barrier
from refdesk.kit.strict_values import RefusedError
from refdesk.model import Link, Reference, State
from refdesk.toolsets.knowledge import TOOLSET_NAME, models
from refdesk.toolsets.knowledge.models import StoreInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from refdesk.model import Document, JsonObject, JsonValue

LONGEST_AUTHOR = 200
"""Characters, as many as any tool takes for one; a quota's record has it in its key, and every store limits those."""

LONGEST_ID = 300
"""Characters of the id of a link's other end, as many as any tool takes for an id."""

LONGEST_NAME = 64
"""Characters of a link's kind and of the toolset of its other end. They and both ids fit into one key of any store."""

_OWN_DATA = frozenset({"confidence", "source", supersession.SUPERSEDED_BY, supersession.HEAD})
_NOT_COMPARED = frozenset({"links", "superseded_at", "assumed", "needs_links"})


@dataclass(frozen=True, slots=True)
class EntryLink:
    """A link of an entry, other than an edge of its chain.

    Attributes:
        other: What the entry links to or, if `is_incoming`, what links to the entry.
    """

    kind: str
    other: Reference
    is_incoming: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry.

    Attributes:
        superseded_by: The id of the entry that directly replaced it.
        superseded_at: When that happened; set exactly if `superseded_by` is.
        links: Links to other entries, and links from and to anything else, oldest first.
        data: Whatever else the store keeps with it.
        assumed: Names of fields that its source lacks. Their values are used when the entry is added, but ignored when
            it is compared with a stored one.
        needs_links: Whether the entry is invalid if one that it links to cannot be found; otherwise only the link is
            dropped.
        erased_at: When it was erased; `None` if it was not. An erased entry has no text, only its place in a chain.
    """

    id: str
    title: str
    body: str
    author: str
    created_at: datetime
    modified_at: datetime
    tags: tuple[str, ...] = ()
    confidence: int = 80
    source: str = "agent"
    expires_at: datetime | None = None
    state: State = State.CURRENT
    superseded_by: str | None = None
    superseded_at: datetime | None = None
    links: tuple[EntryLink, ...] = ()
    data: JsonObject = field(default_factory=dict[str, "JsonValue"])
    assumed: frozenset[str] = frozenset()
    needs_links: bool = True
    erased_at: datetime | None = None


def to_entry(document: Document, links: Sequence[Link]) -> Entry:
    """Return the entry of a stored document, given every link that starts or ends at it."""
    successor = supersession.get_successor_id(document)
    if is_erased(document):
        superseded_at = _get_superseded_at(document, links) if successor is not None else None
        return make_gap(document.id, document.created_at, successor, superseded_at)
    return Entry(
        id=document.id,
        title=document.title,
        body=document.body,
        author=document.author,
        created_at=document.created_at,
        modified_at=document.modified_at,
        tags=tuple(models.get_tags(document)),
        confidence=models.get_confidence(document),
        source=str(document.data["source"]),
        expires_at=models.get_expiry(document),
        state=document.state,
        superseded_by=successor,
        superseded_at=_get_superseded_at(document, links) if successor is not None else None,
        links=sort_links(_list_own_links(document, links)),
        data={name: value for name, value in document.data.items() if name not in _OWN_DATA},
    )


def make_gap(id: str, erased_at: datetime, superseded_by: str | None, superseded_at: datetime | None) -> Entry:
    """Return what remains of an erased entry."""
    return Entry(
        id=id,
        title="",
        body="",
        author="",
        created_at=erased_at,
        modified_at=erased_at,
        state=State.WITHDRAWN,
        superseded_by=superseded_by,
        superseded_at=superseded_at,
        erased_at=erased_at,
    )


def to_tombstone(entry: Entry, org: str) -> Document:
    """Return the tombstone of an entry that was erased elsewhere; see `erased_at`."""
    barrier = make_barrier(models.get_collection(org), entry.id, entry.created_at)
    successor = {} if entry.superseded_by is None else {supersession.SUPERSEDED_BY: entry.superseded_by}
    return replace(barrier, data={**barrier.data, **successor})


def to_document(entry: Entry, org: str) -> Document:
    """Return the document of an entry that was not erased, in its first version."""
    stored = StoreInput.model_construct(
        title=entry.title,
        body=entry.body,
        tags=list(entry.tags),
        confidence=entry.confidence,
        expires_at=entry.expires_at,
    )
    document = models.to_document(stored, id=entry.id, org=org, author=entry.author, now=entry.created_at)
    data: dict[str, JsonValue] = {**entry.data, **document.data, "source": entry.source}
    if entry.superseded_by is not None:
        data |= {supersession.SUPERSEDED_BY: entry.superseded_by}
    return replace(document, modified_at=entry.modified_at, state=entry.state, data=data)


def to_links(entry: Entry, org: str) -> list[Link]:
    """Return the entry's links as the store holds them, without the edge of its chain."""
    own = refer(entry.id)
    pairs = [(link, (link.other, own) if link.is_incoming else (own, link.other)) for link in entry.links]
    return [Link(org, source, link.kind, target, link.created_at) for link, (source, target) in pairs]


def list_linked_entries(entry: Entry) -> list[str]:
    """Return the ids of the entries that it links to, without its successor."""
    return [link.other.id for link in entry.links if link.other.toolset == TOOLSET_NAME and link.other.id != entry.id]


def find_differences(entry: Entry, stored: Entry) -> list[str]:
    """Return the names of the fields in which the two differ, ignoring those that the source of `entry` lacks."""
    ignored = _NOT_COMPARED | entry.assumed
    names = [each.name for each in fields(entry) if each.name not in ignored]
    return [name for name in names if getattr(entry, name) != getattr(stored, name)]


def check(entry: Entry) -> Entry:
    """Return the entry, its tags normalised.

    Raises:
        RefusedError: It breaks a rule that `store_knowledge` would have enforced.
    """
    try:
        models.GetInput.model_validate({"id": entry.id})
        if entry.erased_at is not None:
            _check_place(entry)
            return entry
        stored = StoreInput.model_validate(
            {
                "title": entry.title,
                "body": entry.body,
                "tags": list(entry.tags),
                "confidence": entry.confidence,
                "expires_at": entry.expires_at,
            },
            strict=True,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise RefusedError(f"{name}: {first['msg'].removeprefix('Value error, ')}") from None
    _check_rest(entry)
    return replace(entry, tags=tuple(stored.tags))


def refer(id: str) -> Reference:
    """Return the reference to an entry."""
    return Reference(TOOLSET_NAME, id)


def sort_links(links: Iterable[EntryLink]) -> tuple[EntryLink, ...]:
    """Return the links oldest first, ties by kind, direction and the other end."""
    return tuple(sorted(links, key=_get_link_order))


def _get_link_order(link: EntryLink) -> tuple[datetime, str, bool, str, str]:
    return link.created_at, link.kind, link.is_incoming, link.other.toolset, link.other.id


def _check_place(entry: Entry) -> None:
    if entry.id != models.GetInput.model_validate({"id": entry.id}).id:
        raise RefusedError("id is not a UUID in its plain form, lower case with hyphens")
    if entry.superseded_by == entry.id:
        raise RefusedError("is superseded by itself")
    if (entry.superseded_by is None) != (entry.superseded_at is None):
        raise RefusedError("supersededBy and supersededAt must come together")


def _check_rest(entry: Entry) -> None:
    _check_place(entry)
    if not entry.author.strip() or len(entry.author) > LONGEST_AUTHOR:
        raise RefusedError(f"author has not 1 to {LONGEST_AUTHOR} characters")
    if not entry.source.strip():
        raise RefusedError("source is blank")
    if entry.state is not State.WITHDRAWN and (entry.state is State.SUPERSEDED) != (entry.superseded_by is not None):
        raise RefusedError("state and supersededBy contradict each other")
    if len({(link.kind, link.other, link.is_incoming) for link in entry.links}) < len(entry.links):
        raise RefusedError("has a link twice")
    if any(len(name) > LONGEST_NAME for link in entry.links for name in (link.kind, link.other.toolset)):
        raise RefusedError(f"a link has a kind or toolset of more than {LONGEST_NAME} characters")
    if any(len(link.other.id) > LONGEST_ID for link in entry.links):
        raise RefusedError(f"a link has an id of more than {LONGEST_ID} characters")
    if not _OWN_DATA.isdisjoint(entry.data):
        raise RefusedError("data repeats a field that has its own place")


def _get_superseded_at(document: Document, links: Sequence[Link]) -> datetime:
    own = refer(document.id)
    edges = [link.created_at for link in links if link.kind == supersession.SUPERSEDES and link.target == own]
    return min(edges, default=document.modified_at)


def _list_own_links(document: Document, links: Sequence[Link]) -> list[EntryLink]:
    own, listed = refer(document.id), list[EntryLink]()
    for link in links:
        other = link.target if link.source == own else link.source
        is_incoming = link.source != own
        # A link between two entries belongs to the one it starts from, but a chain's edge to the superseded entry.
        is_elsewhere = other.toolset == TOOLSET_NAME and (is_incoming or link.kind == supersession.SUPERSEDES)
        if not is_elsewhere:
            listed.append(EntryLink(link.kind, other, is_incoming, link.created_at))
    return listed
