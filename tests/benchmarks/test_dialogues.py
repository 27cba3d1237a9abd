"""Dialogues are read as their authors publish them, and measured by the definitions that others report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.dialogues import GRAINS, Grain, judge, measure, rank_by_tool, read_locomo, read_longmemeval, summarise
from benchmarks.quality import Judged

# Invented: nothing of the licensed data is here.
LOCOMO: list[dict[str, Any]] = [
    {
        "sample_id": "invented-1",
        "conversation": {
            "speaker_a": "Ida",
            "speaker_b": "Omar",
            "session_1_date_time": "1:00 pm on 3 May, 2026",
            "session_1": [
                {"speaker": "Ida", "dia_id": "D1:1", "text": "I bought a green canoe at the harbour market."},
                {"speaker": "Omar", "dia_id": "D1:2", "text": "Lovely! My sister repairs clocks in Ghent."},
            ],
            "session_2_date_time": "9:00 am on 9 June, 2026",
            "session_2": [
                {
                    "speaker": "Omar",
                    "dia_id": "D2:1",
                    "text": "Look at this.",
                    "blip_caption": "a photo of a clock tower",
                },
                {"speaker": "Ida", "dia_id": "D2:2", "text": "I sold the canoe and now learn the cello."},
            ],
        },
        "qa": [
            {"question": "What boat did Ida buy?", "answer": "a canoe", "evidence": ["D1:1"], "category": 4},
            {"question": "What became of the canoe?", "answer": "sold", "evidence": ["D1:1; D2:2"], "category": 1},
            {"question": "What did Omar buy?", "adversarial_answer": "a canoe", "evidence": ["D1:1"], "category": 5},
            {"question": "What is pictured?", "answer": "a tower", "evidence": ["D9:9"], "category": 2},
        ],
    }
]
LONGMEMEVAL: list[dict[str, Any]] = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which instrument do I learn?",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2026/05/03", "2026/06/09"],
        "haystack_sessions": [
            [{"role": "user", "content": "Which glue holds canvas on a canoe?"}],
            [
                {"role": "user", "content": "I have started to learn the cello.", "has_answer": True},
                {"role": "assistant", "content": "Rosin the bow every day."},
            ],
        ],
        "answer_session_ids": ["s2"],
    },
    {
        "question_id": "q2_abs",
        "question_type": "single-session-user",
        "question": "Which horse do I ride?",
        "haystack_session_ids": [],
        "haystack_dates": [],
        "haystack_sessions": [],
        "answer_session_ids": [],
    },
]


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps(LOCOMO))
    return path


@pytest.fixture
def longmemeval(tmp_path: Path) -> Path:
    path = tmp_path / "longmemeval_s.json"
    path.write_text(json.dumps(LONGMEMEVAL))
    return path


def test_locomo_is_read_by_sessions_and_by_turns(locomo: Path) -> None:
    [by_session] = read_locomo(locomo, "session")
    [by_turn] = read_locomo(locomo, "turn")
    assert [len(each.collection.documents) for each in (by_session, by_turn)] == [2, 4]
    # The question without an answer and the one whose evidence is not there are left out.
    assert by_session.collection.queries == by_turn.collection.queries == [q["question"] for q in LOCOMO[0]["qa"][:2]]
    assert by_session.collection.relevant == [{0: 1}, {0: 1, 1: 1}]
    assert by_turn.collection.relevant == [{0: 1}, {0: 1, 3: 1}]
    assert by_turn.kinds == ["category 4", "category 1"]
    assert by_turn.collection.documents[2] == (
        "Session 2, 9:00 am on 9 June, 2026",
        "Omar: Look at this. [shows a photo of a clock tower]",
    )


def test_longmemeval_is_read_by_sessions_and_by_turns(longmemeval: Path) -> None:
    [by_session] = read_longmemeval(longmemeval, "session")
    [by_turn] = read_longmemeval(longmemeval, "turn")
    assert by_session.collection.relevant == by_turn.collection.relevant == [{1: 1}]
    assert [len(each.collection.documents) for each in (by_session, by_turn)] == [2, 3]
    assert by_turn.kinds == ["single-session-user"]


def test_a_question_is_judged_as_others_report_it() -> None:
    outcome = judge("any", {1: 1, 2: 1, 3: 1, 4: 1}, [9, 1, 8, 7, 6, 2])
    assert outcome.any_hit == (1.0, 1.0)
    assert outcome.fraction == (0.25, 0.5)
    assert outcome.reciprocal == 0.5
    assert 0 < outcome.ndcg < 1
    assert judge("any", {1: 1}, [1]).ndcg == 1.0
    assert judge("any", {1: 1}, []) == judge("any", {1: 1}, [2, 3])


def test_a_ranking_that_is_upside_down_is_worse(locomo: Path) -> None:
    conversations = list(read_locomo(locomo, "turn"))

    def right(collection: Judged) -> list[list[int]]:
        rest = range(len(collection.documents))
        return [[*relevant, *(n for n in rest if n not in relevant)] for relevant in collection.relevant]

    def wrong(collection: Judged) -> list[list[int]]:
        return [ranked[::-1] for ranked in right(collection)]

    best, worst = (summarise(measure(conversations, rank)) for rank in (right, wrong))
    assert best["MRR"] == [1.0, 1.0, 1.0]
    assert best["nDCG@10"][0] == 1.0
    assert worst["MRR"][0] < 0.5
    assert worst["questions"] == 2


@pytest.mark.parametrize("grain", GRAINS)
def test_search_knowledge_finds_the_evidence_of_invented_dialogues(
    locomo: Path, longmemeval: Path, grain: Grain
) -> None:
    conversations = [*read_locomo(locomo, grain), *read_longmemeval(longmemeval, grain)]
    assert summarise(measure(conversations, rank_by_tool))["any@5"][0] == 1.0
