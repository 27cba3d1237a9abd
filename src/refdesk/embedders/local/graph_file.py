"""Reading the tensors of an ONNX file and writing a small graph, without the `onnx` package.

An ONNX file is one protocol-buffer message. Of its schema (onnx.proto, version 1.12 and later), only the few fields
that a graph of named tensors and nodes needs are handled; anything else in a file is skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensor: TypeAlias = NDArray[Any]

Attribute: TypeAlias = int | float
Shape: TypeAlias = Sequence[str | int]
"""Sizes; those that differ from call to call are given as a name."""

NONE: Mapping[str, Shape] = {}

_TYPES = {1: np.dtype("<f4"), 2: np.dtype("u1"), 3: np.dtype("i1"), 7: np.dtype("<i8"), 9: np.dtype("?")}
"""Maps the number of a tensor's element type to its numpy type."""

_NUMBERS = {dtype: number for number, dtype in _TYPES.items()}
FLOAT, INT64 = 1, 7

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_IR_VERSION = 8
_DOMAINS = {"": 18, "com.microsoft": 1}
"""The sets of operators that a graph may use, each with its version."""


def read_tensors(content: bytes) -> dict[str, Tensor]:
    """Return the constants of a model by name, in the file's order. They share the file's memory and are read-only.

    Raises:
        ValueError: It is not an ONNX file, or a tensor is stored in a form that is not supported here.
    """
    graphs = (value for number, value in _read_fields(memoryview(content)) if number == 7)
    graph = next((value for value in graphs if isinstance(value, memoryview)), None)
    if graph is None:
        raise ValueError("the file holds no graph")
    return dict(_read_tensor(value) for number, value in _read_fields(graph) if number == 5)


def _read_tensor(message: int | memoryview) -> tuple[str, Tensor]:
    dims: list[int] = []
    kind, name, raw = 0, "", memoryview(b"")
    for number, value in _read_fields(cast("memoryview", message)):
        if number == 1:
            dims += [value] if isinstance(value, int) else _read_packed(value)
        elif number == 2:
            kind = cast("int", value)
        elif number == 8:
            name = bytes(cast("memoryview", value)).decode()
        elif number == 9:
            raw = cast("memoryview", value)
    if kind not in _TYPES:
        raise ValueError(f"the tensor {name} has a type that is not read here")
    return name, np.frombuffer(raw, _TYPES[kind]).reshape(dims)


def _read_packed(view: memoryview) -> list[int]:
    values: list[int] = []
    place = 0
    while place < len(view):
        value, place = _read_varint(view, place)
        values.append(value)
    return values


def _read_fields(view: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and value of each field: an integer, or the bytes of a text, a message or anything else."""
    place = 0
    while place < len(view):
        key, place = _read_varint(view, place)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, place = _read_varint(view, place)
            yield number, value
            continue
        if wire == _BYTES:
            size, place = _read_varint(view, place)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}[wire]
        yield number, view[place : place + size]
        place += size


def _read_varint(view: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


@dataclass(slots=True)
class GraphWriter:
    """Collects constants and nodes; `to_bytes` returns the model file."""

    _nodes: list[bytes] = field(default_factory=list[bytes])
    _constants: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def constant(self, name: str, value: Tensor) -> str:
        """Add a constant under a name of its own; return the name."""
        value = np.asarray(value, order="C")
        dims = b"".join(_number(1, size) for size in value.shape)
        self._constants[name] = dims + _number(2, _NUMBERS[value.dtype]) + _text(8, name) + _message(9, value.tobytes())
        return name

    def node(self, operator: str, inputs: Sequence[str], *, outputs: int = 1, **attributes: Attribute) -> list[str]:
        """Add a node and return the names of its outputs. An empty input name means that the input is omitted.

        Args:
            operator: Its name, followed by a dot and its domain unless that is ONNX's own: `Gelu.com.microsoft`.
        """
        kind, _, domain = operator.partition(".")
        names = [f"{kind}_{len(self._nodes)}_{number}" for number in range(outputs)]
        self._add(kind, inputs, names, domain, attributes)
        return names

    def name_output(self, value: str, name: str) -> None:
        """Give a value the name under which callers request it."""
        self._add("Identity", [value], [name], "", {})

    def to_bytes(
        self, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape], floats: Mapping[str, Shape] = NONE
    ) -> bytes:
        """Return the file.

        Args:
            inputs: The shapes of the inputs that are int64.
            outputs: The shapes of the outputs, which are float32.
            floats: The shapes of the inputs that are float32.
        """
        graph = b"".join(_message(1, node) for node in self._nodes) + _text(2, "refdesk")
        graph += b"".join(_message(5, constant) for constant in self._constants.values())
        graph += b"".join(_message(11, _declare(name, INT64, shape)) for name, shape in inputs.items())
        graph += b"".join(_message(11, _declare(name, FLOAT, shape)) for name, shape in floats.items())
        graph += b"".join(_message(12, _declare(name, FLOAT, shape)) for name, shape in outputs.items())
        domains = (_text(1, domain) + _number(2, version) for domain, version in _DOMAINS.items())
        return _number(1, _IR_VERSION) + _message(7, graph) + b"".join(_message(8, domain) for domain in domains)

    def _add(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str, attributes: Mapping[str, Attribute]
    ) -> None:
        node = b"".join(_text(1, name) for name in inputs) + b"".join(_text(2, name) for name in outputs)
        node += _text(3, f"{kind}_{len(self._nodes)}") + _text(4, kind) + _text(7, domain)
        self._nodes.append(node + b"".join(_message(5, _attribute(*each)) for each in attributes.items()))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _key(2, _FIXED32) + struct.pack("<f", value) + _number(20, 1)
    return _text(1, name) + _number(3, value) + _number(20, 2)


def _declare(name: str, kind: int, shape: Shape) -> bytes:
    sizes = (_text(2, size) if isinstance(size, str) else _number(1, size) for size in shape)
    tensor = _number(1, kind) + _message(2, b"".join(_message(1, size) for size in sizes))
    return _text(1, name) + _message(2, _message(1, tensor))


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode())


def _message(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _varint(value & (1 << 64) - 1)


def _key(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
