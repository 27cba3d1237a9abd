"""MCP descriptions of tools, resources and templates, as clients list them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types

from refdesk.core import contracts

if TYPE_CHECKING:
    from refdesk.core.operations import Operation, Resource, ResourceTemplate, Toolset

JSON = "application/json"

_NOISE = frozenset(
    {"description", "additionalProperties", "required", "examples", "format"}
    | {"minLength", "maxLength", "minimum", "maximum", "maxItems"}
)


def describe_tool(operation: Operation) -> types.Tool:
    """Return what tools/list says of an operation."""
    effects = operation.effects
    return types.Tool(
        name=operation.name,
        title=operation.title,
        description=operation.description,
        input_schema=_lean_input(contracts.get_input_schema(operation.input)),
        output_schema=_lean(contracts.get_output_schema(operation.output)),
        annotations=types.ToolAnnotations(
            read_only_hint=effects.read_only,
            destructive_hint=effects.destructive,
            idempotent_hint=effects.idempotent,
            open_world_hint=effects.open_world,
        ),
    )


def describe_resource(resource: Resource) -> types.Resource:
    """Return what resources/list says of a resource."""
    return types.Resource(uri=resource.uri, name=resource.name, description=resource.description, mime_type=JSON)


def describe_template(template: ResourceTemplate) -> types.ResourceTemplate:
    """Return what resources/templates/list says of a template."""
    return types.ResourceTemplate(
        uri_template=template.uri, name=template.name, description=template.description, mime_type=JSON
    )


def server_name(toolsets: tuple[Toolset, ...]) -> str:
    """Return the label: the toolset's own when it is served alone."""
    return toolsets[0].name if len(toolsets) == 1 else "refdesk"


def instructions(toolsets: tuple[Toolset, ...]) -> str:
    """Return the few sentences a client may show its model."""
    return "\n".join(f"{toolset.name}: {toolset.description}" for toolset in toolsets)


def _lean_input(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of arguments without its model's description: the tool has one of its own."""
    return {key: value for key, value in schema.items() if key != "description"}


def _lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an output schema without what costs a model tokens and adds nothing: field names are self-explanatory.

    Nothing is required and objects are left open, so that a client that kept the schema is not broken by a change of
    fields. The contracts have it whole.
    """
    return {key: _lean_part(key, value) for key, value in schema.items() if key not in _NOISE}


def _lean_part(key: str, value: object) -> object:
    if key == "properties":
        fields = cast("Mapping[str, Mapping[str, Any]]", value)
        return {name: _lean(field) for name, field in fields.items()}
    return _lean(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
