"""Writes of vectors: each model has its rows, its counts and a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refdesk.errors import InvalidInputError
from refdesk.stores.postgres import graphs
from refdesk.stores.postgres.connections import ALL_ORGS, Scope, Statement

if TYPE_CHECKING:
    from refdesk.model import Collection, EmbeddingModel
    from refdesk.stores.postgres.sessions import Session

_GET_MODEL = "SELECT key, dimensions FROM models WHERE name = %s"
_MAKE_MODEL = "INSERT INTO models (name, dimensions) VALUES (%s, %s) RETURNING key, dimensions"
_HAS_DOCUMENT = """
    SELECT key FROM documents WHERE org = %(org)s AND toolset = %(toolset)s AND id = %(id)s
        AND text_digest = %(text_digest)s AND state <> 'withdrawn'
"""
_CLEAR = """
    WITH place AS (
        SELECT key FROM documents WHERE org = %(org)s AND toolset = %(toolset)s AND id = %(id)s
            AND text_digest = %(text_digest)s AND state <> 'withdrawn'
    ), removed AS (
        DELETE FROM vectors USING place WHERE org = %(org)s AND document = place.key AND model = %(model)s
        RETURNING number
    ) SELECT (SELECT count(*) FROM removed) FROM place
"""
_PUT = """
    INSERT INTO vectors (org, document, model, number, first, last, vector)
    SELECT org, key, %(model)s, number - 1, passage.first, passage.last, vector::halfvec
    FROM documents, unnest(%(starts)s::integer[], %(ends)s::integer[], %(vectors)s::text[])
        WITH ORDINALITY AS passage (first, last, vector, number)
    WHERE org = %(org)s AND toolset = %(toolset)s AND id = %(id)s
        AND text_digest = %(text_digest)s AND state <> 'withdrawn'
"""
_COUNT = """
    WITH changed AS (
        INSERT INTO embeddings AS kept (org, toolset, model, passages)
        VALUES (%(org)s, %(toolset)s, %(model)s, %(change)s)
        ON CONFLICT (org, toolset, model) DO UPDATE SET passages = kept.passages + excluded.passages
    ) UPDATE models SET passages = passages + %(change)s WHERE key = %(model)s
"""
_REMOVE = "DELETE FROM vectors WHERE model = %s RETURNING org, document"


class Vectors:
    """Those of a transaction. What it changes is counted once, at its end."""

    def __init__(self, session: Session, *, is_loading: bool) -> None:
        """Begin.

        Args:
            session: The transaction.
            is_loading: A new model gets no graph.
        """
        self._session = session
        self._is_loading = is_loading
        self._models: dict[str, tuple[int, int]] = {}
        self._changes: Counter[tuple[Collection, int]] = Counter()

    async def put(
        self,
        collection: Collection,
        id: str,
        model: EmbeddingModel,
        text_digest: str,
        passages: Sequence[tuple[int, int, str]],
    ) -> bool:
        """See `Transaction.put_vectors`. One round trip, for the first of a model two."""
        place: dict[str, object] = {
            "org": collection.org,
            "toolset": collection.toolset,
            "id": id,
            "text_digest": text_digest,
        }
        key = await self._get_model(model, place)
        if key is None:
            return False
        starts, ends, vectors = ([passage[column] for passage in passages] for column in range(3))
        values = place | {"model": key, "starts": starts, "ends": ends, "vectors": vectors}
        removed, _ = await self._session.send(Scope(collection.org), Statement(_CLEAR, values), Statement(_PUT, values))
        if not removed:
            return False
        self._changes[collection, key] += len(passages) - removed[0][0]
        return True

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
        await graphs.drop(self._session, key)
        return len(set(removed))

    async def count(self) -> None:
        """Bring the counts up to date; searches read them."""
        for (collection, key), change in self._changes.items():
            values: dict[str, object] = {
                "org": collection.org,
                "toolset": collection.toolset,
                "model": key,
                "change": change,
            }
            await self._session.send(Scope(collection.org), Statement(_COUNT, values))
        self._changes.clear()

    async def _get_model(self, model: EmbeddingModel, place: dict[str, object]) -> int | None:
        """Return the model's key, or `None` for the first vectors of a model where the document is gone."""
        if model.name not in self._models:
            read = await self._read_model(model, place)
            if read is None:
                return None
            self._models[model.name] = read
        key, dimensions = self._models[model.name]
        if dimensions != model.dimensions:
            raise InvalidInputError("The store holds vectors of this model in another width: remove those first.")
        return key

    async def _read_model(self, model: EmbeddingModel, place: dict[str, object]) -> tuple[int, int] | None:
        scope = Scope(str(place["org"]))
        models, documents = await self._session.send(
            scope, Statement(_GET_MODEL, (model.name,)), Statement(_HAS_DOCUMENT, place)
        )
        if models:
            return models[0][0], models[0][1]
        if not documents:
            return None
        (made,) = await self._session.send(scope, Statement(_MAKE_MODEL, (model.name, model.dimensions)))
        if not self._is_loading:
            await graphs.make(self._session, *made[0])
        return made[0][0], made[0][1]
