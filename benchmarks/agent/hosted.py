"""An agent with a language model behind `POST /chat/completions`, at OpenAI or any server that speaks its API.

It gets what an agent gets from any client: the server's instructions, the tools, and what a person says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2

    from benchmarks.agent.session import Session
    from benchmarks.agent.tasks import Task

MOST_ROUNDS = 16
"""Of asking the model: then it has not found its way."""

ROLE = "You help a colleague with the tools that you have. Do what is asked, then answer in one short paragraph."


@dataclass(frozen=True, slots=True)
class HostedAgent:
    """One that begins each task anew.

    Attributes:
        service: Its base URL is that of the API, with the version.
        model: The model's name.
    """

    session: Session
    service: httpx2.AsyncClient
    model: str

    async def solve(self, task: Task) -> str:
        """Do a task and return the reply."""
        system = f"{ROLE}\n\n{self.session.instructions}"
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": system},
            {"role": "user", "content": task.ask},
        ]
        for _ in range(MOST_ROUNDS):
            said = await self._ask(messages)
            messages.append(said)
            if not said.get("tool_calls"):
                return str(said.get("content") or "")
            messages += [await self._run(call) for call in said["tool_calls"]]
        return ""

    async def _ask(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        tools = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
            }
            for tool in self.session.tools.values()
        ]
        request = {"model": self.model, "messages": messages, "tools": tools}
        response = await self.service.post("chat/completions", json=request)
        response.raise_for_status()
        return response.json()["choices"][0]["message"]

    async def _run(self, call: dict[str, Any]) -> dict[str, Any]:
        name, text = call["function"]["name"], call["function"]["arguments"] or "{}"
        try:
            arguments = json.loads(text)
        except ValueError:
            content = "The arguments are no JSON object."
        else:
            content = (await self.session.call(name, arguments)).text
        return {"role": "tool", "tool_call_id": call["id"], "content": content}
