"""Checks the types of arguments exactly against the schemas that callers see: nothing is converted.

The models alone would read `"5"` and `true` as numbers and a number as an instant. What can only come as text (a path,
a query parameter, an option of the command line) is first converted as its schema says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from refdesk.server import strict_json

Schema: TypeAlias = Mapping[str, Any]

_WORDS = {
    "integer": "must be a whole number",
    "number": "must be a number",
    "boolean": "must be true or false",
    "string": "must be a text",
    "array": "must be a list",
    "object": "must be an object",
}
_EXAMPLES = {"integer": 10, "number": 0.5}
_UNIT = re.compile(r"In [a-z]+")
_NO_INSTANT = "is no instant: write 2026-03-31T12:00:00Z"
_INSTANT = re.compile(r"\s*\d{4}-\d\d-\d\d(?!\d)")
_MOST_DIGITS = 18
_INTEGER = re.compile(rf"-?(?:0|[1-9][0-9]{{0,{strict_json.MAX_DIGITS - 1}}})")
_NUMBER = re.compile(
    rf"-?(?:0|[1-9][0-9]{{0,{_MOST_DIGITS - 1}}})(?:\.[0-9]{{1,{_MOST_DIGITS}}})?(?:[eE][+-]?[0-9]{{1,2}})?"
)


def find_faults(value: object, schema: Schema, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each value of a wrong type, and the rest of a sentence that says what it must be.

    Nulls, and values that the schema does not name, are left to the model. As in JSON Schema, 5.0 is a whole number.
    """
    kind = schema.get("type")
    if "anyOf" in schema and value is not None:
        yield from min((list(find_faults(value, each, path)) for each in schema["anyOf"]), key=len)
    if value is None or kind is None:
        return
    if not _is_of(kind, value):
        yield path, _tell(kind, value, schema)
    elif schema.get("format") == "date-time" and not _INSTANT.match(str(value)):
        yield path, _NO_INSTANT
    elif isinstance(value, Mapping):
        properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
        for name, inner in cast("Mapping[str, object]", value).items():
            yield from find_faults(inner, properties.get(name, {}), f"{path}.{name}" if path else name)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, inner in enumerate(cast("Sequence[object]", value)):
            yield from find_faults(inner, schema.get("items", {}), f"{path}[{index}]")


def read_texts(texts: Mapping[str, str], schema: Schema) -> dict[str, object]:
    """Return values that can only come as text, converted to the types of the schema's properties.

    A text that cannot be converted stays a text, for `find_faults` to report.
    """
    properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
    return {name: read_text(text, properties.get(name, {})) for name, text in texts.items()}


def read_text(text: str, schema: Schema) -> object:
    """Return one value, converted as by `read_texts`."""
    match schema.get("type"):
        case "integer" if _INTEGER.fullmatch(text):
            return int(text)
        case "number" if _NUMBER.fullmatch(text):
            return float(text)
        case "boolean" if text in ("true", "false"):
            return text == "true"
        case _:
            return text


def _is_of(kind: str, value: object) -> bool:
    match kind:
        case "integer":
            return isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, Sequence) and not isinstance(value, str)
        case _:
            return isinstance(value, Mapping)


def _tell(kind: str, value: object, schema: Schema) -> str:
    """Return what a value must be: its type, its unit if the description begins with it, and an example."""
    unit = _UNIT.match(str(schema.get("description", "")))
    example = next(iter(schema.get("examples", ())), _EXAMPLES.get(kind))
    parts = [
        _WORDS[kind],
        *([unit[0].lower()] if unit else []),
        *([f"such as {json.dumps(example, ensure_ascii=False)}"] if example is not None else []),
        *(["without quotes"] if isinstance(value, str) and _is_quoted(kind, value) else []),
    ]
    return ", ".join(parts)


def _is_quoted(kind: str, value: str) -> bool:
    return not isinstance(read_text(value, {"type": kind}), str)
