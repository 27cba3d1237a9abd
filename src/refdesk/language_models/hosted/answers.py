"""Structured output of hosted models: the JSON Schema that is requested and the validation of the answer."""

from __future__ import annotations

from typing import Any, TypeVar

import regex
from pydantic import BaseModel, ConfigDict, Field, ValidationError

MAX_ITEMS = 200
MAX_TEXT = 8000

_FENCE = regex.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", regex.DOTALL)


class UnusableAnswerError(ValueError):
    """The answer violates the schema; the message says how and may be shown to the model."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", str_max_length=MAX_TEXT)


class Reworded(_Answer):
    """An induced step, as a model words it; `evidence` are the ids of the pieces that support the wording."""

    id: str
    evidence: list[str] = Field(max_length=MAX_ITEMS)
    do: str = Field(min_length=1)
    check: str
    say: str


class Writing(_Answer):
    """An induced skill, as a model words it."""

    title: str
    problem: str
    goal: str
    steps: list[Reworded] = Field(min_length=1, max_length=MAX_ITEMS)


FormT = TypeVar("FormT", bound=BaseModel)


def parse(text: str, form: type[FormT]) -> FormT:
    """Return a model's answer, with or without a code fence around it.

    Raises:
        UnusableAnswerError: It is not JSON, or not of that form.
    """
    fenced = _FENCE.match(text)
    try:
        return form.model_validate_json(fenced[1] if fenced else text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UnusableAnswerError(f"{place}: {first['msg']}" if place else first["msg"]) from error


def get_schema(form: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a form in the subset that every service takes: all required, no refs, no limits."""
    schema = form.model_json_schema()
    return _simplify(schema, schema.get("$defs", {}))


def _simplify(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _simplify(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if schema["type"] == "object":
        properties = {name: _simplify(value, definitions) for name, value in schema["properties"].items()}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    if schema["type"] == "array":
        return {"type": "array", "items": _simplify(schema["items"], definitions)}
    return {"type": schema["type"]}
