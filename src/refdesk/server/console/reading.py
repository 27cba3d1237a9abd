"""Pages of what an operation or a resource reads: a page made for that kind of thing, or one that fits any answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from refdesk import errors
from refdesk.core.sanitizer import clean_json
from refdesk.server import answers, calls, json_types
from refdesk.server.console import entries, notes, sections
from refdesk.server.console.arranging import arrange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import Response

    from refdesk.core.operations import Operation, Resource
    from refdesk.server.console.visits import Visit

CHOICES = frozenset({"compare", "did", "undo"})
"""What an address may say besides an operation's arguments."""


async def show_answer(visit: Visit) -> Response:
    """Show what an operation reads, with the arguments in the address."""
    operation = _find_reader(visit, visit.request.path_params["operation"])
    given = {name: value for name, value in visit.query.items() if name not in CHOICES}
    arguments = json_types.read_texts(given, calls.get_schema(operation.input))
    try:
        answer = await visit.call(operation.name, arguments)
    except errors.NotFoundError as error:
        return _explain_absence(visit, operation, given, error)
    thing = answer.value
    values: dict[str, Any] = {
        "toolset": visit.site.desk.find_toolset(operation),
        "operation": operation,
        "warnings": answers.get_warnings(answer.meta),
        "raw": _show_raw(thing),
        "sections": (),
    }
    page = entries.PAGES.get(operation.name)
    found = page.find(thing) if page is not None else None
    if page is None or found is None:
        return visit.show("read.html", {**values, "thing": arrange(thing, operation.title)})
    built = await sections.build(visit, page.sections, found)
    return visit.show(page.template, {**values, "thing": found, "sections": built})


def _explain_absence(
    visit: Visit, operation: Operation, given: Mapping[str, str], error: errors.NotFoundError
) -> Response:
    is_withdrawn = operation.name == notes.GET_KNOWLEDGE and (error.details or {}).get("state") == "withdrawn"
    if not (is_withdrawn and visit.may("restore_knowledge")):
        return visit.refuse(error)
    return visit.show("refused.html", {"error": error, "remedy": ("restore_knowledge", {"id": given["id"]})}, 404)


async def show_resource(visit: Visit) -> Response:
    """Show a resource."""
    toolset, name = visit.request.path_params["toolset"], visit.request.path_params["resource"]
    resource = next((each for each in _list_resources(visit, toolset) if name_resource(each.route.path) == name), None)
    if resource is None:
        raise errors.NotFoundError("This server has no such page.")
    answer = await visit.read(resource.uri)
    values: dict[str, object] = {
        "toolset": toolset,
        "operation": resource,
        "thing": arrange(answer, resource.name),
        "warnings": (),
        "sections": (),
        "raw": _show_raw(answer),
    }
    return visit.show("read.html", values)


def _show_raw(answer: Mapping[str, Any]) -> str:
    """Return an answer as agents read it, without the markup that the page shows to people."""
    return json.dumps(clean_json(answer), indent=2, ensure_ascii=False)


def name_resource(path: str) -> str:
    """Return the last part of a resource's address in REST, which is its name in the console's address."""
    return path.rpartition("/")[2]


def _list_resources(visit: Visit, name: str) -> Sequence[Resource]:
    toolset = visit.site.find_toolset(name)
    return toolset.resources if toolset is not None else ()


def _find_reader(visit: Visit, name: str) -> Operation:
    operation = visit.site.find_operation(name)
    if operation is None or not operation.effects.read_only:
        raise errors.NotFoundError("Only what reads has a page here.")
    return operation
