"""Meaning: searches judge documents a second time once they have vectors, which are made after the commit.

Documents still to be judged are noted in the same commit as the events found by keywords, so that the note survives a
restart, and are judged as soon as they are embedded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from refdesk.model import Collection, Metadata, MetadataKey, State
from refdesk.watching import judging
from refdesk.watching.news import Event, What
from refdesk.watching.watches import UNREAD

if TYPE_CHECKING:
    from refdesk.core.search.semantics import Semantics
    from refdesk.model import Document, JsonValue, VectorQuery
    from refdesk.protocols import DocumentVectors, Store
    from refdesk.watching.judging import Passing
    from refdesk.watching.watches import Watch

MOST_UNREAD = 1_000
"""Most documents of one org that are looked at together."""

PATIENCE = timedelta(hours=6)
"""A document that has no vectors after this long is judged by its keywords alone."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A document whose meaning is still to be judged.

    Attributes:
        record: The record that says so.
        what: The event to tell if it matches.
    """

    record: Metadata
    log: str
    number: int
    at: datetime
    collection: Collection
    id: str
    version: int
    what: What


def make_unread(org: str, passing: Passing) -> Metadata:
    """Return the record of a document whose meaning is still to be judged for an org."""
    each = passing.happening
    value: dict[str, JsonValue] = {
        "log": each.log,
        "number": each.number,
        "at": each.at.isoformat(),
        "org": each.collection.org,
        "toolset": each.collection.toolset,
        "id": each.id,
        "version": each.version,
        "what": judging.name_search_event(passing),
    }
    key = MetadataKey(org, UNREAD, f"{each.log}/{each.collection.toolset}/{each.id}")
    return Metadata(key, value, due_at=each.at + PATIENCE)


def read_unread(record: Metadata) -> Unread:
    """Return the document that `make_unread` noted."""
    value = record.value
    return Unread(
        record,
        str(value["log"]),
        int(str(value["number"])),
        datetime.fromisoformat(str(value["at"])),
        Collection(str(value["org"]), str(value["toolset"])),
        str(value["id"]),
        int(str(value["version"])),
        cast("What", value["what"]),
    )


async def judge_meaning(
    store: Store, semantics: Semantics, watches: Sequence[Watch], unread: Sequence[Unread], now: datetime
) -> tuple[list[tuple[Watch, Event]], list[Unread]]:
    """Return what searches tell of documents of one collection, and which documents are finished.

    Args:
        store: The store of the documents.
        semantics: The semantics of their vectors.
        watches: The searches of one org.
        unread: The documents.
        now: The present time; documents that have been without vectors for too long are finished, too.
    """
    embedder, collection = await semantics.get_active(), unread[0].collection
    late = [each for each in unread if each.record.due_at is not None and each.record.due_at <= now]
    if embedder is None:
        return [], late
    ids = [each.id for each in unread]
    embedded = await store.get_embedded(collection, embedder.model.name, ids)
    ready = [each for each in unread if each.id in embedded]
    queries = await _embed(semantics, [watch for watch in watches if _looks_at(watch, collection)])
    if not ready or queries is None:
        return [], late
    documents = await store.get_documents(collection, [each.id for each in ready])
    vectors = await store.get_vectors(collection, [each.id for each in ready])
    told = [
        (watch, Event(each.what, collection.toolset, each.id, each.at, each.version))
        for each, document, held in zip(ready, documents, vectors, strict=True)
        if document is not None and document.version == each.version and document.state is State.CURRENT
        for watch, query in queries
        if _is_new_to(watch, each) and _is_found(watch, query, document, held)
    ]
    return told, [each for each in unread if each in ready or each in late]


def _looks_at(watch: Watch, collection: Collection) -> bool:
    return collection.toolset in watch.toolsets


def _is_new_to(watch: Watch, unread: Unread) -> bool:
    begins = watch.begins.get(unread.log)
    return unread.at >= watch.created_at if begins is None else unread.number > begins


async def _embed(semantics: Semantics, watches: Sequence[Watch]) -> list[tuple[Watch, VectorQuery]] | None:
    """Return the searches whose vectors tell something; `None` while the model is loaded or not available."""
    found: list[tuple[Watch, VectorQuery]] = []
    for watch in watches:
        query, status = await semantics.embed_query(watch.subject, watch.org)
        if status in ("loading", "unavailable"):
            return None
        if query is not None and query.scale is not None:
            found.append((watch, query))
    return found


def _is_found(watch: Watch, query: VectorQuery, document: Document, held: DocumentVectors) -> bool:
    """Return whether a document matches by its vectors but not by its keywords, which is reported earlier."""
    passages = [passage for model, each in held if model.name == query.model for passage in each]
    if not passages or not judging.has_tags(watch, document) or judging.matches(watch, document):
        return False
    best = max(passages, key=lambda passage: float(passage.vector @ query.vector))
    cosine = float(best.vector @ query.vector)
    return judging.matches(watch, document, cosine, query.scale, (best.start, best.end))


def group(unread: Sequence[Unread]) -> Mapping[tuple[str, Collection], list[Unread]]:
    """Return documents grouped by log and collection."""
    groups: dict[tuple[str, Collection], list[Unread]] = {}
    for each in unread:
        groups.setdefault((each.log, each.collection), []).append(each)
    return groups
