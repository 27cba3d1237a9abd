"""Writes embeddings: each model has rows, counts and an HNSW index of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.errors import InvalidInputError
from refdesk.stores.postgres import hnsw
from refdesk.stores.postgres.connections import ALL_ORGS, Scope, Statement
from refdesk.stores.postgres.rows import encode_digest

if TYPE_CHECKING:
    from refdesk.model import Collection, EmbeddingModel
    from refdesk.stores.postgres.transactions import Session

NO_MODEL = -1
"""A key that no model has."""

_GET_MODEL = "SELECT key, dimensions FROM models WHERE name = %s"
_MAKE_MODEL = "INSERT INTO models (name, dimensions) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING key"
_CLEAR = """
    WITH asked AS (
        SELECT id, key
        FROM documents JOIN unnest(%(ids)s::text[], %(digests)s::bytea[]) AS asked (id, text_digest)
            USING (id, text_digest)
        WHERE org = %(org)s AND toolset = %(toolset)s AND id = ANY(%(ids)s::text[]) AND state <> 'withdrawn'
    ), removed AS (
        DELETE FROM vectors WHERE org = %(org)s AND model = %(model)s AND document = ANY(ARRAY(SELECT key FROM asked))
        RETURNING number
    ) SELECT id, (SELECT count(*) FROM removed), (SELECT count(*) FROM removed WHERE number = 0) FROM asked
"""
_PUT = """
    INSERT INTO vectors (org, document, model, number, first, last, vector)
    SELECT org, key, %(model)s, passage.number, passage.first, passage.last, passage.vector::halfvec
    FROM documents JOIN unnest(
        %(of_ids)s::text[], %(of_digests)s::bytea[], %(numbers)s::integer[], %(starts)s::integer[], %(ends)s::integer[],
        %(vectors)s::text[]
    ) AS passage (id, text_digest, number, first, last, vector) USING (id, text_digest)
    WHERE org = %(org)s AND toolset = %(toolset)s AND id = ANY(%(ids)s::text[]) AND state <> 'withdrawn'
"""
_COUNT = """
    INSERT INTO embeddings AS kept (org, toolset, model, passages, embedded)
    VALUES (%(org)s, %(toolset)s, %(model)s, %(passages)s, %(documents)s)
    ON CONFLICT (org, toolset, model) DO UPDATE SET
        passages = kept.passages + excluded.passages, embedded = kept.embedded + excluded.embedded
"""
# By this number a search knows whether a standby is up to date.
_NOTE_CHANGE = "UPDATE orgs SET changes = changes + 1 WHERE org = %(org)s"
_COUNT_SEEN = """
    UPDATE embeddings SET embedded = embedded + %(change)s * counts.documents FROM (
        SELECT model, count(*) AS documents FROM vectors
        WHERE org = %(org)s AND document = ANY(%(keys)s::bigint[]) AND number = 0 GROUP BY model
    ) AS counts
    WHERE org = %(org)s AND toolset = %(toolset)s AND embeddings.model = counts.model
"""
_RECOUNT = """
    UPDATE embeddings SET embedded = counted.documents FROM (
        SELECT count(*) AS documents FROM vectors
        JOIN documents ON documents.org = vectors.org AND documents.key = vectors.document
        WHERE vectors.org = %(org)s AND toolset = %(toolset)s AND model = %(model)s AND number = 0
            AND state <> 'withdrawn'
    ) AS counted
    WHERE org = %(org)s AND toolset = %(toolset)s AND model = %(model)s
