"""Re-ranking: a model that reads the question together with each of the best texts reorders them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from refdesk import errors
from refdesk.core.search.passages import embedding_text

if TYPE_CHECKING:
    from refdesk.model import Candidate, Collection, Document
    from refdesk.protocols import Store

logger = logging.getLogger(__name__)

RERANKED = 20
"""How many of the best hits are read; the others stay after them."""

SHARE = 0.7
"""The weight of the model's judgement; the rest is that of the original places. It is more than half, so that the last
can become the first. Not tuned, for want of a model to measure with."""

MOST_CHARACTERS = 1200
"""Most characters of a body that are read if no vector tells its best passage."""

Ranked = tuple["Candidate", float]


class Reranker(Protocol):
    """Judges how well texts answer a question."""

    async def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a value for each text, in order; the higher the better, and comparable only within one call.

        Raises:
            EmbedderError: The model is missing or damaged.
            MissingDependencyError: An optional dependency is not installed.
        """
        ...


async def rerank(
    store: Store, reranker: Reranker | None, collection: Collection, question: str, ranked: Sequence[Ranked]
) -> Sequence[Ranked]:
    """Return the candidates, the first of them in the order of the model; the scores stay in their places.

    Without a model, or if it fails, which is logged, nothing changes.
    """
    first = ranked[:RERANKED]
    if reranker is None or len(first) < 2:
        return ranked
    documents = await store.get_documents(collection, [candidate.id for candidate, _ in first])
    texts = [_get_text(document, candidate) for document, (candidate, _) in zip(documents, first, strict=True)]
    try:
        judged = await reranker.judge(question, texts)
    except errors.RefdeskError as error:
        logger.warning("hits not re-ranked", extra={"reason": error.message})
        return ranked
    order = sorted(range(len(first)), key=_mix(judged).__getitem__, reverse=True)
    return [*((first[each][0], first[place][1]) for place, each in enumerate(order)), *ranked[len(first) :]]


def _mix(judged: Sequence[float]) -> list[float]:
    """Return a value for each place: the weighted sum of the judgement and the place, each scaled from 0 to 1."""
    least, spread = min(judged), (max(judged) - min(judged)) or 1.0
    last = len(judged) - 1
    return [
        SHARE * (value - least) / spread + (1.0 - SHARE) * (last - place) / last for place, value in enumerate(judged)
    ]


def _get_text(document: Document | None, candidate: Candidate) -> str:
    if document is None:
        return ""
    return embedding_text(document.title, document.body, candidate.passage or (0, MOST_CHARACTERS))
