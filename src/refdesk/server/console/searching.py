"""The console's search: it asks all toolsets if several are served, else the only one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from refdesk import errors
from refdesk.server import calls
from refdesk.server.console.arranging import TEXTS, find_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import Response

    from refdesk.core.operations import Operation, Toolset
    from refdesk.server.console.visits import Visit

EVERYTHING = "search_everything"
MOST_RESULTS = 20
MOST_CHARACTERS = 1000
SNIPPET_CHARACTERS = 240


async def show_results(visit: Visit) -> Response:
    """Show what is found for the question of the address."""
    question = visit.query["q"].strip()
    chosen = [name for name in visit.request.query_params.getlist("in") if name in visit.site.searchable]
    toolset, operation = choose_search(visit.site.desk.toolsets)
    answer = await visit.ask(operation.name, make_arguments(operation, question, chosen))
    values = {
        "question": question,
        "chosen": chosen,
        "notice": answer.get("notice", ""),
        "results": list_results(toolset, operation, answer),
        "coverage": answer.get("coverage", []),
    }
    return visit.show("search.html", values)


def choose_search(toolsets: Sequence[Toolset]) -> tuple[Toolset, Operation]:
    """Return the search over everything, or else the first search there is, with its toolset.

    Raises:
        NotFoundError: Nothing that is served can be searched.
    """
    found = [
        (toolset, operation)
        for toolset in toolsets
        for operation in toolset.listed
        if operation.name.startswith("search_")
    ]
    if not found:
        raise errors.NotFoundError("Nothing that this server offers can be searched.")
    return next((pair for pair in found if pair[1].name == EVERYTHING), found[0])


def make_arguments(operation: Operation, question: str, chosen: Sequence[str]) -> dict[str, object]:
    """Return the arguments of a search, those that it has, by its own names for them."""
    known = cast("Mapping[str, object]", calls.get_schema(operation.input)["properties"])
    wanted: dict[str, object] = {
        "query": question[:MOST_CHARACTERS],
        "limit": MOST_RESULTS,
        "top_k": MOST_RESULTS,
        "toolsets": list(chosen),
    }
    return {name: value for name, value in wanted.items() if name in known and value != []}


def list_results(toolset: Toolset, operation: Operation, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what was found, each in the form of the search over everything."""
    if operation.name == EVERYTHING:
        return answer["results"]
    lists = [cast("list[Mapping[str, Any]]", value) for value in answer.values() if isinstance(value, list)]
    return [_describe(toolset, operation, thing) for thing in (lists[0] if lists else [])]


def _describe(toolset: Toolset, operation: Operation, thing: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        **{
            name: thing[name]
            for name in ("match", "author", "source", "confidence", "caution")
            if thing.get(name) is not None
        },
        "toolset": toolset.name,
        "title": find_text(thing, ("title", "name")),
        "snippet": find_text(thing, ("snippet", *TEXTS))[:SNIPPET_CHARACTERS],
        "read": _find_reader(toolset, operation, thing),
    }


def _find_reader(toolset: Toolset, operation: Operation, thing: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what reads a result whole: the toolset's own operation for that, or the search itself by id."""
    for template in toolset.templates:
        if template.operation.effects.read_only:
            id = thing.get(template.argument, thing.get("id"))
            return {"tool": template.operation.name, "arguments": {template.argument: id}}
    return {"tool": operation.name, "arguments": {"id": thing.get("id")}}
