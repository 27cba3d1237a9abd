"""What the asking commands share: filters from the command line, and one call through the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from refdesk.app import Desk
    from refdesk.core.operations import Operation, Toolset

_NO_FILTERS = frozenset({"query", "limit", "top_k", "offset", "semantic", "filters"})

filter_option = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A filter of the toolset, such as tags=Security; may be said more than once.",
)


def find_search(toolset: Toolset) -> Operation | None:
    """Return the toolset's search operation, if it has one."""
    return next((operation for operation in toolset.operations if operation.name.startswith("search_")), None)


def fit_searches(
    toolsets: Sequence[Toolset], arguments: Mapping[str, object], filters: Sequence[str]
) -> dict[str, tuple[Operation, dict[str, object]]]:
    """Return the search of each toolset with what it is asked, by toolset.

    A toolset that is asked alone gets every argument, and refuses what it does not know. Of several, each gets what it
    knows, up to its own limits; one that cannot do without a query or knows none of the filters is left out.

    Raises:
        InvalidInputError: A filter is no pair, or none of the toolsets has it.
    """
    searches = {toolset.name: operation for toolset in toolsets if (operation := find_search(toolset))}
    names = [_filter_name(pair) for pair in filters]
    known = {name: _find_filters(operation) for name, operation in searches.items()}
    for name in names:
        if not any(name in own for own in known.values()):
            choices = sorted({choice for own in known.values() for choice in own})
            raise errors.InvalidInputError(f"--filter takes NAME=VALUE, where NAME is one of {', '.join(choices)}.")
    if len(searches) > 1:
        searches = {name: operation for name, operation in searches.items() if known[name].keys() >= set(names)}
    given = {name: value for name, value in arguments.items() if value is not None}
    fitted = {
        name: (operation, {**_fit(operation, given, len(toolsets) == 1), **_gather(operation, filters)})
        for name, operation in searches.items()
    }
    return {name: pair for name, pair in fitted.items() if len(toolsets) == 1 or _is_complete(*pair)}


def _find_filters(operation: Operation) -> Mapping[str, Any]:
    """Return the schemas of what narrows a search: its `filters`, or its own arguments where it has none."""
    properties = _schema(operation)["properties"]
    own = {name: schema for name, schema in properties.items() if name not in _NO_FILTERS}
    return properties.get("filters", {}).get("properties", own)


def _filter_name(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    if not equals:
        raise errors.InvalidInputError("--filter takes NAME=VALUE.")
    return name


def _gather(operation: Operation, pairs: Iterable[str]) -> dict[str, object]:
    """Return the arguments that filters make; a list gathers its values."""
    known, gathered = _find_filters(operation), dict[str, Any]()
    for pair in pairs:
        name, _, value = pair.partition("=")
        if known[name].get("type") == "array":
            gathered.setdefault(name, []).append(value)
        else:
            gathered[name] = value
    has_filters = "filters" in _schema(operation)["properties"]
    return {"filters": gathered} if has_filters and gathered else gathered


def _fit(operation: Operation, arguments: Mapping[str, object], is_alone: bool) -> dict[str, object]:
    properties = _schema(operation)["properties"]
    if "top_k" in properties:
        arguments = {"top_k" if name == "limit" else name: value for name, value in arguments.items()}
    if is_alone:
        return dict(arguments)
    fitted = {name: value for name, value in arguments.items() if name in properties}
    for name, value in fitted.items():
        if isinstance(value, int) and "maximum" in properties[name]:
            fitted[name] = min(value, properties[name]["maximum"])
    return fitted


def _is_complete(operation: Operation, arguments: Mapping[str, object]) -> bool:
    return arguments.keys() >= set(_schema(operation).get("required", []))


def _schema(operation: Operation) -> dict[str, Any]:
    from refdesk.core import contracts

    return dict(contracts.get_input_schema(operation.input))


async def run(desk: Desk, operation: Operation, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return the answer of an operation, asked by whoever sits at this machine."""
    from refdesk.server.calls import Caller
    from refdesk.server.principals import local_principal

    caller = Caller(desk, local_principal(desk.settings, desk.toolsets, "cli"), "cli")
    return await caller.run(operation, arguments)


def configure_logging(level: str) -> None:
    """Let commands say on stderr only what is wrong, unless more is asked for."""
    from refdesk.server import logs

    logs.configure("debug" if level == "debug" else "error")
