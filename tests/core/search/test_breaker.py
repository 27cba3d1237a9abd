from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from refdesk.core.search.breaker import FAILURES, PROBE, Breaker
from refdesk.core.search.semantics import Semantics
from refdesk.errors import EmbedderError
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import ScriptedEmbedder

PATIENCE_SECONDS = 180.0


def open_service(*, is_down: bool = False) -> tuple[ScriptedEmbedder, Semantics]:
    embedder = ScriptedEmbedder(is_remote=True, is_down=is_down)
    return embedder, Semantics(MemoryStore(), embedder, question_seconds=PATIENCE_SECONDS)


async def open_breaker(semantics: Semantics, question: str = "x") -> None:
    await semantics.embed_query(question, "acme")
    for _ in range(FAILURES):
        await semantics.breaker.probe()


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        while not is_so():
            await anyio.lowlevel.checkpoint()


async def test_a_service_that_fails_time_after_time_is_asked_nothing_until_it_answers_a_probe() -> None:
    embedder, semantics = open_service(is_down=True)
    await open_breaker(semantics)
    assert embedder.asked == ["x", *[PROBE] * FAILURES]
    assert semantics.breaker.trouble == "the model is down"
    for number in range(64):
        assert await semantics.embed_query(f"question {number}", "acme") == (None, "unavailable")
    with pytest.raises(EmbedderError, match="the model is down"):
        await semantics.embed_found(["a text"], "acme")
    assert len(embedder.asked) == 1 + FAILURES
    embedder.is_down = False
    await semantics.breaker.probe()
    assert semantics.breaker.trouble is None
    assert (await semantics.embed_query("x", "acme"))[1] == "used"


async def test_a_service_that_hangs_is_asked_nothing_either() -> None:
    embedder = ScriptedEmbedder(is_remote=True, gate=anyio.Event())
    semantics = Semantics(MemoryStore(), embedder, question_seconds=0.0, breaker=Breaker(probe_seconds=0.0))
    await open_breaker(semantics)
    asked = len(embedder.asked)
    assert await semantics.embed_query("y", "acme") == (None, "unavailable")
    assert len(embedder.asked) == asked
    assert semantics.breaker.trouble is not None
    assert "no answer" in semantics.breaker.trouble


async def test_one_failed_probe_is_not_enough() -> None:
    embedder, semantics = open_service(is_down=True)
    await semantics.embed_query("x", "acme")
    for _ in range(FAILURES - 1):
        await semantics.breaker.probe()
    embedder.is_down = False
    assert (await semantics.embed_query("x", "acme"))[1] == "used"
    await semantics.breaker.probe()
    assert embedder.asked.count(PROBE) == FAILURES - 1


async def test_questions_that_fail_while_the_service_answers_probes_do_not_open_it() -> None:
    embedder, semantics = open_service()
    embedder.gate = anyio.Event()
    for number in range(10):
        with anyio.move_on_after(PATIENCE_SECONDS):
            hurried = Semantics(semantics.store, embedder, question_seconds=0.0, breaker=semantics.breaker)
            assert (await hurried.embed_query(f"{number}", "acme"))[1] == "unavailable"
    embedder.gate.set()
    await semantics.breaker.probe()
    assert semantics.breaker.trouble is None
    assert (await semantics.embed_query("x", "other"))[1] == "used"


async def test_a_question_that_was_embedded_before_is_answered_while_it_is_open() -> None:
    embedder, semantics = open_service()
    await semantics.embed_query("known", "acme")
    embedder.is_down = True
    await open_breaker(semantics)
    assert (await semantics.embed_query("known", "acme"))[1] == "used"
    assert (await semantics.embed_query("known", "other"))[1] == "unavailable"
    assert semantics.breaker.trouble is not None


async def test_another_model_is_asked_while_it_is_open() -> None:
    _, semantics = open_service(is_down=True)
    await open_breaker(semantics)
    other = Semantics(MemoryStore(), ScriptedEmbedder("other-8", is_remote=True), breaker=semantics.breaker)
    assert (await other.embed_query("x", "acme"))[1] == "used"


async def test_a_model_in_the_process_has_none() -> None:
    embedder = ScriptedEmbedder(is_down=True)
    semantics = Semantics(MemoryStore(), embedder)
    await open_breaker(semantics)
    await semantics.embed_query("y", "acme")
    assert embedder.asked == ["x", "y"]


async def test_it_opens_and_closes_by_itself_while_it_runs() -> None:
    embedder, semantics = open_service(is_down=True)
    breaker = semantics.breaker
    breaker.rest_seconds = breaker.calm_seconds = 0.0
    async with anyio.create_task_group() as group:
        group.start_soon(breaker.run)
        for _ in range(3):
            embedder.is_down = True
            await semantics.embed_query("x", "other")
            await until(lambda: breaker.trouble is not None)
            embedder.is_down = False
            await until(lambda: breaker.trouble is None)
        group.cancel_scope.cancel()
