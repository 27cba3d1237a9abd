"""Reads everything that a store keeps, and compares what must agree: rows, digests, vectors, index, audit log.

It works through the port, so it checks the same for every engine; checking an engine's files is left to that engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from refdesk.core.search.analysis import parse_query
from refdesk.core.writing import audit, supersession
from refdesk.errors import RefdeskError
from refdesk.model import Collection, FindRequest, HasId, SortKey, State

if TYPE_CHECKING:
    from refdesk.model import Document, Link, MetadataKey, Revision
    from refdesk.protocols import DocumentVectors, Store

PAGE = 500
MOST_SEARCHED = 100
"""Most documents of a collection that are searched for by their own titles; listing covers all of them."""

LONGEST_OFF = 0.02
"""How far the length of a vector in half precision may differ from 1."""


@dataclass(slots=True)
class Findings:
    """What was examined, and what is wrong with it, in words for whoever runs the server.

    Attributes:
        area: `documents`, `vectors`, `index`, `links`, `records` or `audit log`.
        count: How many items were examined.
    """

    area: str
    count: int = 0
    faults: list[str] = field(default_factory=list[str])


async def examine(store: Store) -> AsyncIterator[Findings]:
    """Yield the findings for each area; if the store fails half way, that counts as a fault of the area."""
    documents, vectors, index = Findings("documents"), Findings("vectors"), Findings("index")
    try:
        for collection in sorted(await store.list_collections()):
            await _examine_collection(store, collection, documents, vectors, index)
    except RefdeskError as error:
        documents.faults.append(error.message)
    for each in (documents, vectors, index):
        yield each
    for area, work in (("links", _examine_links), ("records", _examine_records), ("audit log", _examine_audit)):
        found = Findings(area)
        try:
            await work(store, found)
        except RefdeskError as error:
            found.faults.append(error.message)
        yield found


async def _examine_collection(
    store: Store, collection: Collection, documents: Findings, vectors: Findings, index: Findings
) -> None:
    digests = dict(await store.get_digests(collection))
    seen: set[str] = set()
    async for ids in _list_ids(store, collection):
        for id in ids:
            seen.add(id)
            await _examine_document(store, collection, id, digests.get(id), documents, vectors)
    documents.faults += [f"{_name(collection, id)} is listed and not there" for id in sorted(digests.keys() - seen)]
    await _examine_index(store, collection, set(digests), index)


async def _list_ids(store: Store, wanted: Collection) -> AsyncIterator[list[str]]:
    after: tuple[Collection, str] | None = None
    while entries := await store.list_documents(after, PAGE):
        after = entries[-1]
        for collection, group in groupby(entries, key=itemgetter(0)):
            if collection == wanted:
                yield [id for _, id in group]


async def _examine_document(
    store: Store, collection: Collection, id: str, digest: str | None, documents: Findings, vectors: Findings
) -> None:
    documents.count += 1
    try:
        history = await store.get_revisions(collection, id)
        [kept] = await store.get_vectors(collection, [id])
    except RefdeskError as error:
        documents.faults.append(f"{_name(collection, id)}: {error.message}")
        return
    name = _name(collection, id)
    documents.faults += [f"{name} {fault}" for fault in _find_document_faults(history, digest)]
    if history:
        vectors.count += sum(len(passages) for _, passages in kept)
        vectors.faults += [f"{name} {fault}" for fault in _find_vector_faults(history[-1].document, kept)]


def _find_document_faults(history: Sequence[Revision], digest: str | None) -> list[str]:
    if not history:
        return ["has no version"]
    numbers = [each.document.version for each in history]
    faults: list[str] = []
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        faults.append(f"lacks a version: it has {', '.join(map(str, numbers))}")
    present = history[-1].document
    if present.state is not State.WITHDRAWN and digest is None:
        faults.append("is there and not listed")
    if digest is not None and digest != present.digest:
        faults.append("is not what its digest says")
    return faults


def _find_vector_faults(document: Document, kept: DocumentVectors) -> list[str]:
    faults: list[str] = []
    for model, passages in kept:
        for passage in passages:
            length = float(np.linalg.norm(passage.vector))
            if passage.vector.shape != (model.dimensions,):
                faults.append(f"has a vector of {model.name} of another width")
            elif not abs(length - 1.0) <= LONGEST_OFF:
                faults.append(f"has a vector of {model.name} of length {length:.3f}")
            if not 0 <= passage.start <= passage.end <= len(document.body):
                faults.append("has a passage outside of its text")
    return faults


async def _examine_index(store: Store, collection: Collection, ids: set[str], index: Findings) -> None:
    """Compare what is found without a question with what is there, and search for some documents by their titles."""
    if not ids:
        return
    found = await store.find(FindRequest(collection, depth=len(ids) + 1, order=(SortKey("id"),)))
    listed = {candidate.id for candidate in found.candidates}
    index.count += len(listed)
    index.faults += [f"{_name(collection, id)} is not found" for id in sorted(ids - listed)]
    index.faults += [f"{_name(collection, id)} is found and not there" for id in sorted(listed - ids)]
    for document in await store.get_documents(collection, sorted(ids & listed)[:MOST_SEARCHED]):
        query = parse_query(document.title) if document is not None else None
        if document is None or query is None or not query.terms or query.phrases:
            continue
        request = FindRequest(collection, text=query, where=HasId((document.id,)), depth=1)
        if not (await store.find(request)).candidates:
            index.faults.append(f"{_name(collection, document.id)} is not found by its title")


async def _examine_links(store: Store, found: Findings) -> None:
    after: Link | None = None
    while links := await store.list_links(after, PAGE):
        after = links[-1]
        found.count += len(links)
        for link in links:
            if link.kind == supersession.SUPERSEDES and not await _has_both_ends(store, link):
                found.faults.append(f"a supersession of {link.org} leads to nothing: {link.source.id} {link.target.id}")


async def _has_both_ends(store: Store, link: Link) -> bool:
    for each in (link.source, link.target):
        [document] = await store.get_documents(Collection(link.org, each.toolset), [each.id])
        if document is None:
            return False
    return True


async def _examine_records(store: Store, found: Findings) -> None:
    after: MetadataKey | None = None
    while records := await store.list_all_metadata(after, PAGE):
        after = records[-1].key
        found.count += len(records)


async def _examine_audit(store: Store, found: Findings) -> None:
    for org in await store.list_audited_orgs():
        verdict = await audit.verify(store, org)
        found.count += verdict.entries
        if verdict.broken is not None:
            found.faults.append(f"{org}: {verdict.broken.reason}")


def _name(collection: Collection, id: str) -> str:
    return f"{collection.toolset} {id} of {collection.org}"
