"""What thresholds do on data that nothing is measured on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks import matches
from benchmarks.everything import Asked, make_shelves, read_questions
from benchmarks.learning import read_foreign
from benchmarks.quality import read_collection
from refdesk.core.search import cosines
from refdesk.embedders.local import LocalEmbedder
from refdesk.gaps.likeness import Wording, compare
from refdesk.model import VectorQuery

ABOUT = "emanual"
FOREIGN = 100
QUESTIONS = 200


async def fit_answered(data: Path) -> Iterator[str]:
    """Return how many of the questions about a manual, and of a bank's customers, are below which strength of it."""
    collection = read_collection(data / ABOUT)
    [shelf] = make_shelves(collection, (1,))
    foreign = read_foreign(data.parent)[:FOREIGN]
    async with LocalEmbedder() as embedder:
        await embedder.load()
        asked = [Asked(text, await embedder.embed_query(text), {}) for text in foreign]
    own = np.array([matches.judge(shelf, each)["knowledge"] for each in read_questions(collection, QUESTIONS)])
    other = np.array([matches.judge(shelf, each)["knowledge"] for each in asked])
    return (
        f"  {threshold:.2f}: {np.mean(own < threshold):.1%} of its own, {np.mean(other < threshold):.1%} of others"
        for threshold in np.arange(0.36, 0.6, 0.02)
    )


async def embed_all(texts: Sequence[str]) -> Mapping[str, Wording]:
    """Return questions with their vectors."""
    async with LocalEmbedder() as embedder:
        await embedder.load()
        vectors = [await embedder.embed_query(text) for text in texts]
    queries = [VectorQuery(vector, embedder.model.name, scale=cosines.REFERENCE) for vector in vectors]
    return {text: Wording(text, query) for text, query in zip(texts, queries, strict=True)}


async def fit_alike(groups: Sequence[Sequence[str]]) -> Iterator[str]:
    """Return precision and recall of pairs of wordings, by threshold: with vectors, and by words alone."""
    wordings = await embed_all([text for group in groups for text in group])
    place = {text: number for number, group in enumerate(groups) for text in group}
    pairs = [(place[one] == place[other], one, other) for one, other in combinations(place, 2)]
    both = [(same, compare(wordings[one], wordings[other])) for same, one, other in pairs]
    words = [(same, compare(Wording(one), Wording(other))) for same, one, other in pairs]
    return (line for threshold in np.arange(0.3, 0.86, 0.04) for line in [_tell(float(threshold), both, words)])


def _tell(threshold: float, both: Sequence[tuple[bool, float]], words: Sequence[tuple[bool, float]]) -> str:
    (precision, recall), (of_words, found) = _score(threshold, both), _score(threshold, words)
    return f"  {threshold:.2f}: precision {precision:.2f}, recall {recall:.2f}; words alone {of_words:.2f}, {found:.2f}"


def _score(threshold: float, judged: Sequence[tuple[bool, float]]) -> tuple[float, float]:
    told = [same for same, likeness in judged if likeness >= threshold]
    return sum(told) / max(1, len(told)), sum(told) / sum(same for same, _ in judged)
