"""A session of an agent with the desk: what it is told, what it calls, and what both cost its context."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from benchmarks.tokens import count_tokens
from refdesk.server.answers import to_text

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import Tool


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered: its text, and whether that is an error."""

    text: str
    is_error: bool

    @property
    def value(self) -> dict[str, Any]:
        """What the text says, where it is an object; else nothing."""
        try:
            value = json.loads(self.text)
        except ValueError:
            return {}
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


@dataclass(slots=True)
class Session:
    """What one agent does, counted.

    Attributes:
        calls: How many tools were called.
        tokens: Of the calls and their answers.
    """

    client: Client
    instructions: str
    tools: dict[str, Tool]
    calls: int = 0
    tokens: int = 0
    log: list[str] = field(default_factory=list[str])

    @property
    def listed_tokens(self) -> int:
        """What an agent reads before it does anything: the instructions and the tools."""
        tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in self.tools.values()]
        return count_tokens(self.instructions) + count_tokens(to_text(tools))

    async def call(self, name: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool and return what the agent reads."""
        self.calls += 1
        try:
            result = await self.client.call_tool(name, arguments)
            text = "".join(part.text for part in result.content if isinstance(part, TextContent))
            answer = Answer(text, bool(result.is_error))
        except MCPError as error:
            answer = Answer(str(error), is_error=True)
        sent = f"{name} {to_text(arguments)}"
        self.tokens += count_tokens(sent) + count_tokens(answer.text)
        self.log.append(f"{sent}\n    {answer.text[:400]}")
        return answer


async def open_session(client: Client) -> Session:
    """Return a session of a client that is connected."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    return Session(client, client.instructions or "", tools)
