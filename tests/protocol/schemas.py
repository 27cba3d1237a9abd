"""The forms and descriptions of the conformance suite's fixtures."""

from __future__ import annotations

from typing import Any

import mcp_types as types

TEXT = {"type": "string"}
CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def form(message: str, name: str, field: dict[str, Any]) -> types.ElicitRequest:
    schema = {"type": "object", "properties": {name: field}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(words: str, most: int) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=words))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


NAME = form("What is your name?", "name", TEXT)
NAME_FIRST = form("Step 1: What is your name?", "name", TEXT)
COLOUR = form("Step 2: What is your favorite color?", "color", TEXT)
CONFIRM = form("Please confirm", "ok", {"type": "boolean"})
CONTEXT = form("What context should the prompt use?", "context", TEXT)
CAPITAL = sampling("What is the capital of France?", 100)
GREETING = sampling("Generate a greeting", 50)
ROOTS = types.ListRootsRequest()

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
DEFAULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
TITLED = [{"const": f"value{n}", "title": title} for n, title in enumerate(("First", "Second", "Third"), start=1)]
OPTIONS = ["option1", "option2", "option3"]
ENUMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    "required": [],
}
WHOLE_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
INPUTS: dict[str, dict[str, Any]] = {
    "test_sampling": {"type": "object", "properties": {"prompt": TEXT}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": TEXT}, "required": ["message"]},
    "json_schema_2020_12_tool": WHOLE_2020_12,
    "test_x_mcp_header": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    },
}
ARGUMENTS = {
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
}


def describe(name: str) -> types.Tool:
    return types.Tool(
        name=name, description="A fixture.", input_schema=INPUTS.get(name, {"type": "object", "properties": {}})
    )


def describe_prompt(name: str) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=each, description="A fixture's argument.", required=True)
        for each in ARGUMENTS.get(name, ())
    ]
    return types.Prompt(name=name, description="A fixture.", arguments=arguments)
