"""Random walks: the same writes to several stores, and questions to all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

import numpy as np
import pytest

from refdesk.core.search.analysis import analyse
from refdesk.core.writing.supersession import HEAD
from refdesk.model import (
    And,
    Collection,
    DateRange,
    Document,
    EmbeddedPassage,
    EmbeddingModel,
    Filter,
    FindRequest,
    Found,
    HasAll,
    HasAny,
    HasId,
    InState,
    Not,
    Or,
    Overlaps,
    SortBy,
    SortKey,
    State,
    TextQuery,
    Vector,
    VectorQuery,
)
from refdesk.protocols import Store
from tests.stores.samples import NOW

COLLECTIONS = (Collection("acme", "notes"), Collection("zenith", "notes"))
MODELS = (EmbeddingModel("one", 4), EmbeddingModel("two", 4))
WORDS = ("apple", "apples", "pear", "plum", "the", "of", "resume", "Résumé", "漢字漢字", "C++", "vpn", "VPN", "42")
VALUES = ("VPN", "vpn", "Vpn ", "Straße", "STRASSE", "a", "b")
FACETS, SPANS = ("tags", "ring"), ("ready", "changed")
IDS = tuple(f"d{number}" for number in range(12))
SORTS: tuple[SortBy, ...] = ("all_terms", "lexical", "modified", "created", "title", "id", "date_range")


@dataclass
class Walk:
    """Draws writes and questions; every draw comes from `random`, so a seed replays a walk."""

    random: Random
    documents: dict[tuple[Collection, str], Document] = field(default_factory=dict[tuple[Collection, str], Document])

    async def write(self, stores: Sequence[Store]) -> None:
        kind = self.random.randrange(10)
        if kind < 6:
            await self._put(stores, [self._draw_document() for _ in range(self.random.randrange(1, 5))])
        elif kind < 9:
            await self._embed(stores)
        elif self.random.random() < 0.3:
            await self._remove_vectors(stores)

    async def _put(self, stores: Sequence[Store], drawn: Sequence[Document]) -> None:
        distinct = list({(each.collection, each.id): each for each in drawn}.values())
        for store in stores:
            async with store.transaction() as transaction:
                await transaction.put_documents(distinct)
        self.documents.update({(each.collection, each.id): each for each in distinct})

    async def _embed(self, stores: Sequence[Store]) -> None:
        if not self.documents:
            return
        document = self.random.choice(list(self.documents.values()))
        model = self.random.choice(MODELS)
        passages = [EmbeddedPassage(n, n + 1, self._draw_vector()) for n in range(self.random.randrange(4))]
        kept: set[bool] = set()
        for store in stores:
            async with store.transaction() as transaction:
                kept.add(
                    await transaction.put_vectors(
                        document.collection, document.id, model, document.text_digest, passages
                    )
                )
        assert len(kept) == 1

    async def _remove_vectors(self, stores: Sequence[Store]) -> None:
        model, removed = self.random.choice(MODELS).name, set[int]()
        for store in stores:
            async with store.transaction() as transaction:
                removed.add(await transaction.remove_vectors(model))
        assert len(removed) == 1

    def draw_request(self) -> FindRequest:
        """Return a question; its order always ends so that no tie is left to rounding."""
        chance = self.random.random
        phrases = filter(None, [self._draw_terms(2) for _ in range(self.random.randrange(2))])
        text = TextQuery(self._draw_terms(3), tuple(phrases))
        order = tuple(
            SortKey(by, chance() < 0.5, SPANS[0]) for by in self.random.sample(SORTS, self.random.randrange(3))
        )
        return FindRequest(
            collection=self.random.choice(COLLECTIONS),
            text=text if chance() < 0.7 else None,
            vector=VectorQuery(self._draw_vector(), self.random.choice(MODELS).name) if chance() < 0.5 else None,
            where=self._draw_filter(2) if chance() < 0.6 else None,
            depth=self.random.choice((1, 3, 100)),
            order=(*order, SortKey("id", chance() < 0.5)),
            facets=FACETS if chance() < 0.5 else (),
            title_contains=self.random.choice(WORDS) if chance() < 0.3 else None,
        )

    def _draw_document(self) -> Document:
        collection, id = self.random.choice(COLLECTIONS), self.random.choice(IDS)
        drawn = Document(
            collection=collection,
            id=id,
            title=self._draw_text(4),
            body=self._draw_text(12),
            author="ann",
            created_at=self._draw_instant(),
            modified_at=self._draw_instant(),
            facets={name: tuple(self.random.choices(VALUES, k=self.random.randrange(4))) for name in FACETS},
            date_ranges={name: tuple(self._draw_span() for _ in range(self.random.randrange(3))) for name in SPANS},
            state=self.random.choices(tuple(State), weights=(6, 2, 2))[0],
            data=self.random.choice(({}, {HEAD: ""}, {HEAD: "d1"}, {"x": 1, HEAD: self.random.choice(IDS)})),
        )
        old = self.documents.get((collection, id))
        if old is None:
            return drawn
        texts = {"title": old.title, "body": old.body} if self.random.random() < 0.5 else {}
        return replace(drawn, version=old.version + 1, **texts)

    def _draw_filter(self, depth: int) -> Filter:
        leaves: list[Filter] = [
            HasAll(self.random.choice(FACETS), tuple(self.random.choices(VALUES, k=self.random.randrange(3)))),
            HasAny(self.random.choice(FACETS), tuple(self.random.choices(VALUES, k=self.random.randrange(3)))),
            Overlaps(SPANS[: self.random.randrange(3)], self._draw_end(), self._draw_end()),
            InState(tuple(self.random.sample(tuple(State), self.random.randrange(4)))),
            HasId(tuple(self.random.sample((*IDS, "nobody"), self.random.randrange(6)))),
        ]
        if depth and self.random.random() < 0.5:
            inner = (self._draw_filter(depth - 1), self._draw_filter(depth - 1))
            return self.random.choice([Not(inner[0]), And(inner), Or(inner)])
        return self.random.choice(leaves)

    def _draw_terms(self, most: int) -> tuple[str, ...]:
        return tuple(dict.fromkeys(analyse(self._draw_text(most))[:most]))

    def _draw_text(self, most: int) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randrange(most + 1)))

    def _draw_vector(self) -> Vector:
        # Of length one and exact in half precision, so that cosines are exact and no tie depends on rounding.
        if self.random.random() < 0.5:
            return np.array([self.random.choice((-0.5, 0.5)) for _ in range(4)], np.float32)
        vector = np.zeros(4, np.float32)
        vector[self.random.randrange(4)] = self.random.choice((-1.0, 1.0))
        return vector

    def _draw_instant(self) -> datetime:
        return NOW + timedelta(microseconds=self.random.randrange(6))

    def _draw_span(self) -> DateRange:
        ends = sorted((self._draw_instant(), self._draw_instant()))
        return DateRange(*ends)

    def _draw_end(self) -> datetime | None:
        return self._draw_instant() if self.random.random() < 0.7 else None


async def assert_agree(stores: Sequence[Store], walk: Walk) -> None:
    """Return when every store answers everything as the first does."""
    await _assert_reads_agree(stores, walk)
    request = walk.draw_request()
    expected, *others = [await store.find(request) for store in stores]
    for found in others:
        assert_same(found, expected, request)


def assert_same(found: Found, expected: Found, request: FindRequest) -> None:
    assert [each.id for each in found.candidates] == [each.id for each in expected.candidates], request
    assert (found.total, found.facets) == (expected.total, expected.facets), request
    for one, other in zip(found.candidates, expected.candidates, strict=True):
        assert one.lexical == pytest.approx(other.lexical, rel=1e-9), request
        assert one.cosine == (None if other.cosine is None else pytest.approx(other.cosine, abs=1e-5)), request
        assert one._replace(lexical=0.0, cosine=None) == other._replace(lexical=0.0, cosine=None), request


async def _assert_reads_agree(stores: Sequence[Store], walk: Walk) -> None:
    collection, id, model = walk.random.choice(COLLECTIONS), walk.random.choice(IDS), walk.random.choice(MODELS).name
    answers = [
        (
            await store.get_documents(collection, IDS),
            await store.get_revisions(collection, id),
            await store.get_digests(collection),
            await store.get_unembedded(collection, model, 5),
            await store.get_embedded(collection, model, IDS),
            await store.get_statistics(),
            await store.get_statistics(collection.org),
            [(each.collection, each.documents, each.embedded) for each in await store.count_embedded(model)],
        )
        for store in stores
    ]
    assert all(answer == answers[0] for answer in answers)
