"""The fields of an entry in refdesk's own formats: camel case, empty ones omitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from refdesk.core.writing import supersession
from refdesk.kit.strict_values import RefusedError, read_instant, read_string, read_strings
from refdesk.model import Reference, State
from refdesk.toolsets.knowledge import TOOLSET_NAME
from refdesk.toolsets.knowledge.transfer.entries import Entry, EntryLink, check, make_gap, sort_links

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.model import JsonObject, JsonValue

FORMAT = "refdesk-knowledge"
VERSION = 1

_FIELDS = frozenset(
    [
        "id",
        "title",
        "author",
        "source",
        "confidence",
        "tags",
        "state",
        "createdAt",
        "modifiedAt",
        "expiresAt",
        "supersededBy",
        "supersededAt",
        "links",
        "data",
        "body",
    ]
)
_GAP_FIELDS = frozenset({"id", "supersededBy", "supersededAt", "erasedAt", "body"})
_LINK_FIELDS = frozenset({"kind", "from", "to", "createdAt"})


def to_record(entry: Entry) -> dict[str, JsonValue]:
    """Return the entry as a record; its keys always come in the same order, the body last."""
    if entry.erased_at is not None:
        return _gap_to_record(entry)
    record: dict[str, JsonValue] = {
        "id": entry.id,
        "title": entry.title,
        "author": entry.author,
        "source": entry.source,
        "confidence": entry.confidence,
        "tags": list(entry.tags),
        "state": entry.state.value,
        "createdAt": entry.created_at.isoformat(),
        "modifiedAt": entry.modified_at.isoformat(),
        "expiresAt": _format_instant(entry.expires_at),
        "supersededBy": entry.superseded_by,
        "supersededAt": _format_instant(entry.superseded_at),
        "links": [_link_to_record(link) for link in entry.links],
        "data": _sort_keys(entry.data),
        "body": entry.body,
    }
    return {name: value for name, value in record.items() if value not in (None, [], {})}


def from_record(record: JsonObject, author: str) -> Entry:
    """Return the entry of a record.

    Args:
        author: The author if the record names none.

    Raises:
        RefusedError: It is not a valid entry.
    """
    if "erasedAt" in record:
        return _read_gap(record)
    if unknown := sorted(record.keys() - _FIELDS):
        raise RefusedError(f"has a field that is unknown: {', '.join(unknown)[:200]}")
    created_at = _read_instant(record, "createdAt")
    superseded_by = record.get("supersededBy")
    if created_at is None:
        raise RefusedError("createdAt is missing")
    return check(
        Entry(
            id=read_string(record, "id"),
            title=read_string(record, "title"),
            body=read_string(record, "body"),
            author=read_string(record, "author") if "author" in record else author,
            created_at=created_at,
            modified_at=_read_instant(record, "modifiedAt") or created_at,
            tags=tuple(read_strings(record.get("tags", []), "tags")),
            confidence=cast("int", record.get("confidence", 80)),
            source=read_string(record, "source") if "source" in record else "agent",
            expires_at=_read_instant(record, "expiresAt"),
            state=_read_state(record),
            superseded_by=read_string(record, "supersededBy") if superseded_by is not None else None,
            superseded_at=_read_instant(record, "supersededAt"),
            links=sort_links(_read_link(link) for link in _read_list(record, "links")),
            data=_read_object(record.get("data", {}), "data"),
            assumed=frozenset() if "author" in record else frozenset({"author"}),
        )
    )


def _gap_to_record(entry: Entry) -> dict[str, JsonValue]:
    record: dict[str, JsonValue] = {
        "id": entry.id,
        "supersededBy": entry.superseded_by,
        "supersededAt": _format_instant(entry.superseded_at),
        "erasedAt": _format_instant(entry.erased_at),
    }
    return {name: value for name, value in record.items() if value is not None}


def _read_gap(record: JsonObject) -> Entry:
    if record.keys() - _GAP_FIELDS or record.get("body", "") != "":
        raise RefusedError("has erasedAt and says something all the same")
    erased_at, superseded_by = _read_instant(record, "erasedAt"), record.get("supersededBy")
    if erased_at is None:
        raise RefusedError("erasedAt is missing")
    successor = read_string(record, "supersededBy") if superseded_by is not None else None
    return check(make_gap(read_string(record, "id"), erased_at, successor, _read_instant(record, "supersededAt")))


def _link_to_record(link: EntryLink) -> JsonObject:
    other = {"toolset": link.other.toolset, "id": link.other.id}
    direction = "from" if link.is_incoming else "to"
    return {"kind": link.kind, direction: other, "createdAt": link.created_at.isoformat()}


def _read_link(value: JsonValue) -> EntryLink:
    record = _read_object(value, "a link")
    if unknown := sorted(record.keys() - _LINK_FIELDS):
        raise RefusedError(f"a link has a field that is unknown: {', '.join(unknown)[:200]}")
    if ("from" in record) == ("to" in record):
        raise RefusedError("a link has not exactly one of from and to")
    is_incoming = "from" in record
    other = _read_object(record["from" if is_incoming else "to"], "the other end of a link")
    reference = Reference(read_string(other, "toolset"), read_string(other, "id"))
    kind, created_at = read_string(record, "kind"), _read_instant(record, "createdAt")
    if not (kind and reference.toolset and reference.id) or created_at is None:
        raise RefusedError("a link lacks its kind, its createdAt or its other end")
    if reference.toolset == TOOLSET_NAME and (is_incoming or kind == supersession.SUPERSEDES):
        raise RefusedError("a link between entries is not said by the entry it starts from, or is one of a chain")
    return EntryLink(kind, reference, is_incoming, created_at)


def _read_instant(record: Mapping[str, object], name: str) -> datetime | None:
    value = record.get(name)
    return read_instant(value, name, assume_utc=False) if value is not None else None


def _read_state(record: JsonObject) -> State:
    default = State.CURRENT if record.get("supersededBy") is None else State.SUPERSEDED
    try:
        return State(str(record.get("state", default)))
    except ValueError:
        raise RefusedError(f"state is none of {', '.join(state.value for state in State)}") from None


def _read_list(record: JsonObject, name: str) -> Sequence[JsonValue]:
    value = record.get(name, [])
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise RefusedError(f"{name} is not a list")
    return value


def _read_object(value: JsonValue, name: str) -> JsonObject:
    if not isinstance(value, Mapping):
        raise RefusedError(f"{name} is not an object")
    return value


def _format_instant(instant: datetime | None) -> str | None:
    return instant.isoformat() if instant is not None else None


def _sort_keys(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {name: _sort_keys(value[name]) for name in sorted(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_sort_keys(item) for item in value]
    return value
