"""Learned from real conversations, the right skill is found by the opening turns of others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import pytest

from benchmarks import learning, playbooks
from refdesk.embedders.local import LocalEmbedder

USABLE_MIN_SCORE = 0.45
"""What the toolset's page names."""


async def test_a_sample_of_others_finds_the_right_skill_and_foreign_questions_are_refused(shared_data: Path) -> None:
    drawn, ask = learning.read_talks(shared_data / "star", seed=1)
    learn, ask = learning.take(drawn, 4), ask[::8]
    async with LocalEmbedder() as embedder:
        learned = await learning.learn_all(learn, embedder)
        found = await ask_all(learned, ask)
        right = [one.score for one, talk in zip(found, ask, strict=True) if one.tasks[:1] == (talk.task,)]
        refused = await measure_refused(learned, shared_data, 60)
    assert len(right) / len(ask) >= 0.90
    assert sum(score >= USABLE_MIN_SCORE for score in right) / len(right) >= 0.93
    assert refused >= 0.95


async def test_a_playbook_of_real_conversations_covers_the_procedure_in_its_order(shared_data: Path) -> None:
    folder = shared_data / "star"
    found: list[playbooks.Quality] = []
    async with LocalEmbedder() as embedder:
        for task in ("bank_balance", "hotel_book", "party_rsvp"):
            skill = await playbooks.learn_at_once(playbooks.draw(folder, task, 12, seed=1), embedder)
            found.append(await playbooks.judge(skill, playbooks.read_flow(folder, task), embedder))
    means = {name: mean(getattr(each, name) for each in found) for name in playbooks.Quality.__slots__}
    assert means["coverage"] >= 0.70
    assert means["precision"] >= 0.70
    assert means["order"] >= 0.80
    assert means["steps"] <= 1.3
    assert means["tokens"] <= 700
    assert means["tools"] == 1.0


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not os.environ.get("REFDESK_SOAK"), reason="the long form runs by `make soak`")
@pytest.mark.parametrize(("count", "coverage"), [(20, 0.70), (5, 0.55)])
async def test_playbooks_of_every_task_reach_their_measures(shared_data: Path, count: int, coverage: float) -> None:
    async with LocalEmbedder() as embedder:
        measured = await playbooks.measure(shared_data / "star", count, (1, 2, 3), embedder)
    found = [each for qualities in measured.values() for each in qualities]
    means = {name: mean(getattr(each, name) for each in found) for name in playbooks.Quality.__slots__}
    assert means["coverage"] >= coverage
    assert means["precision"] >= 0.70
    assert means["order"] >= 0.80
    assert means["steps"] <= 1.3
    assert means["tokens"] <= 700


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
async def test_nearly_all_find_the_right_skill_and_not_worse_than_by_the_raw_transcripts(shared_data: Path) -> None:
    hits: list[float] = []
    raws: list[float] = []
    async with LocalEmbedder() as embedder:
        for seed in range(1, 6):
            drawn, ask = learning.read_talks(shared_data / "star", seed)
            learn = learning.take(drawn, 20)
            learned, raw = await learning.learn_all(learn, embedder), await learning.make_raw_search(learn, embedder)
            questions = [" ".join(talk.said[:2]) or "-" for talk in ask]
            peer = [raw(question, await embedder.embed_query(question), "fused") for question in questions]
            hits.append(learning.score(await ask_all(learned, ask), ask)[0])
            raws.append(learning.score(peer, ask)[0])
            assert await measure_refused(learned, shared_data, 300) >= 0.95
    assert sum(hits) / len(hits) >= 0.965
    assert sum(hits) >= sum(raws)
