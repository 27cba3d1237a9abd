"""The reference pages, written from the code. `REFDESK_UPDATE_SNAPSHOTS=1 make test` accepts what they are now."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import click

from refdesk import errors
from refdesk.cli import cli
from refdesk.core import contracts
from refdesk.core.operations import Operation, Prompt, Resource, Toolset
from refdesk.factories.toolsets import describe_toolsets
from refdesk.server.replies import status_of
from refdesk.settings import compose, variable
from tests.meta.test_errors import leaves

Row = Sequence[str]


def render_settings() -> str:
    """Return the page of settings: name, default, sentence."""
    rows = [
        (f"`{variable(name)}`", _default(field.default), field.description or "")
        for name, field in compose().model_fields.items()
    ]
    return _page(
        "Settings",
        "Every setting is an environment variable, or the key of its name in the config file, in lower case and "
        "without `REFDESK_` ([how-to](../how-to/configure.md)); none is needed. A malformed one ends the command with "
        "a sentence that names it.",
        _table(("Variable", "Default", "What it is"), rows),
    )


def render_errors() -> str:
    """Return the page of errors: code, status, when."""
    rows = [
        (f"`{leaf.code}`", str(status_of(leaf("x"))), (inspect.getdoc(leaf) or "").split("\n\n")[0].replace("\n", " "))
        for leaf in sorted(leaves(errors.RefdeskError), key=lambda leaf: leaf.code)
    ]
    return _page(
        "Errors",
        "An error says what to do next. Over MCP it is a tool result with `isError`, whose text is the same JSON that "
        'REST answers under the status given here: nested `{"error": {"code", "message", "details"}}`, and for '
        '`skills` flat `{"error", "detail"}`. Anything unforeseen is `INTERNAL_ERROR` (500) with a number; the '
        "log has the rest.",
        _table(("Code", "HTTP", "When"), rows),
    )


def render_commands() -> str:
    """Return the page of the command line: each command's own help."""
    parts: list[str] = []
    for path, command in _walk(cli, ("refdesk",)):
        settings: dict[str, Any] = {**cli.context_settings, "max_content_width": 100, "terminal_width": 100}
        context = click.Context(command, info_name=" ".join(path), **settings)
        parts.append(f"## {' '.join(path)}\n\n```text\n{command.get_help(context)}\n```")
    return _page("Command line", "What `--help` says.", "\n\n".join(parts))


def render_toolset(toolset: Toolset) -> str:
    """Return the page of a toolset: its tools, resources and prompts, with all that belongs to each."""
    parts = [_render_operation(operation) for operation in toolset.operations]
    parts += [_render_resource(resource) for resource in toolset.resources]
    parts += [_render_prompt(prompt) for prompt in toolset.prompts]
    return _page(toolset.name, toolset.description, "\n\n".join(parts))


def pages() -> Mapping[str, Callable[[], str]]:
    """Return how each page is written, by file name."""
    toolsets = {f"tools-{toolset.name}.md": toolset for toolset in describe_toolsets()}
    return {
        "settings.md": render_settings,
        "errors.md": render_errors,
        "command-line.md": render_commands,
        **{name: (lambda toolset=toolset: render_toolset(toolset)) for name, toolset in toolsets.items()},
    }


def _render_operation(operation: Operation) -> str:
    arguments = cast("dict[str, dict[str, Any]]", contracts.get_input_schema(operation.input).get("properties", {}))
    answer = cast("dict[str, dict[str, Any]]", contracts.get_output_schema(operation.output).get("properties", {}))
    required = cast("list[str]", contracts.get_input_schema(operation.input).get("required", []))
    lines = [
        f"## `{operation.name}`",
        operation.description,
        f"REST: `{operation.route.method} {operation.route.path}` · scopes: {_scopes(operation)}",
        _table(("Argument", "Type", "Default", "What it is"), list(_rows(arguments, required))),
        _table(("In the answer", "Type", "What it is"), [(row[0], row[1], row[3]) for row in _rows(answer, ())]),
    ]
    if operation.errors:
        lines.append(_table(("Error", "When"), [(f"`{code}`", when) for code, when in operation.errors.items()]))
    return "\n\n".join(lines)


def _render_resource(resource: Resource) -> str:
    answer = cast("dict[str, dict[str, Any]]", contracts.get_output_schema(resource.output).get("properties", {}))
    return "\n\n".join(
        [
            f"## `{resource.uri}`",
            resource.description,
            f"REST: `{resource.route.method} {resource.route.path}` · scopes: {_code(sorted(resource.scopes))}",
            _table(("In the answer", "Type", "What it is"), [(row[0], row[1], row[3]) for row in _rows(answer, ())]),
        ]
    )


def _render_prompt(prompt: Prompt) -> str:
    rows = [
        (f"`{each.name}`", "required" if each.is_required else "–", "yes" if each.completer else "–", each.description)
        for each in prompt.arguments
    ]
    return "\n\n".join(
        [
            f"## Prompt `{prompt.name}`",
            f"{prompt.title} {prompt.description}"
            if prompt.title[-1] in "?!"
            else f"{prompt.title}: {prompt.description}",
            f"Offered to whoever may call {_code(prompt.tools)}.",
            _table(("Argument", "Default", "Completed", "What it is"), rows),
        ]
    )


def _rows(properties: Mapping[str, Mapping[str, Any]], required: Sequence[str], prefix: str = "") -> Iterator[Row]:
    for name, schema in properties.items():
        default = "required" if name in required else _default(schema.get("default"))
        yield f"`{prefix}{name}`", _type(schema), default, str(schema.get("description", ""))
        inner = schema.get("properties") or cast("dict[str, Any]", schema.get("items", {})).get("properties", {})
        nested = cast("Mapping[str, Mapping[str, Any]]", inner)
        yield from _rows(nested, (), f"{prefix}{name}{'[]' if 'items' in schema else ''}.")


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if "items" in schema:
        return f"{_type(schema['items'])}[]"
    options = cast("list[Mapping[str, Any]]", schema.get("anyOf", []))
    name = " or ".join(_type(option) for option in options) if options else str(schema.get("type", "any"))
    limits = [
        f"{sign} {schema[key]}"
        for key, sign in (("minimum", "≥"), ("maximum", "≤"), ("minLength", "length ≥"), ("maxLength", "length ≤"))
        if key in schema
    ]
    return ", ".join([name, *limits])


def _default(value: object) -> str:
    if value is None or type(value).__name__ in {"PydanticUndefinedType", "FieldInfo"} or value in ((), []):
        return "–"
    if isinstance(value, tuple):
        return f"`{','.join(cast('tuple[str, ...]', value))}`"
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"


def _walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in sorted(command.list_commands(context)):
            if (each := command.get_command(context, name)) is not None:
                yield from _walk(each, (*path, name))


def _scopes(operation: Operation) -> str:
    return _code(sorted(operation.scopes)) or f"any of {_code(sorted(operation.any_scopes))}"


def _code(values: Sequence[str]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _table(head: Row, rows: Sequence[Row]) -> str:
    cells = [" | ".join(cell.replace("\n", " ") for cell in row) for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {line} |" for line in cells)


def _page(title: str, lead: str, body: str) -> str:
    note = "<!-- Written by tests/meta/reference.py: `make docs` writes it anew. -->"
    return f"# {title}\n\n{note}\n\n{lead}\n\n{body}\n"
