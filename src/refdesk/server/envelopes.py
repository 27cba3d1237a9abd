"""Checks whether a JSON value is a JSON-RPC message as MCP defines it, on every transport."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSIONS_WITH_BATCHES = frozenset({"2024-11-05", "2025-03-26"})
MOST_TOGETHER = 50
"""Most messages in one batch."""

MOST_ID_LENGTH = 256
NOTHING = object()
"""What `parse` returns for text that is not JSON; `None` stands for null."""

NO_JSON = "Parse error: send one JSON-RPC message, as strict JSON in UTF-8."


def parse(text: str | bytes) -> object:
    """Return the value of a JSON text, or `NOTHING`; it must be UTF-8 without lone surrogates and byte order mark.

    What Python reads although it is not JSON, such as NaN, is refused later, when a tool's arguments are checked.
    """
    try:
        # Given bytes, Python would also read UTF-16, UTF-32 and lone surrogates, which later readers do not.
        decoded = text.decode() if isinstance(text, bytes) else text
        value: object = json.loads(decoded)
        if "\\ud" in decoded.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return NOTHING
    return value


def find_problem(value: object) -> types.JSONRPCError | None:
    """Return the error for a value that is not a message; `None` for a message."""
    if not isinstance(value, dict):
        return refuse(None, types.INVALID_REQUEST, "A message is one JSON object.")
    message = cast("dict[str, Any]", value)
    words = _find_words(message)
    if words:
        return refuse(message.get("id"), types.INVALID_REQUEST, words)
    if isinstance(message.get("params", {}), dict) or "method" not in message:
        return None
    words = "`params` must be an object; leave it out if there are none."
    return refuse(message.get("id"), types.INVALID_PARAMS, words)


def find_batch_problem(batch: Sequence[object], version: str | None) -> types.JSONRPCError | None:
    """Return what is wrong with a batch as a whole in a session of this revision; `None` if it can be served."""
    if version not in VERSIONS_WITH_BATCHES:
        return refuse(None, types.INVALID_REQUEST, "This protocol revision has no batches: send one message at a time.")
    if not 0 < len(batch) <= MOST_TOGETHER:
        return refuse(None, types.INVALID_REQUEST, f"A batch holds 1 to {MOST_TOGETHER} messages; send fewer at once.")
    methods = [cast("dict[str, Any]", each).get("method") for each in batch if isinstance(each, dict)]
    if "initialize" in methods:
        return refuse(None, types.INVALID_REQUEST, "`initialize` stands alone: send it in no batch.")
    return None


def get_wanted_version(message: Mapping[str, Any]) -> str | None:
    """Return the revision that an `initialize` asks for."""
    params: object = message.get("params")
    version: object = cast("dict[str, Any]", params).get("protocolVersion") if isinstance(params, dict) else None
    return version if isinstance(version, str) else None


def refuse(id: object, code: int, words: str, data: object = None) -> types.JSONRPCError:
    """Return an error in reply to a message."""
    known = cast("types.RequestId", id) if _is_id(id) else None
    return types.JSONRPCError(jsonrpc="2.0", id=known, error=types.ErrorData(code=code, message=words, data=data))


def _find_words(message: Mapping[str, Any]) -> str | None:
    if message.get("jsonrpc") != "2.0":
        return '`jsonrpc` must be "2.0".'
    if "id" in message and not _is_id(message["id"]) and not (message["id"] is None and "error" in message):
        return f"`id` must be an integer or a text of at most {MOST_ID_LENGTH} characters; omit it in notifications."
    if "method" in message:
        is_named = isinstance(message["method"], str) and _is_unicode(message["method"])
        return None if is_named else "`method` must be a text that names a method."
    if "id" in message and ("result" in message) != ("error" in message):
        return None
    return "A message has a `method`, or an `id` with a `result` or an `error`."


def _is_id(id: object) -> bool:
    if isinstance(id, str):
        return len(id) <= MOST_ID_LENGTH and _is_unicode(id)
    return isinstance(id, int) and not isinstance(id, bool) and abs(id) < 2**63


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written in UTF-8: JSON can express lone surrogates, which belong to no character."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
