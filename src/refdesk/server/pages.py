"""The page of operations, and the assets of all pages. Everything is self-contained, so that it works offline."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, Response

from refdesk import __version__, errors
from refdesk.core import contracts
from refdesk.core.operations import NESTED
from refdesk.server.replies import reply_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.requests import Request

    from refdesk.core.operations import Operation, Resource, Route, Toolset

ASSETS = {
    "page.css": "text/css",
    "console.css": "text/css",
    "console.js": "text/javascript",
    "try.js": "text/javascript",
    "mark.svg": "image/svg+xml",
}

_HERE = "https://refdesk.invalid"
"""Stands for the server's URL until a client asks, since each may reach it by another."""

_BOUNDS = {
    "minimum": "from {}",
    "maximum": "to {}",
    "maxLength": "up to {} characters",
    "maxItems": "up to {} of them",
    "format": "a {}",
}
_KEY = (
    '<p><label class="key">API key, for trying things here; it goes nowhere else'
    '<input id="key" type="password" autocomplete="off" spellcheck="false" placeholder="refdesk_…"></label></p>'
)


async def asset(request: Request) -> Response:
    """Return a style sheet, script or picture of the pages."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return reply_error(errors.NotFoundError("No such address; see /docs for those there are."), NESTED)
    content = (files("refdesk.server") / "assets" / name).read_text("utf-8")
    return Response(content, media_type=ASSETS[name], headers={"cache-control": "no-cache"})


@dataclass(slots=True)
class Docs:
    """The page with every operation: arguments, schemas, examples, errors and a form to try it.

    Writing it takes half a second, and everybody may ask for it: it is written once.

    Attributes:
        toolsets: What is served.
        prefix: The path under which a proxy shows it.
        wants_keys: Whether callers need a key.
    """

    toolsets: Sequence[Toolset]
    prefix: str
    wants_keys: bool
    _written: str | None = None

    def show(self, url: str) -> Response:
        """Return the page; `url` is that by which the client reaches the server."""
        if self._written is None:
            self._written = _write(self.toolsets, self.prefix, wants_keys=self.wants_keys)
        return HTMLResponse(self._written.replace(_HERE, escape(url)), headers={"cache-control": "no-store"})


def _write(toolsets: Sequence[Toolset], prefix: str, *, wants_keys: bool) -> str:
    contents = "".join(_contents(toolset) for toolset in toolsets)
    sections = "".join(_toolset_section(toolset, _HERE) for toolset in toolsets)
    return _page(
        "refdesk: operations",
        f'<nav aria-label="Contents"><p><a href="{prefix}/">refdesk</a> {escape(__version__)}</p>{contents}'
        f'<p><a href="{prefix}/openapi.json">openapi.json</a></p></nav><main><h1>Operations</h1>'
        '<p class="lead">Each is an MCP tool and a REST route at once, from one table: the same arguments, '
        f"the same answers.</p>{_KEY if wants_keys else ''}{sections}</main>"
        f'<script src="{prefix}/assets/try.js" defer></script>',
        prefix,
    )


def _page(title: str, body: str, prefix: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="icon" href="{prefix}/assets/mark.svg">'
        f'<link rel="stylesheet" href="{prefix}/assets/page.css"></head><body class="docs">{body}</body></html>'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already; the first cell of each row is its heading."""
    heading = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    thead = f"<thead><tr>{heading}</tr></thead>" if head else ""
    return f'<div class="wide" tabindex="0"><table>{thead}<tbody>{body}</tbody></table></div>'


def _block(text: str) -> str:
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _prose(text: str) -> str:
    """Return a sentence as HTML; text between backticks is code."""
    return "".join(_code(part) if n % 2 else escape(part) for n, part in enumerate(text.split("`")))


def _contents(toolset: Toolset) -> str:
    items = "".join(
        f'<li><a href="#{escape(_anchor(entry.route))}">{escape(entry.name)}</a></li>'
        for entry in (*toolset.operations, *toolset.resources)
    )
    return f"<p><strong>{escape(toolset.name)}</strong></p><ul>{items}</ul>"


def _toolset_section(toolset: Toolset, url: str) -> str:
    addresses = {template.operation.name: template.uri for template in toolset.templates}
    operations = "".join(_operation(each, url, addresses.get(each.name)) for each in toolset.operations)
    resources = "".join(_resource(resource, url) for resource in toolset.resources)
    head = f'<h2 id="{escape(toolset.name)}">{escape(toolset.name)}</h2><p>{escape(toolset.description)}</p>'
    return f"<section>{head}{operations}{resources}</section>"


