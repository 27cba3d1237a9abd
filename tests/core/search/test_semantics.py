from __future__ import annotations

from refdesk.core.search.semantics import TRUST_OF_UNKNOWN, Semantics
from refdesk.model import EmbeddedPassage, EmbeddingModel
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


async def test_a_question_in_a_script_the_model_cannot_read_is_left_to_its_words() -> None:
    semantics = Semantics(MemoryStore(), ScriptedEmbedder(foreign=frozenset({"退款"})))
    assert await semantics.embed_query("退款", "acme") == (None, "foreign")
    assert (await semantics.embed_query("refund", "acme"))[1] == "used"


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


async def test_a_failing_model_makes_search_say_so() -> None:
    semantics = Semantics(MemoryStore(), ScriptedEmbedder(is_down=True))
    assert await semantics.embed_query("x", "acme") == (None, "unavailable")


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
