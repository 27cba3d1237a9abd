"""What the asking commands share: filters from the command line, and one call through the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from refdesk.app import Desk
    from refdesk.core.operations import Operation, Toolset

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


def parse_filters(operation: Operation, pairs: Iterable[str]) -> dict[str, Any]:
    """Return the `filters` argument of an operation; a list filter gathers its values.

    Raises:
        InvalidInputError: A pair has no `=`, or names a filter the operation does not have.
    """
    from refdesk.core import contracts

    schema: dict[str, Any] = dict(contracts.get_input_schema(operation.input))
    known = schema["properties"].get("filters", {}).get("properties", {})
    filters: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or name not in known:
            raise errors.InvalidInputError(f"--filter takes NAME=VALUE, where NAME is one of {', '.join(known)}.")
        if known[name].get("type") == "array":
            filters.setdefault(name, []).append(value)
        else:
            filters[name] = value
    return filters


async def run(desk: Desk, operation: Operation, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return the answer of an operation, asked by whoever sits at this machine; unset arguments are left out."""
    from refdesk.server.calls import Caller
    from refdesk.server.principals import local_principal

    caller = Caller(desk, local_principal(desk.settings, desk.toolsets, "cli"), "cli")
    return await caller.run(operation, {name: value for name, value in arguments.items() if value not in (None, {})})


def configure_logging(level: str) -> None:
    """Let commands say on stderr only what is wrong, unless more is asked for."""
    from refdesk.server import logs

    logs.configure("debug" if level == "debug" else "error")
