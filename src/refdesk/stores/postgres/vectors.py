"""Writes of vectors: each model has its rows, its counts and a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from refdesk.errors import InvalidInputError
from refdesk.stores.postgres import graphs
from refdesk.stores.postgres.connections import ALL_ORGS, Scope, Statement
from refdesk.stores.postgres.pool import Row

if TYPE_CHECKING:
    from refdesk.model import Collection, EmbeddingModel
    from refdesk.stores.postgres.sessions import Session

_GET_DOCUMENT = """
    SELECT key, text_digest = %s AND state <> 'withdrawn' FROM documents WHERE org = %s AND toolset = %s AND id = %s
"""
_GET_MODEL = "SELECT key, dimensions FROM models WHERE name = %s"
_MAKE_MODEL = "INSERT INTO models (name, dimensions) VALUES (%s, %s) RETURNING key, dimensions"
_REPLACE = """
    WITH removed AS (
        DELETE FROM vectors WHERE org = %(org)s AND document = %(document)s AND model = %(model)s RETURNING number
    ), change AS (
        SELECT %(added)s - count(*) AS passages FROM removed
    ), counted AS (
        UPDATE models SET passages = models.passages + change.passages FROM change WHERE key = %(model)s
    )
    INSERT INTO embeddings AS kept (org, toolset, model, passages)
    SELECT %(org)s, %(toolset)s, %(model)s, change.passages FROM change
    ON CONFLICT (org, toolset, model) DO UPDATE SET passages = kept.passages + excluded.passages
"""
_PUT = """
    INSERT INTO vectors (org, document, model, number, first, last, vector)
    SELECT %s, %s, %s, number - 1, first, last, vector::halfvec
    FROM unnest(%s::integer[], %s::integer[], %s::text[]) WITH ORDINALITY AS passage (first, last, vector, number)
"""
_REMOVE = "DELETE FROM vectors WHERE model = %s RETURNING org, document"


async def put_vectors(
    session: Session,
    collection: Collection,
    id: str,
    model: EmbeddingModel,
    text_digest: str,
    passages: Sequence[tuple[int, int, str]],
    *,
    is_loading: bool = False,
) -> bool:
    """See `Transaction.put_vectors`. While a store is loading, a new model gets no graph."""
    scope = Scope(collection.org)
    place = (collection.org, collection.toolset)
    documents, models = await session.send(
        scope, Statement(_GET_DOCUMENT, (text_digest, *place, id)), Statement(_GET_MODEL, (model.name,))
    )
    if not documents or not documents[0][1]:
        return False
    document, key = documents[0][0], await _get_model(session, scope, model, models, is_loading)
    values = {"org": place[0], "toolset": place[1], "document": document, "model": key, "added": len(passages)}
    statements = [Statement(_REPLACE, cast("dict[str, object]", values))]
    if passages:
        columns = [list(column) for column in zip(*passages, strict=True)]
        statements.append(Statement(_PUT, (place[0], document, key, *columns)))
    await session.send(scope, *statements)
    return True


async def remove_vectors(session: Session, model: str) -> int:
    """See `Transaction.remove_vectors`."""
    (models,) = await session.send(ALL_ORGS, Statement(_GET_MODEL, (model,)))
    if not models:
        return 0
    key = models[0][0]
    await session.take_time(ALL_ORGS)
    removed, *_ = await session.send(
        ALL_ORGS,
        Statement(_REMOVE, (key,)),
        Statement("DELETE FROM embeddings WHERE model = %s", (key,)),
        Statement("DELETE FROM models WHERE key = %s", (key,)),
    )
    await graphs.drop(session, key)
    return len(set(removed))


async def _get_model(session: Session, scope: Scope, model: EmbeddingModel, found: list[Row], is_loading: bool) -> int:
    if not found:
        (found,) = await session.send(scope, Statement(_MAKE_MODEL, (model.name, model.dimensions)))
        if not is_loading:
            await graphs.make(session, found[0][0], model.dimensions)
    key, dimensions = found[0]
    if dimensions != model.dimensions:
        raise InvalidInputError("The store holds vectors of this model in another width: remove those first.")
    return key
