"""Makes the vectors of documents: one for each passage."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from refdesk.core.search import passages
from refdesk.model import Document, EmbeddedPassage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.protocols import Embedder

Embedded: TypeAlias = tuple[Document, list[EmbeddedPassage]]


async def embed_all(embedder: Embedder, documents: Sequence[Document]) -> list[Embedded]:
    """Return documents with the vectors of their passages, in order.

    Raises:
        EmbedderError: One of them could not be embedded, or the embedder is down.
    """
    cuts = [passages.split(document.title, document.body) for document in documents]
    texts = [
        passages.embedding_text(document.title, document.body, cut)
        for document, own in zip(documents, cuts, strict=True)
        for cut in own
    ]
    vectors = iter(await embedder.embed_passages(texts))
    return [
        (document, [EmbeddedPassage(start, end, next(vectors)) for start, end in own])
        for document, own in zip(documents, cuts, strict=True)
    ]
