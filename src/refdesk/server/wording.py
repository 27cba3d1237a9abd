"""Rewrites a validation error as one sentence that says what to send instead, without echoing the input."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from refdesk import errors
from refdesk.core import contracts
from refdesk.kit.nearest import find_nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

MOST_PROBLEMS = 5
"""Most problems that are listed; further ones are only counted, since a caller fixes the first ones first."""

_MOST_PATH = 120

_WORDS = {
    "Input should": "must",
    "String should": "must",
    "List should": "must",
    "Tuple should": "must",
    "Dictionary should": "must",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}


def invalid_input(error: ValidationError, model: type[BaseModel]) -> errors.InvalidInputError:
    """Return the error that a caller sees: the first problems in the message, and their fields in `details`."""
    schema = contracts.get_input_schema(model)
    # Optional fields also take null, but callers should not be told to send it.
    found = [problem for problem in error.errors(include_url=False) if problem["type"] != "none_required"]
    sentences = [_sentence(problem, schema) for problem in found]
    return _refuse(sentences, [_path(problem, schema) for problem in found if problem["loc"]])


def wrong_types(faults: Sequence[tuple[str, str]]) -> errors.InvalidInputError:
    """Return the error that a caller sees for values of wrong types, each given as a path and the rest of a sentence on
    it."""
    paths = [path[:_MOST_PATH] for path, _ in faults]
    return _refuse([f"`{path}` {rest}." for path, (_, rest) in zip(paths, faults, strict=True)], paths)


def _refuse(told: Sequence[str], paths: Sequence[str]) -> errors.InvalidInputError:
    sentences, fields = list(dict.fromkeys(told)), list(dict.fromkeys(paths))[:MOST_PROBLEMS]
    message = " ".join(sentences[:MOST_PROBLEMS])
    if len(sentences) > MOST_PROBLEMS:
        message += f" And {len(sentences) - MOST_PROBLEMS} more."
    return errors.InvalidInputError(message, details={"fields": fields} if fields else None)


def _sentence(problem: ErrorDetails, schema: Mapping[str, Any]) -> str:
    field = f"`{_path(problem, schema)}`"
    if problem["input"] is None and problem["loc"]:
        return f"{field} must not be null: give a value, or leave it out where it has a default."
    match problem["type"]:
        case "missing":
            return f"{field} is required."
        case "extra_forbidden":
            return _ended(f"{field} is not an argument; {_known(problem['loc'], schema)}")
        case "enum" | "literal_error":
            return f"{field} must be one of {problem.get('ctx', {})['expected']}{_guess(problem) or '.'}"
        case "datetime_parsing" | "datetime_from_date_parsing" | "datetime_object_invalid":
            return f"{field} is no instant: write 2026-03-31T12:00:00Z."
        case "model_type" | "dict_type" | "model_attributes_type":
            return f"{field} must be an object."
        case "value_error" | "assertion_error" if not problem["loc"]:
            return _ended(_plain(problem["msg"]))
        case _:
            return _ended(f"{field} {_plain(problem['msg'])}")


def describe_unknown_tool(name: str, offered: Iterable[str], *, is_operation: bool) -> str:
    """Return what to do about a tool that is not offered.

    Args:
        name: The name that the client sent.
        offered: Names of the tools that are offered.
        is_operation: Whether the server nevertheless has an operation of that name.
    """
    shown = f"Unknown tool: {name[:_MOST_PATH]!r}"
    if is_operation:
        return f"{shown}; this server does not offer it, one started with --tools all does."
    near = find_nearest(name[:_MOST_PATH].casefold(), offered)
    return (
        f"{shown}; did you mean {near[0]}? tools/list has all names." if near else f"{shown}; tools/list has the names."
    )


def _guess(problem: ErrorDetails) -> str:
    """Return a hint at the allowed value whose spelling is closest to what was sent; empty if none is close."""
    known = re.findall(r"'([^']+)'", problem.get("ctx", {})["expected"])
    near = find_nearest(str(problem["input"])[:_MOST_PATH].casefold(), known)
    return f": did you mean '{near[0]}'?" if near else ""


def _plain(message: str) -> str:
    """Return pydantic's message, reworded so that it can follow the field's name."""
    text = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    for theirs, ours in _WORDS.items():
        text = text.replace(theirs, ours)
    return text


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _path(problem: ErrorDetails, schema: Mapping[str, Any]) -> str:
    """Return the path of the problem in what the caller wrote; pydantic's location also names branches of unions."""
    *outer, last = problem["loc"] or ("",)
    is_new = problem["type"] == "extra_forbidden"
    path = ""
    for part in (*outer, last):
        inner = _step(schema, part)
        if inner is None and not (is_new and part is last):
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
        schema = inner or {}
    return path.replace("\x00", "?")[:_MOST_PATH]


def _step(schema: Mapping[str, Any], part: int | str) -> Mapping[str, Any] | None:
    return schema.get("items") if isinstance(part, int) else schema.get("properties", {}).get(part)


def _known(location: Sequence[int | str], schema: Mapping[str, Any]) -> str:
    for part in location[:-1]:
        schema = _step(schema, part) or schema
    names = list(schema.get("properties", {}))
    near = difflib.get_close_matches(str(location[-1]), names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"the arguments are {', '.join(names)}" if names else "remove it"
