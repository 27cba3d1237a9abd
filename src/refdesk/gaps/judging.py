"""Whether something answers a question: judged by how well it matches and how many of the question's words it has.

A document on the same subject matches well, but an answer also has the words of the question. Both weights were fitted
on manuals and on scientific claims, with questions on what they contain and on what had been left out of them;
`python -m benchmarks.gaps --fit` prints how they do there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.core.search import matching
from refdesk.core.search.analysis import parse_query
from refdesk.model import SHARED_ORG, Collection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.search.providers import ProviderHit
    from refdesk.gaps.likeness import Wording
    from refdesk.model import Document
    from refdesk.protocols import DocumentVectors, Store

ANSWERED = 0.46
"""From this value on, something is taken to answer a question. Of the questions it was fitted on, 2 of 100 with an
answer stay below it, and 92 of 100 without one."""

WORDS_WEIGHT = 0.2
"""The weight of the share of the question's words, relative to the strength of the match."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best that was found: how surely it answers, and what it is, as `toolset/id`; empty if it is not kept here."""

    strength: float = 0.0
    item: str = ""


def weigh(strength: float, covered: float) -> float:
    """Return how surely something answers, in [0, 1].

    Args:
        strength: How well it matches; see `matching.judge`.
        covered: The share of the question's words that it has; see `matching.cover`.
    """
    return (strength + WORDS_WEIGHT * covered) / (1.0 + WORDS_WEIGHT)


def judge_answer(wording: Wording, document: Document, vectors: DocumentVectors) -> float:
    """Return how surely a document answers a question, in [0, 1]."""
    text, scale = parse_query(wording.text), wording.vector.scale if wording.vector is not None else None
    cosine, passage = _find_passage(wording, vectors)
    strength = matching.judge(text, document.title, document.body, cosine, scale, passage)
    return weigh(strength, matching.cover(text, document.title, document.body, passage))


async def judge_hits(store: Store, org: str, toolset: str, wording: Wording, hits: Sequence[ProviderHit]) -> list[Best]:
    """Return how surely hits of a toolset answer a question of an org, in the order of the hits."""
    ids = [hit.id for hit in hits]
    documents: dict[str, tuple[Document, DocumentVectors]] = {}
    for each in (SHARED_ORG, org):
        collection = Collection(each, toolset)
        found = zip(await store.get_documents(collection, ids), await store.get_vectors(collection, ids), strict=True)
        documents |= {document.id: (document, vectors) for document, vectors in found if document is not None}
    return [Best(_judge_hit(wording, hit, documents.get(hit.id)), f"{toolset}/{hit.id}") for hit in hits]


def _judge_hit(wording: Wording, hit: ProviderHit, kept: tuple[Document, DocumentVectors] | None) -> float:
    text = parse_query(wording.text)
    if kept is None:
        return weigh(hit.strength, matching.cover(text, hit.title, hit.snippet))
    document, vectors = kept
    _, passage = _find_passage(wording, vectors)
    return weigh(hit.strength, matching.cover(text, document.title, document.body, passage))


def _find_passage(wording: Wording, vectors: DocumentVectors) -> tuple[float | None, tuple[int, int] | None]:
    """Return the cosine and the offsets of the passage nearest to a question; `None` for both without vectors."""
    vector = wording.vector
    passages = [each for model, of in vectors if vector is not None and model.name == vector.model for each in of]
    if vector is None or not passages:
        return None, None
    cosine, best = max(((float(each.vector @ vector.vector), each) for each in passages), key=lambda pair: pair[0])
    return cosine, (best.start, best.end)
