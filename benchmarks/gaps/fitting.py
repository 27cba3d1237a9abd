"""What thresholds do on data that nothing is measured on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.everything import Asked, Shelf, find_candidates, make_shelves, read_questions
from benchmarks.learning import read_foreign
from benchmarks.quality import Judged, read_collection
from refdesk.core.search import cosines, matching
from refdesk.core.search.analysis import parse_query
from refdesk.embedders.local import LocalEmbedder
from refdesk.gaps.judging import weigh
from refdesk.gaps.likeness import Wording, compare
from refdesk.model import VectorQuery
from refdesk.toolsets.knowledge.ranking import rank

MANUALS, MANUAL_OF = "emanual", ("tv-", "s10-")
"""A collection of two manuals, and how the ids of each begin."""

CLAIMS, ABSTRACTS = "scifact", 150
"""A collection of claims, and how many further abstracts are stored beside those that are about a claim."""

FOREIGN = 100
QUESTIONS = 150
LIMIT = 5


async def fit_answered(data: Path) -> Iterator[str]:
    """Return which share of questions is below which threshold: of what is stored, left out, and a bank's customers."""
    async with LocalEmbedder() as embedder:
        await embedder.load()
        bank = [Asked(text, await embedder.embed_query(text), {}) for text in read_foreign(data.parent)[:FOREIGN]]
    own, left_out, foreign = list[float](), list[float](), list[float]()
    for stored, known, unknown in (
        *(read_manual(data / MANUALS, part) for part in MANUAL_OF),
        read_claims(data / CLAIMS),
    ):
        [shelf] = make_shelves(stored, (1,))
        own += [judge(shelf, each) for each in known]
        left_out += [judge(shelf, each) for each in unknown]
        foreign += [judge(shelf, each) for each in bank]
    values = [np.array(each) for each in (own, left_out, foreign)]
    return (
        f"  {threshold:.2f}: {shares[0]:.1%} of what is stored, {shares[1]:.1%} of what is left out, "
        f"{shares[2]:.1%} of something else"
        for threshold in np.arange(0.36, 0.6, 0.02)
        for shares in [[float(np.mean(each < threshold)) for each in values]]
    )


def judge(shelf: Shelf, asked: Asked) -> float:
    """Return how surely the best hit answers."""
    text = parse_query(asked.text)
    return max(
        (
            weigh(
                matching.judge(text, *shelf.documents[int(each.id)], each.cosine, cosines.REFERENCE),
                matching.cover(text, *shelf.documents[int(each.id)]),
            )
            for each, _ in rank(find_candidates(shelf, asked), text)[:LIMIT]
        ),
        default=0.0,
    )


def read_manual(folder: Path, begins: str) -> tuple[Judged, list[Asked], list[Asked]]:
    """Return a manual, questions that it answers, and such that only the other one does."""
    collection = read_collection(folder)
    with (folder / "corpus.jsonl").open(encoding="utf-8") as file:
        stored = {number for number, line in enumerate(file) if json.loads(line)["_id"].startswith(begins)}
    return part(collection, stored, QUESTIONS)


def read_claims(folder: Path) -> tuple[Judged, list[Asked], list[Asked]]:
    """Return abstracts without those of half of the claims, the claims whose abstracts are there, and the others."""
    collection, random = read_collection(folder), Random(5)
    left_out = {number for relevant in collection.relevant[::2] for number in relevant}
    relevant = {number for of_one in collection.relevant for number in of_one}
    others = sorted(set(range(len(collection.documents))) - relevant)
    return part(collection, (relevant - left_out) | set(random.sample(others, ABSTRACTS)), QUESTIONS)


def part(collection: Judged, stored: set[int], most: int) -> tuple[Judged, list[Asked], list[Asked]]:
    """Return the stored part of a collection, and questions: wholly about what is stored, and about nothing of it."""
    asked = read_questions(collection, len(collection.queries))
    names = {f"{collection.name}/{number}" for number in stored}
    known = [each for each in asked if each.relevant.keys() <= names]
    unknown = [each for each in asked if not each.relevant.keys() & names]
    documents = [collection.documents[number] for number in sorted(stored)]
    return Judged(f"{collection.name}-part", documents, [], []), known[:most], unknown[:most]


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
