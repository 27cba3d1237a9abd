"""Learned from real conversations, the right skill is found by the opening turns of others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import learning
from refdesk.embedders.local import LocalEmbedder

USABLE_MIN_SCORE = 0.45
"""What the toolset's page names."""


async def test_a_sample_of_others_finds_the_right_skill_and_foreign_questions_are_refused(shared_data: Path) -> None:
    learn, ask = learning.read_talks(shared_data / "star", seed=1)
    ask = ask[::6]
    async with LocalEmbedder() as embedder:
        learned = await learning.learn_all(learn, embedder)
        found = await ask_all(learned, ask)
        right = [one.score for one, talk in zip(found, ask, strict=True) if one.tasks[:1] == (talk.task,)]
        refused = await measure_refused(learned, shared_data, 60)
    assert len(right) / len(ask) >= 0.88
    assert sum(score >= USABLE_MIN_SCORE for score in right) / len(right) >= 0.93
    assert refused >= 0.95


async def ask_all(learned: learning.Learned, ask: Sequence[learning.Talk]) -> list[learning.Found]:
    return [await learning.ask_skills(learned, " ".join(talk.said[:2]) or "-", "fused") for talk in ask]


async def measure_refused(learned: learning.Learned, data: Path, questions: int) -> float:
    """Return the share of questions about something else that `USABLE_MIN_SCORE` refuses."""
    found = [await learning.ask_skills(learned, q, "fused") for q in learning.read_foreign(data)[:questions]]
    scores = [one.score for one in found if not (one.tasks and one.tasks[0].startswith(learning.SAME_DOMAIN))]
    return sum(score < USABLE_MIN_SCORE for score in scores) / len(scores)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not os.environ.get("REFDESK_SOAK"), reason="the long form runs by `make soak`")
async def test_nine_of_ten_find_the_right_skill_and_not_worse_than_by_the_raw_transcripts(shared_data: Path) -> None:
    hits: list[float] = []
    raws: list[float] = []
    async with LocalEmbedder() as embedder:
        for seed in range(1, 6):
            learn, ask = learning.read_talks(shared_data / "star", seed)
            learned, raw = await learning.learn_all(learn, embedder), await learning.make_raw_search(learn, embedder)
            questions = [" ".join(talk.said[:2]) or "-" for talk in ask]
            peer = [raw(question, await embedder.embed_query(question), "fused") for question in questions]
            hits.append(learning.score(await ask_all(learned, ask), ask)[0])
            raws.append(learning.score(peer, ask)[0])
            assert await measure_refused(learned, shared_data, 300) >= 0.95
    assert min(hits) >= 0.90
    assert sum(hits) >= sum(raws)
