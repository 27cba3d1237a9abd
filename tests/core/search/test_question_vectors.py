from __future__ import annotations

import anyio
import pytest

from refdesk.core.search.question_vectors import QuestionVectors
from refdesk.errors import EmbedderError
from tests.core.fakes import ScriptedEmbedder


async def test_a_question_that_was_asked_is_not_embedded_again() -> None:
    questions, embedder = QuestionVectors(), ScriptedEmbedder()
    first = await questions.get(embedder, "x", "acme")
    assert (first == await embedder.embed_query("x")).all()
    embedder.asked.clear()
    assert (await questions.get(embedder, "x", "acme") == first).all()
    assert embedder.asked == []


async def test_another_org_and_another_model_embed_for_themselves() -> None:
    questions, embedder, other = QuestionVectors(), ScriptedEmbedder(), ScriptedEmbedder("other")
    vector = await questions.get(embedder, "x", "acme")
    await questions.get(embedder, "x", "zenith")
    assert embedder.asked == ["x", "x"]
    assert (await questions.get(other, "x", "acme") != vector).any()


async def test_the_questions_asked_longest_ago_are_forgotten() -> None:
    questions, embedder = QuestionVectors(most=2), ScriptedEmbedder()
    for text in ("a", "b", "a", "c", "a", "b"):
        await questions.get(embedder, text, "acme")
    assert embedder.asked == ["a", "b", "c", "b"]


async def test_a_question_that_could_not_be_embedded_is_tried_again() -> None:
    questions, embedder = QuestionVectors(), ScriptedEmbedder(is_down=True)
    with pytest.raises(EmbedderError):
        await questions.get(embedder, "x", "acme")
    embedder.is_down = False
    await questions.get(embedder, "x", "acme")
    assert embedder.asked == ["x", "x"]


async def test_of_those_who_ask_the_same_at_once_one_embeds() -> None:
    questions, embedder = QuestionVectors(), ScriptedEmbedder(gate=anyio.Event())
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(questions.get, embedder, "x", "acme")
        group.start_soon(questions.get, embedder, "y", "acme")
        await anyio.wait_all_tasks_blocked()
        assert sorted(embedder.asked) == ["x", "y"]
        assert embedder.gate is not None
        embedder.gate.set()
    assert sorted(embedder.asked) == ["x", "y"]


async def test_when_the_one_that_embeds_is_cancelled_the_next_does() -> None:
    questions, embedder = QuestionVectors(), ScriptedEmbedder(gate=anyio.Event())
    first = anyio.CancelScope()

    async def ask_and_give_up() -> None:
        with first:
            await questions.get(embedder, "x", "acme")

    async with anyio.create_task_group() as group:
        group.start_soon(ask_and_give_up)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(questions.get, embedder, "x", "acme")
        await anyio.wait_all_tasks_blocked()
        assert embedder.asked == ["x"]
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        assert embedder.asked == ["x", "x"]
        assert embedder.gate is not None
        embedder.gate.set()


async def test_a_text_found_again_is_not_embedded_again_within_its_org() -> None:
    questions, embedder = QuestionVectors(most=3), ScriptedEmbedder()
    first = await questions.get_passages(embedder, ["a", "b", "a"], "acme")
    again = await questions.get_passages(embedder, ["b", "c"], "acme")
    assert (again[0] == first[1]).all()
    assert (first[0] == first[2]).all()
    assert embedder.seen == ["a", "b", "c"]
    await questions.get_passages(embedder, ["b"], "zenith")
    assert embedder.seen == ["a", "b", "c", "b"]
    assert len(await questions.get_passages(embedder, list("vwxyz"), "acme")) == 5
    await questions.get_passages(embedder, ["z", "b"], "acme")
    assert embedder.seen[4:] == [*"vwxyz", "b"]


async def test_texts_that_could_not_be_embedded_are_tried_again() -> None:
    questions, embedder = QuestionVectors(), ScriptedEmbedder(is_down=True)
    with pytest.raises(EmbedderError):
        await questions.get_passages(embedder, ["x"], "acme")
    embedder.is_down = False
    assert len(await questions.get_passages(embedder, ["x"], "acme")) == 1