"""
_REMOVE = "DELETE FROM vectors WHERE model = %s RETURNING org, document"


@dataclass(frozen=True, slots=True)
class Embedded:
    """A document, the digest of the text that the vectors are of, and (start, end, vector) of each passage."""

    id: str
    text_digest: str
    passages: Sequence[tuple[int, int, str]]


class Vectors:
    """The vectors that a transaction writes. What it changes is counted once, at its end.

    Attributes:
        lack_graph: Whether there is a new model whose graph is still to be built.
    """

    def __init__(self, session: Session, *, is_loading: bool) -> None:
        """Begin.

        Args:
            session: The transaction.
            is_loading: Whether a store is being loaded: a new model then gets no graph.
        """
        self._session = session
        self._is_loading = is_loading
        self._models: dict[str, tuple[int, int]] = {}
        self._passages: Counter[tuple[Collection, int]] = Counter()
        self._documents: Counter[tuple[Collection, int]] = Counter()
        self.lack_graph = False

    async def put(self, collection: Collection, model: EmbeddingModel, texts: Sequence[Embedded]) -> set[str]:
        """Set the vectors of documents, each at most once; see `Transaction.put_vectors`.

        Takes one round trip, or more for the first vectors of a model.

        Returns:
            The ids of those whose vectors were kept.
        """
        values = _encode(collection, texts)
        key = await self._get_model(model, values)
        if key is None:
            return set()
        values["model"] = key
        found, _ = await self._session.send(Scope(collection.org), Statement(_CLEAR, values), Statement(_PUT, values))
        kept = {id for id, *_ in found}
        added = [len(text.passages) for text in texts if text.id in kept]
        passages, documents = found[0][1:] if found else (0, 0)
        self._passages[collection, key] += sum(added) - passages
        self._documents[collection, key] += sum(map(bool, added)) - documents
        return kept

    async def remove(self, model: str) -> int:
        """See `Transaction.remove_vectors`."""
        await self.count()
        (models,) = await self._session.send(ALL_ORGS, Statement(_GET_MODEL, (model,)))
        if not models:
            return 0
        key = models[0][0]
        self._models.clear()
        await self._session.take_time(ALL_ORGS)
        removed, *_ = await self._session.send(
            ALL_ORGS,
            Statement(_REMOVE, (key,)),
            Statement("DELETE FROM embeddings WHERE model = %s", (key,)),
            Statement("DELETE FROM models WHERE key = %s", (key,)),
        )
        # If a graph is being built at the moment, whoever builds next drops this one.
        await hnsw.drop(self._session, key)
        return len(set(removed))

    async def count(self) -> None:
        """Bring the counts up to date; searches read them."""
        for (collection, key), passages in self._passages.items():
            values: dict[str, object] = {
                "org": collection.org,
                "toolset": collection.toolset,
                "model": key,
                "passages": passages,
                "documents": self._documents[collection, key],
            }
            await self._session.post(Scope(collection.org), Statement(_COUNT, values), Statement(_NOTE_CHANGE, values))
        self._passages.clear()
        self._documents.clear()

    async def _get_model(self, model: EmbeddingModel, values: dict[str, object]) -> int | None:
        """Return the model's key, or `None` if there is neither such a model nor a document that could be its first."""
        if model.name not in self._models:
            read = await self._read_model(model, values)
            if read is None:
                return None
            self._models[model.name] = read
        key, dimensions = self._models[model.name]
        if dimensions != model.dimensions:
            raise InvalidInputError("The store holds vectors of this model in another width: remove those first.")
        return key

    async def _read_model(self, model: EmbeddingModel, values: dict[str, object]) -> tuple[int, int] | None:
        scope = Scope(str(values["org"]))
        models, documents = await self._session.send(
            scope, Statement(_GET_MODEL, (model.name,)), Statement(_CLEAR, values | {"model": NO_MODEL})
        )
        if models:
            return models[0][0], models[0][1]
        if not documents:
            return None
        made, there = await self._session.send(
            Scope(""), Statement(_MAKE_MODEL, (model.name, model.dimensions)), Statement(_GET_MODEL, (model.name,))
        )
        # If another org's transaction creates the model at the same time, this waits for its end.
        if made and not self._is_loading:
            self.lack_graph |= not await hnsw.make(self._session, *there[0])
        return there[0][0], there[0][1]


def count_seen(collection: Collection, gone: Sequence[int], back: Sequence[int]) -> Iterable[Statement]:
    """Yield what counts documents, by their keys, that leave view or come back to it with vectors that they have."""
    for change, keys in ((-1, gone), (1, back)):
        if keys:
            values: dict[str, object] = {"org": collection.org, "toolset": collection.toolset}
            yield Statement(_COUNT_SEEN, {**values, "keys": list(keys), "change": change})


async def recount(session: Session, collection: Collection, model: str) -> None:
    """See `Store.recount_embedded`."""
    scope = Scope(collection.org)
    (models,) = await session.send(scope, Statement(_GET_MODEL, (model,)))
    if models:
        values: dict[str, object] = {"org": collection.org, "toolset": collection.toolset, "model": models[0][0]}
        await session.send(scope, Statement(_RECOUNT, values))


def _encode(collection: Collection, texts: Sequence[Embedded]) -> dict[str, object]:
    """Return the values of the statements except for the model: for each document, and for each passage."""
    rows = [
        (text.id, encode_digest(text.text_digest), number, *passage)
        for text in texts
        for number, passage in enumerate(text.passages)
    ]
    columns = ([row[column] for row in rows] for column in range(6))
    return {
        "org": collection.org,
        "toolset": collection.toolset,
        "ids": [text.id for text in texts],
        "digests": [encode_digest(text.text_digest) for text in texts],
        **dict(zip(("of_ids", "of_digests", "numbers", "starts", "ends", "vectors"), columns, strict=True)),
    }
