"""The vectors of a skill as passages of its document: one for what it is about, one for each opening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk.model import EmbeddedPassage
from refdesk.toolsets.skills import records

if TYPE_CHECKING:
    from refdesk.model import EmbeddingModel, Vector
    from refdesk.protocols import Store
    from refdesk.toolsets.skills.records import Skill


def to_vector(embedding: Sequence[float]) -> Vector:
    """Return the numbers as a vector of unit length."""
    import numpy as np

    vector = np.asarray(embedding, dtype=np.float32)
    return vector / (np.linalg.norm(vector) or 1.0)


def draw_together(embeddings: Sequence[Vector]) -> list[Vector]:
    """Return the vectors, each moved half way to the mean of all, at unit length; a single one stays as it is.

    What one customer happened to say thus counts less than what all of them say: each of several means is estimated
    better with the help of the others (C. Stein, "Inadmissibility of the usual estimator for the mean of a multivariate
    normal distribution", 1956).
    """
    import numpy as np

    if len(embeddings) < 2:
        return list(embeddings)
    matrix = np.stack(embeddings)
    return [to_vector(row) for row in matrix + matrix.mean(axis=0)]


def to_passages(skill: Skill) -> list[EmbeddedPassage]:
    """Return the passages of a skill that has its vectors: what it is about, and each way in which customers began."""
    lead = len(records.write_lead(skill.problem, skill.conditions, skill.keywords))
    found = [EmbeddedPassage(0, lead, to_vector(skill.embedding))]
    start = lead + 2
    for opening, embedding in zip(skill.openings, skill.opening_embeddings, strict=False):
        found.append(EmbeddedPassage(start, start + len(opening), to_vector(embedding)))
        start += len(opening) + 1
    return found


async def recall(store: Store, org: str, skill: Skill, model: EmbeddingModel) -> Skill:
    """Return a skill with its stored vectors of a model; unchanged if there are none, or not one for each opening."""
    [stored] = await store.get_vectors(records.get_collection(org), [skill.skill_id])
    none: list[EmbeddedPassage] = []
    passages = next((passages for each, passages in stored if each.name == model.name), none)
    if len(passages) not in (1, 1 + len(skill.openings)):
        return skill
    first, *others = sorted(passages, key=lambda passage: passage.start)
    openings = [passage.vector.tolist() for passage in others]
    return replace(skill, embedding=first.vector.tolist(), opening_embeddings=openings)
