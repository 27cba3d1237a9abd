"""Reading everything finds nothing wrong with a store that is well, whatever the engine, and each planted fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from refdesk.core.clock import SystemClock
from refdesk.core.keeping.examining import examine
from refdesk.core.writing import audit
from refdesk.errors import StoreError
from refdesk.model import (
    Collection,
    EmbeddedPassage,
    FindRequest,
    Found,
    Link,
    Metadata,
    MetadataKey,
    Reference,
    Revision,
    State,
)
from refdesk.protocols import DocumentVectors, Store
from tests.reliability.delegates import DelegatingStore
from tests.stores.samples import NOW, embed, make_document, passage, put, revise

ANN = audit.Actor("acme", "ann", "test")


async def fill(store: Store) -> None:
    watched = audit.watch(store, SystemClock(), ANN, "store_knowledge")
    first = make_document("a", "apples are green", "Apples")
    await put(watched, first, make_document("b", "bread", "Bread"))
    await put(watched, revise(first, body="apples are red"))
    await embed(store, revise(first, body="apples are red"), passage((1, 0, 0, 0), 0, 5))
    await put(watched, make_document("c", "gone", state=State.WITHDRAWN))
    async with store.transaction() as transaction:
        ends = Reference("notes", "b"), Reference("notes", "a")
        await transaction.put_links([Link("acme", ends[0], "supersedes", ends[1], NOW)])
        await transaction.put_metadata([Metadata(MetadataKey("acme", "job", "n"), {"n": 1})])


async def list_faults(store: Store) -> dict[str, list[str]]:
    return {findings.area: findings.faults async for findings in examine(store) if findings.faults}


async def test_a_store_that_is_well_has_no_faults(store: Store) -> None:
    await fill(store)
    assert await list_faults(store) == {}
    counts = {findings.area: findings.count async for findings in examine(store)}
    assert counts == {"documents": 3, "vectors": 1, "index": 2, "links": 1, "records": 1, "audit log": 3}


class Faulty(DelegatingStore):
    """A store with one fault, as damage would leave it."""

    fault = ""

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        history = await super().get_revisions(collection, id)
        if self.fault == "unreadable" and id == "a":
            raise StoreError("The store's file is damaged.")
        if self.fault == "a version is missing":
            return history[1:2] if id == "b" else [history[0], *history[2:]]
        if self.fault == "another text" and id == "a":
            return [*history[:-1], replace(history[-1], document=replace(history[-1].document, body="apples are rad"))]
        return history

    async def get_vectors(self, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
        vectors = await super().get_vectors(collection, ids)
        if self.fault != "a vector":
            return vectors
        doubled = [[(model, [_double(each) for each in kept]) for model, kept in one] for one in vectors]
        return [*doubled]

    async def get_digests(self, collection: Collection) -> Mapping[str, str]:
        digests = dict(await super().get_digests(collection))
        if self.fault == "not listed":
            del digests["b"]
        return digests

    async def find(self, request: FindRequest) -> Found:
        found = await super().find(request)
        is_hit = self.fault == ("not found by words" if request.text is not None else "not found")
        return replace(found, candidates=found.candidates[1:]) if is_hit else found

    async def list_links(self, after: Link | None, limit: int) -> list[Link]:
        links = await super().list_links(after, limit)
        if self.fault == "a link":
            return [replace(link, target=Reference("notes", "zz")) for link in links]
        return links

    async def get_audit(self, org: str, after: int = 0, limit: int = 1000) -> list[audit.AuditEntry]:
        entries = await super().get_audit(org, after, limit)
        return [each for each in entries if each.number != 2] if self.fault == "the log" else entries


def _double(kept: EmbeddedPassage) -> EmbeddedPassage:
    return replace(kept, vector=np.asarray(kept.vector * 2, np.float32))


PLANTED = {
    "unreadable": ("documents", "damaged"),
    "a version is missing": ("documents", "version"),
    "another text": ("documents", "digest"),
    "a vector": ("vectors", "length 2.000"),
    "not listed": ("documents", "not listed"),
    "not found": ("index", "is not found"),
    "not found by words": ("index", "by its title"),
    "a link": ("links", "leads to nothing"),
    "the log": ("audit log", "entry 2 is missing"),
}


@pytest.mark.parametrize("fault", PLANTED)
async def test_each_planted_fault_is_found(sqlite: Store, fault: str) -> None:
    await fill(sqlite)
    faulty = Faulty(sqlite)
    faulty.fault = fault
    area, words = PLANTED[fault]
    assert any(words in each for each in (await list_faults(faulty))[area])
