"""A frozen part of an index as the content of a file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from refdesk.stores.sqlite.index.binary import Codes
from refdesk.stores.sqlite.index.date_ranges import Spans
from refdesk.stores.sqlite.index.documents import Documents
from refdesk.stores.sqlite.index.facets import Facet
from refdesk.stores.sqlite.index.files import Content, DoubtfulFileError
from refdesk.stores.sqlite.index.frequent import FrequentTerms
from refdesk.stores.sqlite.index.postings import Segment
from refdesk.stores.sqlite.index.search import Snapshot
from refdesk.stores.sqlite.index.terms import ANALYSIS_VERSION
from refdesk.stores.sqlite.index.texts import Grams, SparseTexts, TextNumbers, Texts
from refdesk.stores.sqlite.index.vectors import Passages

if TYPE_CHECKING:
    from refdesk.stores.sqlite.index.files import Array

_NESTED: dict[str, type[Any]] = {
    "Texts": Texts,
    "TextNumbers": TextNumbers,
    "SparseTexts": SparseTexts,
    "Grams": Grams,
    "Codes": Codes,
    "Documents": Documents,
    "Segment": Segment,
    "FrequentTerms": FrequentTerms,
    "Passages": Passages,
    "Facet": Facet,
    "Spans": Spans,
}
"""What a part is made of: frozen values whose fields are arrays, numbers, mappings by name, or one another."""


def to_content(part: Snapshot, more: Mapping[str, Array], **notes: object) -> Content:
    """Return the content of a file that holds a part, made by `merge_snapshots`, and more arrays and notes."""
    arrays: dict[str, Array] = dict(more)
    described = {
        "documents": _take_apart(part.documents, "d", arrays),
        "segment": _take_apart(part.segments[0], "s", arrays),
        "passages": _take_apart(part.passages, "p", arrays),
    }
    return Content(arrays, {**notes, "analysis": ANALYSIS_VERSION, "part": described})


def from_content(content: Content) -> Snapshot:
    """Return the part that a file holds.

    Raises:
        DoubtfulFileError: It was made by another analysis of texts.
    """
    if content.notes["analysis"] != ANALYSIS_VERSION:
        raise DoubtfulFileError("The texts were analysed by another version.")
    part = content.notes["part"]
    documents = cast("Documents", _put_together(part["documents"], content.arrays))
    segment = cast("Segment", _put_together(part["segment"], content.arrays))
    passages = cast("dict[str, Passages]", _put_together(part["passages"], content.arrays))
    return Snapshot(documents, (segment,), passages)


def _take_apart(value: object, name: str, arrays: dict[str, Array]) -> object:
    """Return a value as JSON has it, with arrays replaced by their names."""
    if isinstance(value, np.ndarray):
        arrays[name] = cast("Array", value)
        return {"array": name}
    kind = type(value).__name__
    if kind in _NESTED:
        held = {each.name: getattr(value, each.name) for each in fields(_NESTED[kind])}
        return {"of": kind, "fields": _take_each(held, name, arrays)}
    if isinstance(value, Mapping):
        return {"named": _take_each(cast("Mapping[str, object]", value), name, arrays)}
    return {"value": value}


def _take_each(values: Mapping[str, object], name: str, arrays: dict[str, Array]) -> dict[str, object]:
    return {key: _take_apart(value, f"{name}.{at}", arrays) for at, (key, value) in enumerate(values.items())}


def _put_together(described: Mapping[str, Any], arrays: Mapping[str, Array]) -> object:
    if "array" in described:
        return arrays[described["array"]]
    if "of" in described:
        held = {name: _put_together(each, arrays) for name, each in described["fields"].items()}
        return _NESTED[described["of"]](**held)
    if "named" in described:
        return {name: _put_together(each, arrays) for name, each in described["named"].items()}
    return described["value"]
