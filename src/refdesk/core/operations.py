"""The operation table: operations and resources, grouped into toolsets; MCP, REST and the command line serve it.

What MCP lists by default is in the table from the start. The rest of a toolset, and with it every module that nothing
else needs, is loaded when it is first asked for, so that it does not slow down the start of a server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from pydantic import BaseModel

    from refdesk.core.context import Context
    from refdesk.core.search.providers import SearchProvider
    from refdesk.errors import Choice
    from refdesk.model import JsonValue

HttpMethod: TypeAlias = Literal["GET", "POST"]


@dataclass(frozen=True, slots=True)
class ErrorFormat:
    """How a toolset writes errors, as its contract defines them.

    Attributes:
        is_flat: Whether it is `{"error": code, "detail": message}` in place of
            `{"error": {"code", "message", "details"}}`.
        codes: The contract's own code for each code of refdesk's that the contract does not know.
    """

    is_flat: bool = False
    codes: Mapping[str, str] = field(default_factory=dict[str, str])

    def name(self, code: str) -> str:
        """Return the code that a caller sees for an error of refdesk's `code`."""
        return self.codes.get(code, code)


NESTED = ErrorFormat()
FLAT = ErrorFormat(is_flat=True)


class HasMeta(Protocol):
    """An answer that comes with something that is not part of its contract, such as a warning."""

    @property
    def meta(self) -> Mapping[str, object]:
        """What goes beside the answer, by namespaced name; MCP has `_meta` for it."""
        ...


class HasChoice(Protocol):
    """An answer that is not an error, but would be a different one if the user picked one of several values."""

    @property
    def choice(self) -> Choice | None:
        """What may be picked; usually nothing."""
        ...


class HasCursors(Protocol):
    """An answer that is a page of a list, and knows how to go on behind each of its items."""

    @property
    def cursors(self) -> Sequence[str]:
        """The cursor behind each item, in their order."""
        ...


WARNINGS = "refdesk/warnings"
"""Where in `meta` an answer carries its warnings: a list of objects with `code`, `message` and `details`."""


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of an operation, declared to clients as MCP annotations."""

    read_only: bool
    idempotent: bool
    destructive: bool = False
    open_world: bool = False


READS = Effects(read_only=True, idempotent=True)


@dataclass(frozen=True, slots=True)
class Route:
    """Where REST offers it. In the path `{name}` is the input field of that name."""

    method: HttpMethod
    path: str


LARGEST_REQUEST = 4 * 1024 * 1024
"""Most bytes that a request for any operation may have; known before the operations are loaded."""

TRUNCATED = "truncated"
"""The field in which an answer over MCP says that it is not complete."""


@dataclass(frozen=True, slots=True)
class Shortening:
    """How an answer is shortened, over MCP only, so that it fits a model's context: long texts first, then items.

    Attributes:
        items: The answer's field that lists items, most important first; empty where it lists none.
        texts: The fields that may be long, in each item or, without items, in the answer, such as `article.body`.
        rest: A sentence that says how to read what was cut out of a text.
        pages: Whether the input has an `offset`, counted in items or, without items, in characters of the text.
    """

    items: str = ""
    texts: tuple[str, ...] = ()
    rest: str = "Ask for less at once."
    pages: bool = False


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question to which an answer had no strong match.

    Attributes:
        toolsets: Those that answered.
        partial: Those of them in which something matches in part.
    """

    text: str
    toolsets: tuple[str, ...]
    partial: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a toolset can do.

    Attributes:
        name: The MCP tool name, exactly.
        description: A prompt: what it is for, when to use it, what to use next.
        input: Model of the arguments; forbids unknown ones.
        output: Model of the answer.
        handler: Called with the context and a validated input; returns an `output` or raises a `RefdeskError`.
        scopes: All of them are needed.
        any_scopes: At least one of them is needed, unless there are none.
        errors: Codes that a caller can get, each with a sentence saying when.
        examples: Inputs that work.
        least_seconds: How long it may take even where the limit for requests is shorter: it waits for a slow service.
        most_bytes: How large a request for it may be, up to `LARGEST_REQUEST`; `None` for the general limit.
        shortening: How an answer that is too long for a model's context is shortened.
        may_offer: Returns whether a call with these arguments may end in a `Choice`; it looks at nothing else.
        lane: Operations of the same weight share a lane, so that slow ones hold up nothing else; empty for short ones.
        keep: Set for an operation that may run as a task: returns, from the validated input, the arguments as they may
            be kept until the task has ended. When repeated after a crash, the operation gets these, with everything
            that must not be kept masked.
        find_unanswered: Set for a search: returns the question that its answer left open, from the validated input
            and the answer; usually nothing. It must cost next to nothing.
    """

    name: str
    title: str
    description: str
    input: type[BaseModel]
    output: type[BaseModel]
    handler: Callable[[Context, Any], Awaitable[BaseModel]]
    scopes: frozenset[str]
    effects: Effects
    route: Route
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    examples: tuple[Mapping[str, object], ...] = ()
    least_seconds: float = 0.0
    most_bytes: int | None = None
    any_scopes: frozenset[str] = frozenset()
    shortening: Shortening = Shortening()
    may_offer: Callable[[Mapping[str, object]], bool] = lambda _: False
    lane: str = ""
    keep: Callable[[Any], dict[str, JsonValue]] | None = None
    find_unanswered: Callable[[Any, Any], Unanswered | None] | None = None

    def __post_init__(self) -> None:
        if (self.most_bytes or 0) > LARGEST_REQUEST:
            raise ValueError(f"{self.name} may take at most {LARGEST_REQUEST} bytes")


@dataclass(frozen=True, slots=True)
class Resource:
    """Something to read at a fixed address, in JSON.

    Attributes:
        max_age_seconds: How long a client may keep it.
        is_public: Whether it is the same for every org, so that one copy may serve all callers.
        volatile: Fields that change by themselves; subscribers are not notified of that.
    """

    uri: str
    name: str
    description: str
    output: type[BaseModel]
    reader: Callable[[Context], Awaitable[BaseModel]]
    scopes: frozenset[str]
    route: Route
    max_age_seconds: int = 60
    is_public: bool = False
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    volatile: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Completions:
    """Values that complete a half-written one, likeliest first, and whether there are more."""

    values: tuple[str, ...]
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class ResourceTemplate:
    """Things to read, each at its own address, in JSON. An operation reads them, and lends its scopes and errors.

    Attributes:
        uri: The form of the addresses, with one `{name}` in it.
        operation: Reads one; REST offers it under its own route.
        completer: Called with the context and what has been typed so far; sees what the operation would read.
        argument: The operation's input field that `{name}` stands for, its only required one.
        volatile: Fields that change by themselves or by use; subscribers are not notified of that.
    """

    uri: str
    name: str
    description: str
    operation: Operation
    completer: Callable[[Context, str], Awaitable[Completions]]
    argument: str = "id"
    volatile: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """What a user fills in.

    Attributes:
        completer: Called with the context and what has been typed so far; `None` where it is free text.
    """

    name: str
    description: str
    is_required: bool = False
    completer: Callable[[Context, str], Awaitable[Completions]] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A task that a user picks from a client's menu, and an agent does with the toolset's tools.

    Attributes:
        tools: Those it names; it is offered only to those who may call all of them.
        writer: Called with what the user filled in, blanks left out; returns the message to the agent.
    """

    name: str
    title: str
    description: str
    tools: tuple[str, ...]
    writer: Callable[[Mapping[str, str]], str]
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class Rest:
    """The part of a toolset that is not shown by default: the operations that few agents need, and the resources."""

    operations: tuple[Operation, ...] = ()
    resources: tuple[Resource, ...] = ()


