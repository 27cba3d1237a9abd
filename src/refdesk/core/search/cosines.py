"""How near is near: puts the cosines of any embedding model on the scale of the packaged one.

Models spread their cosines differently: one gives unrelated texts .1, another .7. So each is given the same questions
and passages, and two numbers are kept: the average cosine of each question with the nearest unrelated passage, and with
the passage that answers it. Cosines of different models are compared by where they lie between these two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.model import CosineScale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.protocols import Embedder

MOST_MISSED = 1
"""Most questions that may be nearer to another's passage; with more, a model cannot tell what belongs together."""

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
"""Questions, each with the only one of these passages that answers it."""

REFERENCE = CosineScale(unrelated=0.133, related=0.448)
"""The scale of the packaged model."""

KNOWN: Mapping[str, CosineScale | None] = {"all-minilm-l6-v2-int8": REFERENCE, "hashing-256": None}
"""Scales measured in advance, by model; a test measures them again. Every other model is measured where it is used."""


async def measure(embedder: Embedder) -> CosineScale | None:
    """Return the scale of a model's cosines, or `None` if they do not tell what belongs together.

    It takes one request for the passages and one for each question.

    Raises:
        EmbedderError: The model could not embed them.
    """
    passages = await embedder.embed_passages([passage for _, passage in PROBES])
    questions = [await embedder.embed_query(question) for question, _ in PROBES]
    return _summarise([[float(question @ passage) for passage in passages] for question in questions])


def _summarise(cosines: Sequence[Sequence[float]]) -> CosineScale | None:
    """Return the scale of a square table of cosines, on whose diagonal are those of what belongs together."""
    related = [row[number] for number, row in enumerate(cosines)]
    nearest = [max(value for place, value in enumerate(row) if place != number) for number, row in enumerate(cosines)]
    if sum(own <= other for own, other in zip(related, nearest, strict=True)) > MOST_MISSED:
        return None
    scale = CosineScale(unrelated=sum(nearest) / len(nearest), related=sum(related) / len(related))
    return scale if scale.unrelated < scale.related else None


def to_reference(cosine: float, scale: CosineScale) -> float:
    """Return a cosine of a model with this scale, converted to the scale of the packaged model."""
    place = (cosine - scale.unrelated) / (scale.related - scale.unrelated)
    return REFERENCE.unrelated + place * (REFERENCE.related - REFERENCE.unrelated)
