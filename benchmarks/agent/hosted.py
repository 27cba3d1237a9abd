"""An agent with a language model behind `POST /chat/completions`, at OpenAI or any server that speaks its API.

It gets what an agent gets from any client: the server's instructions, the tools, and what a person says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from refdesk.core.retrying import PassingError, RetryPolicy, is_passing_status, parse_retry_after

if TYPE_CHECKING:
    from benchmarks.agent.session import Session
    from benchmarks.agent.tasks import Task

MOST_ROUNDS = 16
"""Of asking the model: then it has not found its way."""

POLICY = RetryPolicy(attempts=6, first_wait=2.0, max_wait=90.0)
"""Services answer 429 for up to a minute to who asks as often as an agent does."""

ROLE = "You help a colleague with the tools that you have. Do what is asked, then answer in one short paragraph."


@dataclass(frozen=True, slots=True)
class HostedAgent:
    """One that begins each task anew.

    Attributes:
        service: Its base URL is that of the API, with the version.
        model: The model's name.
        policy: How often the service is asked again that cannot answer now.
    """

    session: Session
    service: httpx2.AsyncClient
    model: str
    policy: RetryPolicy = field(default=POLICY)

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
        response = await self.policy.call(lambda: self._post(request))
        return _get_own(response.json()["choices"][0]["message"])

    async def _post(self, request: dict[str, Any]) -> httpx2.Response:
        try:
            response = await self.service.post("chat/completions", json=request)
        except httpx2.TransportError as error:
            raise PassingError(f"The service cannot be reached ({type(error).__name__}).") from error
        if is_passing_status(response.status_code):
            asked = parse_retry_after(response.headers.get("Retry-After"))
            raise PassingError(f"The service answered {response.status_code}: {response.text[:200]}", asked)
        if response.is_error:
            raise RuntimeError(f"The service answered {response.status_code}: {response.text[:500]}")
        return response

    async def _run(self, call: dict[str, Any]) -> dict[str, Any]:
        name, text = call["function"]["name"], call["function"]["arguments"] or "{}"
        try:
            arguments = json.loads(text)
        except ValueError:
            content = "The arguments are no JSON object."
        else:
            content = (await self.session.call(name, arguments)).text
        return {"role": "tool", "tool_call_id": call["id"], "content": content}


def _get_own(said: dict[str, Any]) -> dict[str, Any]:
    """Return what of a message is sent back: services answer with fields that they refuse to be told again."""
    calls = [
        {"id": call["id"], "type": "function", "function": {name: call["function"][name] for name in _FUNCTION}}
        for call in said.get("tool_calls") or ()
    ]
    return {"role": "assistant", "content": said.get("content"), **({"tool_calls": calls} if calls else {})}


_FUNCTION = ("name", "arguments")
