"""Notes invented from a seed, with vectors, and questions that are each made from one of them.

Words follow Zipf's law, a part of each note's are those of its topic; vectors lie near the centres of topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np
from numpy.typing import NDArray

from refdesk.model import Collection, Document
from refdesk.toolsets.knowledge.models import TAGS

VOCABULARY, TITLE_WORDS, BODY_WORDS = 100_000, 8, 112
TOPIC_WORDS = 40
WIDTH, TOPIC_SIZE, SPREAD = 384, 100, 0.9
TOP, QUESTIONS = 10, 30
START = datetime(2026, 1, 1, tzinfo=UTC)
RARE = "rare"
"""A tag that one note in a hundred has."""

_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprtvz" for vowel in "aou"]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    """Words, a vector, and the note from which both were made."""

    text: str
    vector: Floats
    target: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """Titles and bodies, and a unit vector for each as the engines keep it; one note in a hundred is rare."""

    texts: Sequence[tuple[str, str]]
    vectors: Floats
    questions: dict[str, list[Question]]

    def get_nearest(self, vector: Floats, *, rare: bool = False) -> set[str]:
        """Return the ids of the ten nearest notes, of all or of the rare ones."""
        cosines = self.vectors @ vector
        if rare:
            cosines[[not is_rare(number) for number in range(len(cosines))]] = -2.0
        return {str(number) for number in np.argsort(-cosines)[:TOP]}


def is_rare(number: int) -> bool:
    """Return whether a note carries the tag that one in a hundred has."""
    return number % 100 == 37


def invent(notes: int, seed: int = 5) -> Corpus:
    """Return notes of some topics, and questions of three kinds: of topic words, as people ask, with a frequent word.

    The commonest words of real texts are stop words; here the most frequent word is held by one note in two.
    """
    random = np.random.default_rng(seed)
    ranks = np.arange(1, VOCABULARY + 1)
    shares = 1.0 / (ranks + 60.0)
    shares /= shares.sum()
    topics = random.integers(max(1, notes // TOPIC_SIZE), size=notes)
    words_of_topics = random.integers(2000, VOCABULARY, size=(topics.max() + 1, TOPIC_WORDS))
    general = random.choice(VOCABULARY, p=shares, size=(notes, TITLE_WORDS + BODY_WORDS))
    own = words_of_topics[topics[:, None], random.integers(TOPIC_WORDS, size=general.shape)]
    written = np.where(random.random(general.shape) < 0.25, own, general)
    centres = random.standard_normal((topics.max() + 1, WIDTH))
    vectors = _normalise(centres[topics] + SPREAD * random.standard_normal((notes, WIDTH)))
    texts = [(_spell(row[:TITLE_WORDS]).capitalize(), _spell(row[TITLE_WORDS:])) for row in written]
    questions: dict[str, list[Question]] = {"topic": [], "natural": [], "frequent": []}
    for kind, asked in questions.items():
        for target in random.integers(notes, size=QUESTIONS).tolist():
            row = written[target]
            of_topic = row[np.isin(row, words_of_topics[topics[target]])]
            rest = row[(row > 20) & ~np.isin(row, of_topic)]
            frequent = [int(random.integers(3))] if kind == "frequent" else []
            few, many = (3, 0) if kind == "topic" else (2, 2) if kind == "natural" else (1, 1)
            words = [*of_topic[:few].tolist(), *rest[:many].tolist(), *frequent]
            vector = _normalise(vectors[target] + 0.15 * random.standard_normal(WIDTH))
            asked.append(Question(_spell(words), vector.astype(np.float32), target))
    return Corpus(texts, vectors.astype(np.float16).astype(np.float32), questions)


def _normalise(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _spell(ranks: Sequence[int] | NDArray[np.int64]) -> str:
    return " ".join(_spell_word(int(rank)) for rank in ranks)


@cache
def _spell_word(rank: int) -> str:
    """Return a word of two syllables or more, no longer than real ones: the same rank is always the same word."""
    syllables, rest = "", rank + len(_SYLLABLES)
    while rest:
        rest, last = divmod(rest, len(_SYLLABLES))
        syllables += _SYLLABLES[last]
    return syllables


def make_document(place: Collection, number: int, title: str, body: str) -> Document:
    """Return a note; each is newer than the one before."""
    instant = START + timedelta(seconds=number)
    tags = ("payments", f"team{number % 20}", *((RARE,) if is_rare(number) else ()))
    return Document(
        collection=place,
        id=str(number),
        title=title,
        body=body,
        author="benchmark",
        created_at=instant,
        modified_at=instant,
        facets={TAGS: tags},
        data={"confidence": 50},
    )
