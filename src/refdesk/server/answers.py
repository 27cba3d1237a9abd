"""Serialises results and errors to plain JSON values, identically for every transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from refdesk.core.operations import WARNINGS
from refdesk.server import strict_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel

    from refdesk import errors
    from refdesk.core.operations import ErrorFormat, HasChoice, HasCursors, HasMeta
    from refdesk.errors import Choice


def to_json(answer: BaseModel, *, keeps_markup: bool = False) -> dict[str, Any]:
    """Return an answer in the form of its contract: null fields are left out, unless its model says otherwise.

    Texts in it are data that others wrote; see `refdesk.core.sanitizer` for what is taken out of them.

    Args:
        answer: The answer of an operation.
        keeps_markup: Whether the recipient shows markup as text; if so, only what would be invisible is taken out.
    """
    from refdesk.core import sanitizer  # not at start-up, which its patterns would slow down

    value = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    return sanitizer.clean_json(value, sanitizer.drop_unseen if keeps_markup else sanitizer.clean)


def get_meta(answer: BaseModel) -> dict[str, Any]:
    """Return what accompanies an answer, as plain JSON values; usually nothing."""
    # Looked up on the type: an `isinstance` check against a protocol would cost more than everything else here.
    return dict(cast("HasMeta", answer).meta) if hasattr(type(answer), "meta") else {}


def get_choice(answer: BaseModel) -> Choice | None:
    """Return the choice by which a person may get a different answer; usually `None`."""
    return cast("HasChoice", answer).choice if hasattr(type(answer), "choice") else None


def get_cursors(answer: BaseModel) -> Sequence[str]:
    """Return how to go on behind each item of an answer that is a page of a list; empty for any other."""
    return cast("HasCursors", answer).cursors if hasattr(type(answer), "cursors") else ()


def get_warnings(meta: Mapping[str, Any]) -> list[str]:
    """Return the warnings in what accompanies an answer, each as one line: its code and its message."""
    return [f"{warning['code']}: {warning['message']}" for warning in meta.get(WARNINGS, ())]


def to_text(value: object) -> str:
    """Return a value as compact JSON."""
    return strict_json.dump(value)


def error_to_json(error: errors.RefdeskError, form: ErrorFormat) -> dict[str, Any]:
    """Return an error in its toolset's form: `{"error": {code, message, details?}}` or flat `{error, detail}`."""
    code = form.name(error.code)
    if form.is_flat:
        return {"error": code, "detail": error.message}
    body: dict[str, Any] = {"code": code, "message": error.message}
    if error.details:
        body["details"] = error.details
    return {"error": body}
