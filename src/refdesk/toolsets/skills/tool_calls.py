"""Reads calls of tools, and what the tools answered, from the forms in which they are logged.

It understands the messages of OpenAI (`tool_calls`, `function_call`, items of the Responses API) and Anthropic
(`tool_use`, `tool_result`), records that name a tool and its arguments, and lines such as `refund(order="4471")`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import regex

from refdesk.playbooks import Turn

MAX_ANSWER = 2000
"""Code points of a tool's answer that are kept."""

_NAME_KEYS = ("name", "apiname", "api", "tool", "tool_name", "toolname", "function", "query", "action", "method")
_ARGUMENT_KEYS = ("arguments", "args", "input", "constraints", "parameters", "params", "tool_input", "kwargs")
_ANSWER_KEYS = ("item", "items", "result", "results", "output", "response", "answer", "data")
_LINE = regex.compile(
    r"^\s{0,8}(?:(?:→|->|call(?:s|ed)?:?)\s{0,3})?(?P<name>[A-Za-z_][\w.-]{1,60})\s?(?P<rest>[({].*)$"
)
_PAIR = regex.compile(r"""([\w .-]{1,60}?)\s?[=:]\s?("(?:[^"\\]|\\.)*"|'[^']*'|[^,]+?)\s*(?:,\s*|$)""")


def read_members(members: Mapping[str, object], text: str) -> list[Turn]:
    """Return the calls and answers in a message, given its members by lower-case key and, as `text`, its words."""
    return [*_read_listed(members.get("tool_calls")), *_read_parts(members.get("content")), *_read_own(members, text)]


def read_line(text: str) -> Turn | None:
    """Return the call in a line of a tool's log, such as `refund(order="4471")` or `refund {"order": 1}`, or `None`."""
    match = _LINE.match(text)
    if match is None:
        return None
    rest = match["rest"].strip()
    if rest.startswith("{"):
        arguments = _parse(rest)
        return make_call(match["name"], cast("object", arguments)) if isinstance(arguments, dict) else None
    if not rest.endswith(")"):
        return None
    inner = rest[1:-1].strip()
    pairs = {name.strip(): value.strip("\"' ") for name, value in _PAIR.findall(inner)}
    return make_call(match["name"], pairs) if pairs or not inner else None


def make_call(name: str, arguments: object) -> Turn:
    """Return the turn of a call; arguments given as text are parsed, and a list of mappings is merged into one."""
    known = _parse(arguments) if isinstance(arguments, str) else arguments
    members = list(_members_of(cast("list[object]", known) if isinstance(known, list) else [known]))
    flat = {key: value for item in members for key, value in item.items()}
    texts = {key: value if isinstance(value, str) else _write(value) for key, value in flat.items()}
    return Turn("system", json.dumps({key: text.strip('"') for key, text in texts.items()}, ensure_ascii=False), name)


def make_answer(value: object) -> Turn | None:
    """Return the turn of what a tool answered, or `None` if it answered nothing."""
    text = value if isinstance(value, str) else _write(value)
    return Turn("system", text[:MAX_ANSWER]) if text.strip() and value is not None else None


def _read_listed(calls: object) -> Iterator[Turn]:
    for call in _members_of(calls):
        function = call.get("function")
        found = cast("Mapping[str, object]", function) if isinstance(function, dict) else call
        name = found.get("name")
        if isinstance(name, str) and name:
            yield make_call(name, found.get("arguments") or found.get("input") or found.get("args"))


def _read_parts(parts: object) -> Iterator[Turn]:
    for part in _members_of(parts):
        kind, name = part.get("type"), part.get("name")
        if kind in {"tool_use", "tool_call", "function_call"} and isinstance(name, str):
            yield make_call(name, part.get("input") or part.get("args") or part.get("arguments"))
        elif kind in {"tool_result", "tool_response", "function_response"}:
            answer = make_answer(_join_texts(part.get("content") or part.get("output")))
            if answer is not None:
                yield answer


def _read_own(members: Mapping[str, object], text: str) -> Iterator[Turn]:
    """Yield what the message itself is: a call, if it names a tool and arguments, or the answer to one."""
    function = members.get("function_call")
    if isinstance(function, dict):
        yield from _read_listed([members["function_call"]])
        return
    if text:
        return
    arguments = next((members[key] for key in _ARGUMENT_KEYS if key in members), None)
    name = next((name for key in _NAME_KEYS if isinstance(name := members.get(key), str) and name), "")
    answer = next((members[key] for key in _ANSWER_KEYS if members.get(key) is not None), None)
    if arguments is not None and name and answer is None:
        # The name of the interface says more than what the log calls the act ("query").
        yield make_call(next((str(members[key]) for key in _NAME_KEYS[:5] if members.get(key)), name), arguments)
    elif answer is not None and (turn := make_answer(answer)) is not None:
        yield turn


def _members_of(value: object) -> Iterator[Mapping[str, object]]:
    for item in cast("Sequence[object]", value) if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield cast("Mapping[str, object]", item)


def _join_texts(value: object) -> object:
    texts = [text for part in _members_of(value) if isinstance(text := part.get("text"), str)]
    return "\n".join(texts) if texts else value


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _write(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
