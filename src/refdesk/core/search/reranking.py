"""Re-ranking: a model that reads the question together with each of the best texts gives them another order."""

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
"""So many of the best are read; the others stay behind them."""

SHARE = 0.7
"""What the model's judgement counts beside the places that they had: more than those, so that the last can become the
first. Not tuned, for want of a model to measure with."""

MOST_CHARACTERS = 1200
"""Of a body that no vector told the best passage of."""

Ranked = tuple["Candidate", float]


class Reranker(Protocol):
    """Judges how well texts answer a question."""

    async def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a value for each text, in order; the higher the better, and comparable within one call alone.

        Raises:
            EmbedderError: The model is missing or damaged.
            MissingDependencyError: An optional dependency is not installed.
        """
        ...


async def rerank(
    store: Store, reranker: Reranker | None, collection: Collection, question: str, ranked: Sequence[Ranked]
) -> Sequence[Ranked]:
    """Return the candidates, the first of them in the order of the model; scores stay with the places.

    Without a model, or where it fails, which the log says, nothing changes.
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
    """Return a value for each place: the judgement, spread from 0 to 1, and the place itself, spread likewise."""
    least, spread = min(judged), (max(judged) - min(judged)) or 1.0
    last = len(judged) - 1
    return [
        SHARE * (value - least) / spread + (1.0 - SHARE) * (last - place) / last for place, value in enumerate(judged)
    ]


def _get_text(document: Document | None, candidate: Candidate) -> str:
    if document is None:
        return ""
    return embedding_text(document.title, document.body, candidate.passage or (0, MOST_CHARACTERS))
