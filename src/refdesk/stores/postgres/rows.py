"""Row encodings beyond those of `refdesk.core.keeping.rows`: vectors, in pgvector's format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, LiteralString

import numpy as np

from refdesk.core.keeping.encoding import check_texts
from refdesk.core.keeping.rows import check_passages
from refdesk.errors import InvalidInputError

if TYPE_CHECKING:
    from refdesk.model import EmbeddedPassage, EmbeddingModel, Vector

MOST_DIMENSIONS = 16_000
"""Most components that pgvector's half-precision type holds."""


def encode_vector(vector: Vector) -> str:
    """Return the vector as pgvector reads it, which gets exactly the same number for each component."""
    # Nine digits distinguish any two single-precision numbers, and are read in half the time of all digits.
    return _get_format("%.9g", len(vector)) % tuple(vector.tolist())


def encode_passages(model: EmbeddingModel, passages: Sequence[EmbeddedPassage]) -> list[tuple[int, int, str]]:
    """Return (start, end, vector in half precision) of each passage.

    Raises:
        InvalidInputError: A vector does not have the model's width, or a component is not a finite number.
    """
    check_texts(model.name)
    check_passages(model, passages)
    if model.dimensions > MOST_DIMENSIONS:
        raise InvalidInputError(f"The database holds vectors of at most {MOST_DIMENSIONS} components.")
    return [(each.start, each.end, _encode_half(each.vector)) for each in passages]


def decode_sent(sent: bytes) -> Vector:
    """Return the vector in the output of pgvector's `halfvec_send`: width, an unused number, then the components."""
    return np.frombuffer(sent, ">f2", offset=4).astype(np.float32)


def _encode_half(vector: Vector) -> str:
    # Five digits distinguish any two half-precision numbers, and are read in half the time of all digits.
    return _get_format("%.5g", len(vector)) % tuple(vector.astype(np.float16).tolist())


@lru_cache(64)
def _get_format(component: str, width: int) -> str:
    """Return the format of a whole vector: filling it takes a third of the time of formatting each component."""
    return f"[{','.join([component] * width)}]"


def encode_digest(digest: str) -> bytes:
    """Return a hexadecimal digest as it is stored; for any other text a value that no document has."""
    try:
        return bytes.fromhex(digest)
    except ValueError:
        return b""


def spell_numbers(numbers: Iterable[int]) -> str:
    """Return numbers as PostgreSQL reads an array of them."""
    return f"{{{','.join(map(str, numbers))}}}"


def spell_texts(texts: Iterable[str]) -> str:
    """Return texts as PostgreSQL reads an array of them."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


def take_rows(
    before: LiteralString, types: Sequence[tuple[LiteralString, LiteralString]], after: LiteralString
) -> tuple[LiteralString, LiteralString]:
    """Return a statement that takes one row, in two thirds of the other's time, and one that takes any number.

    Arrays within an array would have to be of the same length, so for several rows each is sent as its text.

    Args:
        before: The statement up to its rows.
        types: Name and type of each value of a row, in order.
        after: The statement after its rows.
    """
    one = ", ".join([f"%({name})s::{type}" for name, type in types])
    many = ", ".join([f"%({name})s::{'text' if type.endswith('[]') else type}[]" for name, type in types])
    return f"{before} (VALUES ({one})) {after}", f"{before} unnest({many}) {after}"
