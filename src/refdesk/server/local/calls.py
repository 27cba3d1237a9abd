"""What the desk tells forwarders of its tools, so that they know what to do when it ends during a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk import errors
from refdesk.server import answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.operations import Operation, Toolset

TOKEN = "client_token"


def describe_calls(toolsets: Sequence[Toolset]) -> dict[str, object]:
    """Return which tools change nothing, which take an idempotency key, and what to answer for each of the others."""
    operations = [(toolset, operation) for toolset in toolsets for operation in toolset.operations]
    return {
        "reads": [operation.name for _, operation in operations if operation.effects.read_only],
        "keyed": {operation.name: alias for _, operation in operations if (alias := _find_key(operation))},
        "unsure": {
            operation.name: _describe_unsure(toolset, operation)
            for toolset, operation in operations
            if not operation.effects.read_only
        },
    }


def describe_failure(error: errors.RefdeskError) -> dict[str, object]:
    """Return an error as the command line is answered it."""
    return {"failed": {"type": type(error).__name__, "message": error.message, "details": error.details}}


def _find_key(operation: Operation) -> str | None:
    field = operation.input.model_fields.get(TOKEN)
    return (field.alias or TOKEN) if field is not None else None


def _describe_unsure(toolset: Toolset, operation: Operation) -> dict[str, Any]:
    """Return the result, as MCP has it, of a call that may have been carried out or not."""
    reads = [each.name for each in toolset.operations if each.effects.read_only]
    key = _find_key(operation)
    with_key = f" With a {key} it would have been repeated for you." if key else ""
    error = errors.WorldError(
        f"The desk ended while {operation.name} ran: what it was to write may have been written, or not. "
        f"Look for it with {' or '.join(reads)} before you call again.{with_key}"
    )
    text = answers.to_text(answers.error_to_json(error, toolset.error_format))
    return {
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {"refdesk/code": toolset.error_format.name(error.code)},
    }
