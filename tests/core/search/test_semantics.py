from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio
import numpy as np
import pytest

from refdesk.core.search import matching
from refdesk.core.search.cosines import PROBES
from refdesk.core.search.semantics import MISSING_MEANING, TRUST_OF_UNKNOWN, Semantics
from refdesk.errors import EmbedderError
from refdesk.model import CosineScale, EmbeddedPassage, EmbeddingModel, Vector
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOTES, ScriptedEmbedder, make_document


async def put_with_vectors(store: MemoryStore, embedder: ScriptedEmbedder) -> None:
    document = make_document("a")
    [vector] = await embedder.embed_passages(["a"])
    async with store.transaction() as transaction:
        await transaction.put_documents([document])
        await transaction.put_vectors(NOTES, "a", embedder.model, document.text_digest, [EmbeddedPassage(0, 1, vector)])


async def test_a_question_is_embedded_by_the_wanted_model_when_none_is_active_yet() -> None:
    query, status = await Semantics(MemoryStore(), ScriptedEmbedder()).embed_query("x", "acme")
    assert (query and query.model, status) == ("scripted-8", "used")


async def test_a_question_never_waits_for_a_model_to_load() -> None:
    embedder = ScriptedEmbedder(is_ready=False)
    semantics = Semantics(MemoryStore(), embedder)
    assert await semantics.embed_query("x", "acme") == (None, "loading")
    assert embedder.loads == 0
    await semantics.load_if_asked()
    await semantics.load_if_asked()
    assert embedder.loads == 1
    assert (await semantics.embed_query("x", "acme"))[1] == "used"


async def test_a_model_that_cannot_be_loaded_is_unavailable_until_it_can() -> None:
    embedder = ScriptedEmbedder(is_ready=False)
    semantics = Semantics(MemoryStore(), embedder)
    embedder.failure = EmbedderError("its file is missing")
    assert await semantics.get_ready() is embedder
    assert await semantics.embed_query("x", "acme") == (None, "unavailable")
    with pytest.raises(EmbedderError):
        await semantics.load_if_asked()
    assert await semantics.embed_query("x", "acme") == (None, "unavailable")
    embedder.failure = None
    await semantics.load_if_asked()
    assert (await semantics.embed_query("x", "acme"))[1] == "used"


async def test_a_question_in_a_script_the_model_cannot_read_is_left_to_its_words() -> None:
    semantics = Semantics(MemoryStore(), ScriptedEmbedder(foreign=frozenset({"退款"})))
    assert await semantics.embed_query("退款", "acme") == (None, "foreign")
    assert (await semantics.embed_query("refund", "acme"))[1] == "used"


@pytest.mark.parametrize("text", ["?", "!!!", '"', "*", "— …"])
async def test_what_holds_no_words_is_no_question_in_a_script_that_the_model_cannot_read(text: str) -> None:
    semantics = Semantics(MemoryStore(), ScriptedEmbedder(foreign=frozenset({text})))
    assert await semantics.embed_query(text, "acme") == (None, "wordless")
    assert matching.get_notice([], "wordless") == MISSING_MEANING["wordless"]


async def test_vectors_of_a_language_that_the_model_does_not_know_count_less() -> None:
    english, multilingual = ScriptedEmbedder(known=frozenset({"en"})), ScriptedEmbedder()
    for embedder, text, trust in (
        (english, "Wie setze ich das Passwort zurück?", TRUST_OF_UNKNOWN),
        (english, "How do I reset the password?", 1.0),
        (english, "AKS", 1.0),
        (multilingual, "Wie setze ich das Passwort zurück?", 1.0),
    ):
        query, _ = await Semantics(MemoryStore(), embedder).embed_query(text, "acme")
        assert query is not None
        assert query.trust == trust


class PairingEmbedder(ScriptedEmbedder):
    """Puts each probe beside its passage, and everything else at right angles."""

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return list(np.eye(len(PROBES), dtype=np.float32)[: len(texts)])

    async def embed_query(self, text: str) -> Vector:
        await super().embed_query(text)
        number = next((n for n, (question, _) in enumerate(PROBES) if question == text), 0)
        return np.eye(len(PROBES), dtype=np.float32)[number]