@dataclass(frozen=True)
class Toolset:
    """A folder under `toolsets/`: its operations, resources and templates, under one server label.

    Attributes:
        listed: The operations that MCP lists by default. The others are listed by name or under `--tools all`.
        load_rest: Imports and returns the rest; called when any of it is first asked for.
        rest_scopes: The scopes of `rest` that no listed operation needs.
        provider: How it takes part in a search over all toolsets; `None` where it does not.
        recipe: How the usual tasks are done with its tools, each as `Name: tool(argument: value) → tool.`; another
            task's name stands for its tools.
    """

    name: str
    description: str
    listed: tuple[Operation, ...]
    load_rest: Callable[[], Rest] = Rest
    rest_scopes: frozenset[str] = frozenset()
    templates: tuple[ResourceTemplate, ...] = ()
    error_format: ErrorFormat = NESTED
    provider: SearchProvider | None = None
    recipe: str = ""
    prompts: tuple[Prompt, ...] = ()

    @cached_property
    def rest(self) -> Rest:
        """What is not listed; loaded when it is first asked for."""
        return self.load_rest()

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All of them, those that are listed first; loads the rest."""
        return (*self.listed, *self.rest.operations)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All of them; loads the rest."""
        return self.rest.resources

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that some operation or resource needs; loads nothing."""
        return self.rest_scopes.union(*(operation.scopes for operation in self.listed))

    def find(self, name: str) -> Operation | None:
        """Return the operation of this name; loads the rest unless it is listed. `None` where there is none."""
        listed = next((each for each in self.listed if each.name == name), None)
        return listed or next((each for each in self.rest.operations if each.name == name), None)


def find_operation(toolsets: Sequence[Toolset], name: str) -> Operation | None:
    """Return the operation of this name, or `None`; loads the rest of toolsets only until it is found."""
    listed = (operation for toolset in toolsets for operation in toolset.listed if operation.name == name)
    return next(listed, None) or next(filter(None, (toolset.find(name) for toolset in toolsets)), None)


def find_owner(toolsets: Sequence[Toolset], name: str) -> Toolset:
    """Return the toolset that has an operation or a resource of this name; loads no more than `find_operation`."""
    for toolset in toolsets:
        if any(each.name == name for each in toolset.listed):
            return toolset
    return next(
        toolset
        for toolset in toolsets
        if any(each.name == name for each in (*toolset.rest.operations, *toolset.rest.resources))
    )


WATCH = "watch"
"""The transport of the server itself when it checks, on behalf of subscribers, whether anything changed."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has ended.

    Attributes:
        target: The operation's name, or the resource's address as it is in the table.
        transport: How it came: `mcp`, `rest` or `cli`.
        outcome: `ok`, or the code of the error it ended with.
        seconds: How long it took.
    """

    target: str
    transport: str
    outcome: str
    seconds: float
