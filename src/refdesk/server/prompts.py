"""The prompts of a desk: tasks that users pick from a menu; listed, filled in and completed as the protocol defines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mcp_types as types

from refdesk import errors
from refdesk.server import strict_json

if TYPE_CHECKING:
    from refdesk.core.operations import Completions, Operation, Prompt, PromptArgument, Toolset
    from refdesk.server.calls import Caller

MOST_CHARACTERS = 4_000
"""Most characters of each argument that a user fills in."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts whose tools are all offered.

    Attributes:
        known: The prompts by name, each with its toolset and the operations that it needs.
    """

    known: Mapping[str, tuple[Prompt, Toolset, tuple[Operation, ...]]]

    def list(self, caller: Caller) -> list[types.Prompt]:
        """Return the prompts that a caller may use, in the table's order."""
        return [
            describe_prompt(prompt)
            for prompt, _, operations in self.known.values()
            if all(caller.may_run(operation) for operation in operations)
        ]

    def require(self, caller: Caller, name: str) -> None:
        """Check that a caller may use a prompt, if there is one of that name; errors as in `require_operation`."""
        if name in self.known:
            for operation in self.known[name][2]:
                caller.require_operation(operation)

    def write(self, caller: Caller, name: str, filled: Mapping[str, str]) -> types.GetPromptResult:
        """Return a prompt, filled in.

        Raises:
            InvalidInputError: There is no such prompt, or an argument is missing, unknown or too long.
            PermissionDeniedError: The caller may not call one of its tools.
        """
        prompt = self._get(name)
        self.require(caller, name)
        text = prompt.writer(_check(prompt, filled))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def complete(self, caller: Caller, name: str, argument: str, written: str) -> Completions | None:
        """Return completions of a partly written argument; `None` if it is free text.

        Raises:
            InvalidInputError: There is no such prompt or argument.
            RefdeskError: Completing failed.
        """
        prompt = self._get(name)
        self.require(caller, name)
        asked = next((each for each in prompt.arguments if each.name == argument), None)
        if asked is None:
            raise errors.InvalidInputError(f"{name} has no argument {argument[:80]!r}; {_name(prompt.arguments)}.")
        if asked.completer is None:
            return None
        completer, (_, toolset, operations) = asked.completer, self.known[name]
        strict_json.check(written)
        scopes = frozenset(scope for operation in operations for scope in operation.scopes)
        return await caller.ask(toolset.name, f"prompt {name}", scopes, lambda context: completer(context, written))

    def _get(self, name: str) -> Prompt:
        if name not in self.known:
            raise errors.InvalidInputError(f"Unknown prompt: {name[:80]!r}; call prompts/list for the names.")
        return self.known[name][0]


def collect_prompts(toolsets: Iterable[Toolset], offered: Iterable[str]) -> Prompts:
    """Return the prompts of toolsets whose tools are all among those offered."""
    offered_names, known = set(offered), dict[str, "tuple[Prompt, Toolset, tuple[Operation, ...]]"]()
    for toolset in toolsets:
        for prompt in toolset.prompts:
            if offered_names.issuperset(prompt.tools):
                known[prompt.name] = prompt, toolset, tuple(filter(None, map(toolset.find, prompt.tools)))
    return Prompts(known)


def describe_prompt(prompt: Prompt) -> types.Prompt:
    """Return what prompts/list says of a prompt."""
    return types.Prompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=[
            types.PromptArgument(name=each.name, description=each.description, required=each.is_required)
            for each in prompt.arguments
        ],
    )


def _check(prompt: Prompt, filled: Mapping[str, str]) -> dict[str, str]:
    strict_json.check(dict(filled))
    known = {each.name: each for each in prompt.arguments}
    for name, text in filled.items():
        if name not in known:
            raise errors.InvalidInputError(f"{name[:80]!r} is no argument of {prompt.name}; {_name(prompt.arguments)}.")
        if len(text) > MOST_CHARACTERS:
            raise errors.InvalidInputError(f"`{name}` must have at most {MOST_CHARACTERS} characters.")
    given = {name: text.strip() for name, text in filled.items() if text.strip()}
    missing = [each.name for each in prompt.arguments if each.is_required and each.name not in given]
    if missing:
        raise errors.InvalidInputError(f"`{missing[0]}` is required.", details={"fields": [*missing]})
    return given


def _name(arguments: Iterable[PromptArgument]) -> str:
    return f"the arguments are {', '.join(each.name for each in arguments)}"
