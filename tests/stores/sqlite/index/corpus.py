"""Random collections, kept in the index under test and in the reference engine at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import numpy as np

from refdesk.core.search.analysis import analyse
from refdesk.core.writing.supersession import find_head_id
from refdesk.model import (
    BEST_FIRST,
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
from refdesk.stores.memory import MemoryStore
from refdesk.stores.sqlite.index import CollectionIndex, IndexRow, VectorRow, encode_terms
from refdesk.stores.sqlite.index.content import from_content, to_content
from refdesk.stores.sqlite.index.files import map_content, write_content
from refdesk.stores.sqlite.index.merging import merge_snapshots

COLLECTION = Collection("local", "notes")
START = datetime(2026, 1, 1, tzinfo=UTC)
MODELS = (EmbeddingModel("small", 4), EmbeddingModel("wide", 8))
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu")
SPELLINGS = ("Red", "red", "RED", "Green", "green", "Blue", "ｂｌｕｅ", " blue ", "STRASSE", "straße")
SORT_KEYS: tuple[SortBy, ...] = ("all_terms", "lexical", "modified", "created", "title", "id")


def make_document(number: int, **changes: object) -> Document:
    """Return a document with nothing in it but what is given."""
    plain = Document(
        collection=COLLECTION, id=f"d{number}", title="", body="", author="a", created_at=START, modified_at=START
    )
    return replace(plain, **changes)  # pyright: ignore[reportArgumentType]


def to_row(document: Document, key: int | None = None, seq: int = 1) -> IndexRow:
    """Return the document as the index is given it; its key is the number in its id."""
    return IndexRow(
        key=int(document.id.lstrip("d")) if key is None else key,
        seq=seq,
        id=document.id,
        state=document.state,
        created_at=document.created_at,
        modified_at=document.modified_at,
        title=document.title,
        facets=document.facets,
        date_ranges=document.date_ranges,
        terms=encode_terms(document.title, document.body),
        head_id=find_head_id(document),
    )


def to_vector_row(key: int, vector: Sequence[float] | Vector, start: int = 0, end: int = 1) -> VectorRow:
    """Return a passage as the index is given it."""
    return VectorRow(key, start, end, np.asarray(vector, "<f2").tobytes())


def find_ids(index: CollectionIndex, request: FindRequest) -> list[str]:
    """Return the ids of what is found, in order."""
    return [candidate.id for candidate in index.find(request).candidates]


def ask(*terms: str, phrases: tuple[str, ...] = ()) -> TextQuery:
    """Return a question of words and phrases."""
    return TextQuery(
        tuple(term for word in terms for term in analyse(word)), tuple(tuple(analyse(phrase)) for phrase in phrases)
    )


class RandomCollection:
    """A collection that changes at random, in an index and in the reference engine alike."""

    def __init__(self, seed: int, index: CollectionIndex) -> None:
        self.random = Random(seed)
        self.index = index
        self.reference = MemoryStore()
        self.documents: dict[int, Document] = {}
        self.vectors: dict[tuple[str, int], list[VectorRow]] = {}
        self.seq = 0

    async def change(self) -> None:
        """Add, replace or withdraw some documents, or set the vectors of some."""
        if self.documents and self.random.random() < 0.3:
            await self._embed(self.random.choice(MODELS))
        else:
            await self._write(self.random.choice((1, 1, 1, 2, 20)))

    async def _write(self, count: int) -> None:
        numbers = self.random.sample(range(60), count)
        written = [self._make_document(number) for number in numbers]
        changed_text = [
            number
            for number, document in zip(numbers, written, strict=True)
            if number in self.documents and self.documents[number].text_digest != document.text_digest
        ]
        async with self.reference.transaction() as transaction:
            await transaction.put_documents(written)
        self.documents.update(zip(numbers, written, strict=True))
        for model in MODELS:
            self.vectors.update({(model.name, number): [] for number in changed_text})
        self._touch(numbers)

    def _touch(self, numbers: Sequence[int]) -> None:
        """Show the index everything there is of some documents."""
        self.seq += 1
        self.index.apply([to_row(self.documents[number], seq=self.seq) for number in numbers])
        for model in MODELS:
            rows = [row for number in numbers for row in self.vectors.get((model.name, number), [])]
            self.index.set_vectors(model.name, model.dimensions, numbers, rows)

    def freeze(self, folder: Path) -> None:
        """Put what the index holds, or the newest of it, into a file, and go on with what is mapped from that."""
        parts = self.index.parts
        first = self.random.choice((0, len(parts) - 1))
        path = folder / f"{self.seq}-{self.random.random()}"
        write_content(path, to_content(merge_snapshots(parts[first:]), {}))
        self.index = CollectionIndex((*parts[:first], from_content(map_content(path))), compact_above=10)

    async def _embed(self, model: EmbeddingModel) -> None:
        living = [number for number, each in self.documents.items() if each.state is not State.WITHDRAWN]
        numbers = self.random.sample(living, min(len(living), self.random.choice((1, 5, 30))))
        async with self.reference.transaction() as transaction:
            for number in numbers:
                document = self.documents[number]
                passages = [
                    EmbeddedPassage(start, start + 5, self.make_vector(model))
                    for start in range(self.random.choice((0, 1, 1, 2, 3)))
                ]
                await transaction.put_vectors(COLLECTION, document.id, model, document.text_digest, passages)
                rows = [to_vector_row(number, each.vector, each.start, each.end) for each in passages]
                self.vectors[model.name, number] = rows
        self._touch(numbers)

    def make_vector(self, model: EmbeddingModel) -> Vector:
        """Return a vector of unit length whose products are exact in any arithmetic, with many ties."""
        vector = np.zeros(model.dimensions, np.float32)
        vector[self.random.sample(range(model.dimensions), 4)] = [self.random.choice((-0.5, 0.5)) for _ in range(4)]
        return vector

    def _make_document(self, number: int) -> Document:
        old = self.documents.get(number)
        if old is not None and self.random.random() < 0.3:
            return replace(old, version=old.version + 1, modified_at=self._make_instant(), state=self._make_state())
        return make_document(
            number,
            title=" ".join(self.random.choices(WORDS, k=self.random.randrange(3))),
            body=" ".join(self.random.choices(WORDS, weights=range(1, 13), k=self.random.randrange(30))),
            created_at=self._make_instant(),
            modified_at=self._make_instant(),
            facets={
                name: tuple(self.random.choices(SPELLINGS, k=self.random.randrange(4))) for name in ("tag", "kind")
            },
            date_ranges={
                name: tuple(self._make_span() for _ in range(self.random.randrange(3))) for name in ("open", "shut")
            },
            state=self._make_state(),
            version=old.version + 1 if old else 1,
        )

    def _make_state(self) -> State:
        return self.random.choices(tuple(State), weights=(6, 2, 1))[0]

    def _make_instant(self) -> datetime:
        return START + timedelta(days=self.random.randrange(8))

    def _make_span(self) -> DateRange:
        start = self._make_instant()
        return DateRange(start, start + timedelta(days=self.random.randrange(3)))

    def make_request(self) -> FindRequest:
        """Return a question about anything, in any order."""
        model = self.random.choice(MODELS)
        return FindRequest(
            collection=COLLECTION,
            text=self._make_text() if self.random.random() < 0.8 else None,
            vector=VectorQuery(self.make_vector(model), model.name) if self.random.random() < 0.5 else None,
            where=self.make_filter(3) if self.random.random() < 0.6 else None,
            depth=self.random.choice((1, 2, 5, 100)),
            order=self.random.choice((BEST_FIRST, self._make_order())),
            facets=tuple(self.random.sample(("tag", "kind", "none"), self.random.randrange(4))),
            title_contains=self.random.choice((None, None, "", "eta", " Gamma", "a b", "absent")),
            effort=self.random.choice((None, 1, 200)),
            counts=self.random.random() < 0.5,
        )

    def _make_order(self) -> tuple[SortKey, ...]:
        keys = self.random.choices(SORT_KEYS, k=self.random.randrange(4))
        return tuple(SortKey(key, self.random.random() < 0.5) for key in keys)

    def _make_text(self) -> TextQuery:
        terms = self.random.sample((*WORDS, "absent"), self.random.randrange(4))
        phrases = [
            " ".join(self.random.choices(WORDS, weights=range(1, 13), k=self.random.randrange(1, 4)))
            for _ in range(self.random.choice((0, 0, 1, 2)))
        ]
        return ask(*terms, phrases=tuple(phrases))

    def make_filter(self, depth: int) -> Filter:
        """Return a condition, nested at most `depth` deep."""
        kind = self.random.randrange(7 if depth else 4)
        match kind:
            case 0:
                return HasAll(self.random.choice(("tag", "kind", "none")), self._make_values())
            case 1:
                return HasAny(self.random.choice(("tag", "kind", "none")), self._make_values())
            case 2:
                since = self.random.choice((None, self._make_instant()))
                until = self.random.choice((None, self._make_instant()))
                return Overlaps(tuple(self.random.sample(("open", "shut", "none"), 2)), since, until)
            case 3:
                return InState(tuple(self.random.sample(tuple(State), self.random.randrange(4))))
            case 4:
                return Not(self.make_filter(depth - 1))
            case 5:
                return And(tuple(self.make_filter(depth - 1) for _ in range(self.random.randrange(4))))
            case _:
                return Or(tuple(self.make_filter(depth - 1) for _ in range(self.random.randrange(4))))

    def _make_values(self) -> tuple[str, ...]:
        return tuple(self.random.choices((*SPELLINGS, "unknown"), k=self.random.randrange(3)))

    async def find_both(self, request: FindRequest) -> tuple[Found, Found]:
        """Return what the index finds, and what the reference engine finds."""
        found, expected = self.index.find(request), await self.reference.find(request)
        return found if request.counts else replace(found, total=expected.total), expected