async def test_how_near_a_model_puts_texts_is_measured_once_in_the_background_and_kept_for_everybody() -> None:
    store, embedder = MemoryStore(), PairingEmbedder()
    semantics = Semantics(store, embedder)
    query, _ = await semantics.embed_query("x", "acme")
    assert query is not None
    assert query.scale is None
    await semantics.measure_if_asked()
    asked = len(embedder.asked)
    await semantics.measure_if_asked()
    for each in (semantics, Semantics(store, embedder)):
        query, _ = await each.embed_query("x", "acme")
        assert query is not None
        assert query.scale == CosineScale(unrelated=0.0, related=1.0)
    assert embedder.asked[asked:].count(PROBES[1][0]) == 0


async def test_a_model_that_tells_nothing_apart_has_no_scale_and_is_not_measured_again() -> None:
    store, embedder = MemoryStore(), ScriptedEmbedder()
    semantics = Semantics(store, embedder)
    await semantics.embed_query("x", "acme")
    await semantics.measure_if_asked()
    asked = len(embedder.asked)
    query, _ = await Semantics(store, embedder).embed_query("x", "acme")
    assert query is not None
    assert query.scale is None
    await semantics.measure_if_asked()
    assert len(embedder.asked) <= asked + 1


async def test_a_model_that_fails_while_it_is_measured_is_measured_at_the_next_question() -> None:
    embedder = PairingEmbedder()
    semantics = Semantics(MemoryStore(), embedder)
    await semantics.embed_query("x", "acme")
    embedder.is_down = True
    await semantics.measure_if_asked()
    embedder.is_down = False
    await semantics.embed_query("y", "acme")
    await semantics.measure_if_asked()
    query, _ = await semantics.embed_query("y", "acme")
    assert query is not None
    assert query.scale is not None


async def test_a_failing_model_makes_search_say_so() -> None:
    semantics = Semantics(MemoryStore(), ScriptedEmbedder(is_down=True))
    assert await semantics.embed_query("x", "acme") == (None, "unavailable")


async def test_a_question_that_is_not_embedded_in_time_is_left_to_its_words() -> None:
    embedder = ScriptedEmbedder(gate=anyio.Event())
    semantics = Semantics(MemoryStore(), embedder, question_seconds=0.0)
    with anyio.fail_after(120):
        assert await semantics.embed_query("x", "acme") == (None, "unavailable")
    embedder.gate = None
    assert (await replace(semantics, question_seconds=120.0).embed_query("x", "acme"))[1] == "used"


async def test_a_question_takes_half_of_the_time_of_its_search_at_most() -> None:
    class Timed(ScriptedEmbedder):
        until = 0.0

        async def embed_query(self, text: str) -> Vector:
            self.until = anyio.current_effective_deadline()
            return await ScriptedEmbedder.embed_query(self, text)

    embedder = Timed()
    with anyio.move_on_after(1000.0) as search:
        await Semantics(MemoryStore(), embedder, question_seconds=1e9).embed_query("x", "acme")
        assert embedder.until <= search.deadline - 490.0


async def test_texts_that_are_not_embedded_in_time_are_an_error_of_the_embedder() -> None:
    class Slow(ScriptedEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
            await anyio.sleep_forever()
            return []

    with pytest.raises(EmbedderError, match="no answer within"):
        await Semantics(MemoryStore(), Slow(), question_seconds=0.0).embed_found(["x"], "acme")


async def test_after_a_change_of_settings_questions_still_go_to_the_active_model() -> None:
    store, old, new = MemoryStore(), ScriptedEmbedder("old"), ScriptedEmbedder("new")
    await Semantics(store, old).adopt_wanted()
    semantics = Semantics(store, new, reopen=lambda model: old if model == old.model else None)
    query, _ = await semantics.embed_query("x", "acme")
    assert query is not None
    assert query.model == "old"
    assert await semantics.is_outdated()


async def test_an_active_model_that_cannot_be_had_any_more_makes_vectors_unavailable() -> None:
    store = MemoryStore()
    await Semantics(store, ScriptedEmbedder("old")).adopt_wanted()
    assert await Semantics(store, ScriptedEmbedder("new")).embed_query("x", "acme") == (None, "unavailable")


async def test_adopting_the_wanted_model_drops_the_vectors_of_the_old_one() -> None:
    store, old, new = MemoryStore(), ScriptedEmbedder("old"), ScriptedEmbedder("new")
    await Semantics(store, old).adopt_wanted()
    await put_with_vectors(store, old)
    semantics = Semantics(store, new)
    assert await semantics.adopt_wanted() == EmbeddingModel("old", 8)
    assert not await semantics.is_outdated()
    assert await store.get_unembedded(NOTES, "old", 10) == ["a"]
