"""What the desk tells forwarders about its tools, so that they know what to do if it ends during a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk import errors
from refdesk.server import answers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refdesk.core.operations import Operation, Toolset

TOKEN = "client_token"


def describe_calls(offered: Iterable[tuple[Toolset, Sequence[Operation]]]) -> dict[str, object]:
    """Return which of the offered tools change nothing, which take an idempotency key, and what to answer for each tool
    that writes if it is unknown whether a call was carried out."""
    reads, keyed, unsure = list[str](), dict[str, str](), dict[str, object]()
    for toolset, operations in offered:
        looks = [operation.name for operation in operations if operation.effects.read_only]
        reads += looks
        keyed |= {operation.name: key for operation in operations if (key := _find_key(operation))}
        writes = [operation for operation in operations if not operation.effects.read_only]
        unsure |= {operation.name: _describe_unsure(toolset, operation, looks) for operation in writes}
    return {"reads": reads, "keyed": keyed, "unsure": unsure}


def describe_failure(error: errors.RefdeskError) -> dict[str, object]:
    """Return an error in the form in which the command line receives it."""
    return {"failed": {"type": type(error).__name__, "message": error.message, "details": error.details}}


def _find_key(operation: Operation) -> str | None:
    field = operation.input.model_fields.get(TOKEN)
    return (field.alias or TOKEN) if field is not None else None


def _describe_unsure(toolset: Toolset, operation: Operation, reads: Sequence[str]) -> dict[str, Any]:
    """Return the MCP result of a call that may or may not have been carried out."""
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
