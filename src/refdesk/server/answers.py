"""What goes back to a caller, the same on every face: answers and errors as plain JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk.server import strict_json

if TYPE_CHECKING:
    from pydantic import BaseModel

    from refdesk import errors
    from refdesk.core.operations import ErrorFormat


def to_json(answer: BaseModel) -> dict[str, Any]:
    """Return an answer as its contract writes it: null fields are left out, unless its model says otherwise."""
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


def to_text(value: object) -> str:
    """Return a value as compact JSON."""
    return strict_json.dump(value)


def error_to_json(error: errors.RefdeskError, form: ErrorFormat) -> dict[str, Any]:
    """Return an error in its toolset's form: `{"error": {code, message, details?}}` or flat `{error, detail}`."""
    if form == "flat":
        return {"error": error.code, "detail": error.message}
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.details:
        body["details"] = error.details
    return {"error": body}
