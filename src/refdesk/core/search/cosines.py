"""How near is near: puts the cosines of any embedding model on the scale of the packaged one.

Models spread their cosines differently: one gives unrelated texts .1, another .7. So each is shown the same questions
and passages, and two numbers of it are kept: how near what is unrelated comes at most, and how near what belongs
together comes on average. Between models, cosines are compared by where they lie between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.model import CosineScale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.protocols import Embedder

MOST_MISSED = 1
"""A model that puts more of the questions nearer to another's passage cannot tell what belongs together."""

PROBES = (
    (
        "How do I get my money back?",
        "Refunds. Send the goods back within 30 days, and the price is returned to the card that you paid with.",
    ),
    (
        "my laptop does not turn on any more",
        "Computer without power. Hold the power button for ten seconds, then charge the battery and start it again.",
    ),
    (
        "Which virtual machines are being retired?",
        "Retirement of older machine sizes. Move cloud workloads to a newer series before they are switched off.",
    ),
    (
        "What lowers blood pressure?",
        "Hypertension. Patients who ate less salt and took more exercise had a lower pressure after twelve weeks.",
    ),
    (
        "when was the old bridge built",
        "History of the river crossing. The stone arches were finished in 1742 and restored after the war.",
    ),
    (
        "sorting a list that does not fit in memory",
        "External merge sort. Runs are sorted one by one, written to disk, and then merged in a single pass.",
    ),
    (
        "best time to plant tomatoes",
        "Vegetable garden. Put the seedlings out after the last frost, in full sun, and water them every morning.",
    ),
    (
        "who may approve holiday requests",
        "Leave policy. Vacation of employees is granted by their team lead, who answers within three working days.",
    ),
)
"""Questions, each with the passage that answers it; no other of these passages does."""

REFERENCE = CosineScale(unrelated=0.133, related=0.448)
"""That of the packaged model."""

KNOWN: Mapping[str, CosineScale | None] = {"all-minilm-l6-v2-int8": REFERENCE, "hashing-256": None}
"""Measured before; a test measures again. Every other model is measured where it is used."""


async def measure(embedder: Embedder) -> CosineScale | None:
    """Return the scale of a model's cosines, or `None` where they do not tell what belongs together.

    It takes one request for the passages and one for each question.

    Raises:
        EmbedderError: The model cannot be asked.
    """
    passages = await embedder.embed_passages([passage for _, passage in PROBES])
    questions = [await embedder.embed_query(question) for question, _ in PROBES]
    return _summarise([[float(question @ passage) for passage in passages] for question in questions])


def _summarise(cosines: Sequence[Sequence[float]]) -> CosineScale | None:
    """Return the scale of a square table: what belongs together stands on its diagonal."""
    related = [row[number] for number, row in enumerate(cosines)]
    nearest = [max(value for place, value in enumerate(row) if place != number) for number, row in enumerate(cosines)]
    if sum(own <= other for own, other in zip(related, nearest, strict=True)) > MOST_MISSED:
        return None
    scale = CosineScale(unrelated=sum(nearest) / len(nearest), related=sum(related) / len(related))
    return scale if scale.unrelated < scale.related else None


def to_reference(cosine: float, scale: CosineScale) -> float:
    """Return a cosine of the model with this scale as the packaged model would give it."""
    place = (cosine - scale.unrelated) / (scale.related - scale.unrelated)
    return REFERENCE.unrelated + place * (REFERENCE.related - REFERENCE.unrelated)
