"""Exact schemas of what REST accepts, for generated clients and for tools that validate.

Agents are shown shorter ones, which do not list null among the types, although many fields take it to mean that they
are left out, and which have no keywords for constraints that an error explains well enough.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import BaseModel, ValidationError

from refdesk.core import contracts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LEFT_OUT = "missing"
"""The type of pydantic's error for a missing required field."""


def get_body_schema(model: type[BaseModel]) -> contracts.Schema:
    """Return the schema of arguments that are sent as JSON."""
    return _allow_nulls(get_parameter_schema(model), model)


def get_parameter_schema(model: type[BaseModel]) -> contracts.Schema:
    """Return the schema of arguments in a URL, where there is no null."""
    return contracts.get_input_schema(model, is_exact=True)


def _allow_nulls(schema: Mapping[str, Any], model: type[BaseModel]) -> contracts.Schema:
    properties = dict(schema["properties"])
    for field_name, field in model.model_fields.items():
        name = field.validation_alias if isinstance(field.validation_alias, str) else field_name
        nested = next(_find_models(field.annotation), None)
        if nested is not None:
            properties[name] = _allow_nulls_within(properties[name], nested)
        if _takes_null(model, name):
            properties[name] = _allow_null(properties[name])
    return {**schema, "properties": properties}


def _allow_nulls_within(schema: Mapping[str, Any], model: type[BaseModel]) -> contracts.Schema:
    """Return the schema of a field whose type is the model or a list of it."""
    if "items" in schema:
        return {**schema, "items": _allow_nulls(schema["items"], model)}
    return _allow_nulls(schema, model)


def _find_models(annotation: object) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _find_models(part)


def _takes_null(model: type[BaseModel], name: str) -> bool:
    """Return whether the model takes null for a field: if that is all it is given, it complains only of missing
    fields."""
    try:
        model.model_validate({name: None}, by_alias=True, by_name=False)
    except ValidationError as error:
        return all(each["type"] == _LEFT_OUT and each["loc"] != (name,) for each in error.errors())
    return True


def _allow_null(schema: Mapping[str, Any]) -> contracts.Schema:
    if "type" not in schema:
        return {"anyOf": [*cast("list[object]", schema.get("anyOf", [schema])), {"type": "null"}]}
    values = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **values}
