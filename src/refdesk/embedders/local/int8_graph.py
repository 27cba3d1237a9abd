"""The packaged encoder as a graph that multiplies in int8.

The packaged file stores its weights as int8 but multiplies in float32. Here the same weights are read from it and put
into a graph whose large products multiply bytes: activations are quantised to u8 at run time, with one range for a
whole text (ONNX Runtime's DynamicQuantizeMatMul), and weights stay int8 with a scale for each column.

Two things keep the vectors near those of the float graph (cosine .998 for a sentence):

- *No processor saturates.* On x86 without VNNI the kernel adds the products of two neighbouring inputs in 16 bits
  (VPMADDUBSW). A column is scaled down just far enough that no such sum can overflow, whatever the activations are,
  so every processor computes the same integers.
- *Outliers are multiplied in float32.* A few hidden dimensions and neurons of this model reach thirty times the spread
  of the others at the first and last piece of a text, and one range for all would leave those others three bits. They
  are known, always the same, and so few that their products cost next to nothing (the decomposition of Dettmers et
  al., "LLM.int8()", 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from refdesk.embedders.local.graph_file import GraphWriter, read_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    Tensors: TypeAlias = dict[str, Array]

HEADS = 12
HIDDEN = 384
OUTLIER_DIMENSIONS = (63, 99, 223, 338)
"""The outlier dimensions in the input of every attention and every feed-forward block."""

OUTLIER_NEURONS = ((856,), (607,), (1004, 218), (358,), (192,), (1302,))
"""The outlier neurons of each layer's feed-forward block: those far above the others on some text."""

MAX_PAIR = 128
"""The most that two neighbouring weights may add up to: 255 · 128 still fits into 16 bits, 255 · 129 does not."""

_EPSILON = 1e-12
_EMBEDDINGS = "inner.embeddings"
_MATRICES = ("query", "key", "value", "attention.output", "intermediate", "output")
"""The weight matrices of a layer, in the file's order."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Weights as int8 (inputs × outputs) with a scale for each output, and the bias."""

    weights: Array
    scales: Array
    bias: Array

    def to_float(self) -> Array:
        """Return the weights as real numbers."""
        return self.weights.astype(np.float32) * self.scales


@dataclass(frozen=True, slots=True)
class Norm:
    """A layer normalisation."""

    scale: Array
    shift: Array


def derive(packaged: bytes) -> bytes:
    """Return the graph that multiplies in int8, from the packaged file.

    Its input is `input_ids`, the pieces of one text, and its output `last_hidden_state`, a row for each of them.

    The bytes are the same on every machine: each step is a single operation of IEEE arithmetic.
    """
    tensors = read_tensors(packaged)
    graph = GraphWriter()
    norm, value = _embed(graph, tensors)
    for number in range(len(OUTLIER_NEURONS)):
        norm, value = _add_layer(graph, tensors, number, norm, value)
    graph.name_output(_normalise(graph, "norm", norm, value), "last_hidden_state")
    return graph.to_bytes({"input_ids": ("pieces",)}, {"last_hidden_state": ("pieces", HIDDEN)})


def limit_pairs(matrix: Matrix) -> Matrix:
    """Return the weights, with columns scaled down so that no two neighbouring weights add up to over `MAX_PAIR`."""
    pairs = np.abs(matrix.weights[0::2].astype(np.float32) + matrix.weights[1::2]).max(axis=0)
    # Rounding may add a half to each weight of the pair.
    factors = np.where(pairs > MAX_PAIR, np.float32(MAX_PAIR - 1) / np.maximum(pairs, 1), np.float32(1))
    weights = np.rint(matrix.weights * factors).astype(np.int8)
    return Matrix(weights, (matrix.scales / factors).astype(np.float32), matrix.bias)


def _embed(graph: GraphWriter, tensors: Tensors) -> tuple[Norm, str]:
    """Return the normalisation that the embeddings still need, and the embeddings."""
    words = graph.constant("words", tensors[f"{_EMBEDDINGS}.word_embeddings.weight_q"])
    scales = graph.constant("word_scales", tensors[f"{_EMBEDDINGS}.word_embeddings.weight_scale"])
    places = _scale(tensors, f"{_EMBEDDINGS}.position_embeddings.weight")
    places += tensors[f"{_EMBEDDINGS}.token_type_embeddings.weight"][0]
    [rows] = graph.node("Gather", [words, "input_ids"])
    [row_scales] = graph.node("Gather", [scales, "input_ids"])
    [floats] = graph.node("Cast", [rows], to=1)
    [scaled] = graph.node("Mul", [floats, row_scales])
    [length] = graph.node("Shape", ["input_ids"], start=0, end=1)
    start = graph.constant("start", np.zeros(1, np.int64))
    [here] = graph.node("Slice", [graph.constant("places", places), start, length])
    graph.constant("outliers", np.array(OUTLIER_DIMENSIONS))
    graph.constant("first", np.zeros(1, np.int64))
    return _read_norm(tensors, f"{_EMBEDDINGS}.LayerNorm"), graph.node("Add", [scaled, here])[0]