def _operation(operation: Operation, url: str, address: str | None) -> str:
    schema = contracts.get_input_schema(operation.input)
    examples = [json.dumps(example, indent=2, ensure_ascii=False) for example in operation.examples]
    return _article(
        operation.route,
        operation.title,
        f"MCP tool {_code(operation.name)}" + (f", resource template {_code(address)}" if address else ""),
        operation.description,
        "<h4>Arguments</h4>"
        + _arguments(schema)
        + ("<h4>Examples</h4>" + "".join(_block(example) for example in examples) if examples else "")
        + _errors(operation.errors)
        + _schema("Answer, as JSON Schema", contracts.get_output_schema(operation.output))
        + _schema("Arguments, as JSON Schema", schema)
        + _form(operation.route, url, examples[0] if examples else "{}"),
    )


def _resource(resource: Resource, url: str) -> str:
    return _article(
        resource.route,
        resource.name,
        f"MCP resource {_code(resource.uri)}",
        resource.description,
        _errors(resource.errors)
        + _schema("Answer, as JSON Schema", contracts.get_output_schema(resource.output))
        + _form(resource.route, url, None),
    )


def _article(route: Route, title: str, names: str, description: str, body: str) -> str:
    paragraphs = "".join(f"<p>{_prose(part)}</p>" for part in description.split("\n") if part.strip())
    return (
        f'<article id="{escape(_anchor(route))}"><h3>{escape(title)}</h3><p class="route">'
        f'<span class="method">{route.method}</span> {_code(route.path)}</p>'
        f'<p class="names">{names}</p>{paragraphs}{body}</article>'
    )


def _anchor(route: Route) -> str:
    return f"{route.method}{route.path}".lower().replace("/", "-")


def _arguments(schema: Mapping[str, Any]) -> str:
    rows = list(_argument_rows(schema, ""))
    return _table(["Name", "Type", "Default", "What it does"], rows) if rows else "<p>None.</p>"


def _argument_rows(schema: Mapping[str, Any], prefix: str) -> Iterable[Sequence[str]]:
    for name, inner in schema.get("properties", {}).items():
        is_required = name in schema.get("required", [])
        default = "required" if is_required else json.dumps(inner["default"]) if "default" in inner else ""
        description = inner.get("description", "")
        yield _code(prefix + name), escape(_type(inner)), escape(default), _prose(description)
        yield from _argument_rows(inner, f"{prefix}{name}.")


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type(branch) for branch in schema["anyOf"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        kind = f"list of {_type(schema.get('items', {}))}"
    return ", ".join([kind, *(words.format(schema[key]) for key, words in _BOUNDS.items() if key in schema)])


def _errors(codes: Mapping[str, str]) -> str:
    rows = [(_code(code), _prose(when)) for code, when in codes.items()]
    return f"<h4>Errors</h4>{_table([], rows)}" if rows else ""


def _schema(title: str, schema: Mapping[str, Any]) -> str:
    return f"<details><summary>{escape(title)}</summary>{_block(json.dumps(schema, indent=2))}</details>"


def _form(route: Route, url: str, example: str | None) -> str:
    label = f'<label>Arguments<textarea spellcheck="false" rows="7">{escape(example or "")}</textarea></label>'
    return (
        f'<form class="try" data-method="{route.method}" data-path="{escape(route.path)}"><h4>Try it</h4>'
        + (label if example is not None else "")
        + '<button type="submit">Send</button> <output class="took" aria-live="polite"></output>'
        '<pre class="answer" tabindex="0" hidden><code></code></pre>'
        f"<details><summary>From a terminal</summary>{_block(_curl(route, url, example))}</details></form>"
    )


def _curl(route: Route, url: str, example: str | None) -> str:
    arguments: dict[str, object] = json.loads(example or "{}")
    in_path = [name for name in arguments if f"{{{name}}}" in route.path]
    path = route.path.format(**{name: arguments.pop(name) for name in in_path})
    if route.method == "GET":
        return f"curl {url}{path}"
    data = shlex.quote(json.dumps(arguments, ensure_ascii=False))
    return f"curl {url}{path} \\\n  -H 'Content-Type: application/json' \\\n  -d {data}"