def _add_layer(graph: GraphWriter, tensors: Tensors, number: int, norm: Norm, value: str) -> tuple[Norm, str]:
    """Return the normalisation that the layer's output still needs, and the output."""
    prefix = f"inner.encoder.layer.{number}"
    quantised = [name.removesuffix("_q") for name in tensors if name.startswith("val_") and name.endswith("_q")]
    own: dict[str, str] = dict(zip(_MATRICES, quantised[number * len(_MATRICES) :], strict=False))
    joined = _join([_read_self(tensors, prefix, own, each) for each in _MATRICES[:3]])
    state, attended = _attend(graph, f"{number}.attention", norm, joined, value)
    output = Matrix(*_read_weights(tensors, own["attention.output"]), tensors[f"{prefix}.attention.output.dense.bias"])
    [value] = graph.node("Add", [_multiply(graph, f"{number}.attention.output", output, attended), state])
    norm = _read_norm(tensors, f"{prefix}.attention.output.LayerNorm")
    up = Matrix(*_read_weights(tensors, own["intermediate"]), tensors[f"{prefix}.intermediate.dense.bias"])
    down = Matrix(*_read_weights(tensors, own["output"]), tensors[f"{prefix}.output.dense.bias"])
    state, fed = _feed_forward(graph, number, norm, (up, down), value)
    return _read_norm(tensors, f"{prefix}.output.LayerNorm"), graph.node("Add", [fed, state])[0]


def _attend(graph: GraphWriter, name: str, norm: Norm, joined: Matrix, value: str) -> tuple[str, str]:
    """Return the normalised input, and the result of attention between its pieces."""
    state, product = _multiply_without_outliers(graph, name, norm, joined, value)
    sizes = graph.constant(f"{name}.sizes", np.full(3, HIDDEN, np.int64))
    parts = graph.node("Split", [product, sizes], outputs=3, axis=-1)
    batches = [graph.node("Unsqueeze", [part, "first"])[0] for part in parts]
    [attended] = graph.node("MultiHeadAttention.com.microsoft", batches, num_heads=HEADS)
    return state, graph.node("Squeeze", [attended, "first"])[0]


def _feed_forward(
    graph: GraphWriter, number: int, norm: Norm, matrices: tuple[Matrix, Matrix], value: str
) -> tuple[str, str]:
    """Return the normalised input, and the block's output for it."""
    (up, down), neurons = matrices, OUTLIER_NEURONS[number]
    common = Matrix(_zero(up.weights, (), neurons), up.scales, _zero(up.bias, neurons))
    state, product = _multiply_without_outliers(graph, f"{number}.up", norm, common, value)
    [bent] = graph.node("Gelu.com.microsoft", [product])
    fed = _multiply(graph, f"{number}.down", Matrix(_zero(down.weights, neurons), down.scales, down.bias), bent)
    return state, _add_neurons(graph, number, (up, down), neurons, state, fed)


def _multiply_without_outliers(
    graph: GraphWriter, name: str, norm: Norm, matrix: Matrix, value: str
) -> tuple[str, str]:
    """Return the normalised value and its product, with the outlier dimensions in float32 and the others in int8."""
    dimensions = OUTLIER_DIMENSIONS
    state = _normalise(graph, f"{name}.norm", norm, value)
    without = Norm(_zero(norm.scale, dimensions), _zero(norm.shift, dimensions))
    rest = _normalise(graph, f"{name}.rest", without, value)
    common = Matrix(_zero(matrix.weights, dimensions), matrix.scales, matrix.bias)
    product = _multiply(graph, name, common, rest)
    [outliers] = graph.node("Gather", [state, "outliers"], axis=1)
    rows = graph.constant(f"{name}.rows", matrix.to_float()[list(dimensions)])
    return state, graph.node("Gemm", [outliers, rows, product])[0]


def _add_neurons(
    graph: GraphWriter, number: int, matrices: tuple[Matrix, Matrix], neurons: Sequence[int], state: str, fed: str
) -> str:
    up, down = matrices
    columns = graph.constant(f"{number}.columns", up.to_float()[:, list(neurons)])
    bias = graph.constant(f"{number}.columns.bias", up.bias[list(neurons)])
    [product] = graph.node("Gemm", [state, columns, bias])
    [bent] = graph.node("Gelu.com.microsoft", [product])
    rows = graph.constant(f"{number}.down.rows", down.to_float()[list(neurons)])
    return graph.node("Gemm", [bent, rows, fed])[0]


def _multiply(graph: GraphWriter, name: str, matrix: Matrix, value: str) -> str:
    limited = limit_pairs(matrix)
    weights = graph.constant(f"{name}.weights", limited.weights)
    scales = graph.constant(f"{name}.scales", limited.scales.ravel())
    bias = graph.constant(f"{name}.bias", limited.bias)
    return graph.node("DynamicQuantizeMatMul.com.microsoft", [value, weights, scales, "", bias])[0]


def _normalise(graph: GraphWriter, name: str, norm: Norm, value: str) -> str:
    scale, shift = graph.constant(f"{name}.scale", norm.scale), graph.constant(f"{name}.shift", norm.shift)
    return graph.node("LayerNormalization", [value, scale, shift], axis=-1, epsilon=_EPSILON)[0]


def _join(matrices: list[Matrix]) -> Matrix:
    return Matrix(
        np.concatenate([each.weights for each in matrices], axis=1),
        np.concatenate([each.scales for each in matrices], axis=1),
        np.concatenate([each.bias for each in matrices]),
    )


def _zero(value: Array, rows: Sequence[int], columns: Sequence[int] = ()) -> Array:
    value = value.copy()
    value[list(rows)] = 0
    if columns:
        value[:, list(columns)] = 0
    return value


def _read_self(tensors: Tensors, prefix: str, own: dict[str, str], part: str) -> Matrix:
    return Matrix(*_read_weights(tensors, own[part]), tensors[f"{prefix}.attention.self.{part}.bias"])


def _read_weights(tensors: Tensors, name: str) -> tuple[Array, Array]:
    return tensors[f"{name}_q"], tensors[f"{name}_scale"]


def _scale(tensors: Tensors, name: str) -> Array:
    weights, scales = _read_weights(tensors, name)
    return weights.astype(np.float32) * scales


def _read_norm(tensors: Tensors, prefix: str) -> Norm:
    return Norm(tensors[f"{prefix}.weight"], tensors[f"{prefix}.bias"])
