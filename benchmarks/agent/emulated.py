"""An emulator of the OpenAI chat completions API in a process of its own; its one model is the scripted agent.

    python -m benchmarks.agent.emulated [--port 0] [--tasks FILE]

It keeps nothing between requests, as the real service does not: what was called and answered it reads from the
messages. Requests are held to the service's public rules, of which its clients' reports tell: whose message follows
whose, which fields a message and a tool may have, how a tool is named, and how long its description may be. Faults and
the log of requests are those of the other emulators (see `sample_world.control`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from time import time
from typing import Any, cast

import regex
from mcp_types import Tool
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.agent.scripted import ScriptedAgent, UnknownRecipeError
from benchmarks.agent.session import Answer
from benchmarks.agent.tasks import Task, load_tasks
from benchmarks.tokens import count_tokens
from sample_world.control import Control
from sample_world.faults import FaultRule, TransportFault
from sample_world.process import RunningProcess, name_file, running_process
from sample_world.serving import add_listening_arguments, serve

MODEL, KEY = "scripted", "emulated-key"
MOST_TOOLS, LONGEST_DESCRIPTION = 128, 1024
_NAME = regex.compile(r"[A-Za-z0-9_-]{1,64}")
_TOP = {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "temperature", "max_completion_tokens"}
_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
"""Of the messages of each role. Services that speak the same API refuse others, though they answer with some."""


class Fault(FaultRule, frozen=True):
    """One fault of the service."""

    fault: TransportFault


_RULES = TypeAdapter(list[Fault])


class RefusedError(Exception):
    """A request breaks a rule of the API; the arguments are the message and the name of what is wrong."""


class CalledError(Exception):
    """The agent calls a tool whose answer the conversation does not have yet."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(name)
        self.name, self.arguments = name, arguments


@dataclass(slots=True)
class Conversation:
    """What a request tells of a session with the desk: the instructions, the tools, and what was answered so far."""

    instructions: str
    tools: Mapping[str, Tool]
    answered: list[str] = field(default_factory=list[str])

    async def call(self, name: str, arguments: dict[str, Any]) -> Answer:
        """Return what the tool answered when it was called.

        Raises:
            CalledError: It was not called yet.
        """
        if not self.answered:
            raise CalledError(name, arguments)
        text = self.answered.pop(0)
        answer = Answer(text, is_error=False)
        return Answer(text, is_error="error" in answer.value or not answer.value)


class Emulator:
    """The service, its faults and the log of what was asked."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = {task.ask: task for task in tasks}
        self._control = Control(_RULES.validate_python)

    def build_application(self) -> Starlette:
        """Return the application that serves it."""
        return Starlette(
            routes=[
                *self._control.build_routes(),
                Route("/v1/chat/completions", self._serve, methods=["POST"]),
            ]
        )

    async def _serve(self, request: Request) -> Response:
        fault = self._control.next_fault(request)
        return await self._control.finish(request, await self._answer(request), fault)

    async def _answer(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return _refuse(HTTPStatus.UNAUTHORIZED, "Incorrect API key provided.", "invalid_api_key")
        try:
            body = json.loads(await request.body())
            check(body)
        except (ValueError, RefusedError) as error:
            return _refuse(HTTPStatus.BAD_REQUEST, str(error), "invalid_request_error")
        if body["model"] != MODEL:
            return _refuse(HTTPStatus.NOT_FOUND, f"The model `{body['model']}` does not exist.", "model_not_found")
        return JSONResponse(_write(body, await self._play(body["messages"], body.get("tools", []))))

    async def _play(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return what the agent says next."""
        [asked, *_] = [message["content"] for message in messages if message["role"] == "user"]
        offered = [tool["function"] for tool in tools]
        conversation = Conversation(
            messages[0]["content"],
            {
                each["name"]: Tool(name=each["name"], description=each["description"], input_schema=each["parameters"])
                for each in offered
            },
            [message["content"] for message in messages if message["role"] == "tool"],
        )
        count = len(conversation.answered)
        if asked not in self._tasks:
            return {"content": "I do not know how that is done."}
        try:
            return {"content": await ScriptedAgent(conversation).solve(self._tasks[asked])}
        except UnknownRecipeError as error:
            return {"content": str(error)}
        except CalledError as call:
            function = {"name": call.name, "arguments": json.dumps(call.arguments)}
            return {
                "content": None,
                "tool_calls": [{"id": f"call_{count}_{call.name}", "type": "function", "function": function}],
            }


def check(body: Mapping[str, Any]) -> None:
    """Check a request by the rules of the API.

    Raises:
        RefusedError: It breaks one.
    """
    _insist(not (unknown := set(body) - _TOP), f"Unrecognized request arguments supplied: {sorted(unknown)}")
    _insist(isinstance(body.get("model"), str), "you must provide a model parameter")
    messages, tools = body.get("messages"), cast("list[dict[str, Any]]", body.get("tools", []))
    _insist(isinstance(messages, list) and messages != [], "Invalid 'messages': empty array.")
    _check_messages(cast("list[dict[str, Any]]", messages))
    _insist("tools" not in body or 0 < len(tools) <= MOST_TOOLS, "Invalid 'tools': too short or too long.")
    for place, tool in enumerate(tools):
        _check_tool(f"tools[{place}]", tool)


def _check_messages(messages: Sequence[dict[str, Any]]) -> None:
    """Each call is answered once, by the messages that follow it at once, and nothing else is answered."""
    waiting = set[str]()
    for place, message in enumerate(messages):
        at, role = f"messages[{place}]", message.get("role")
        _insist(role in _FIELDS, f"Invalid value for '{at}.role'.")
        _insist(set(message) <= _FIELDS[str(role)], f"Unsupported property in '{at}': {sorted(message)}.")
        content, calls = message.get("content"), message.get("tool_calls")
        _insist(isinstance(content, str) or (role == "assistant" and bool(calls)), f"'{at}.content' must be a string.")
        if role == "tool":
            _insist(message.get("tool_call_id") in waiting, f"'{at}' must follow a message with its 'tool_calls'.")
            waiting.remove(message["tool_call_id"])
            continue
        _insist(not waiting, f"These calls have no answer before '{at}': {sorted(waiting)}.")
        _insist("tool_calls" not in message or bool(calls), f"Invalid '{at}.tool_calls': empty array.")
        waiting = {_check_call(at, call) for call in calls or ()}
    _insist(not waiting, f"These calls have no answer: {sorted(waiting)}.")


def _check_call(at: str, call: Mapping[str, Any]) -> str:
    function = call.get("function", {})
    whole = set(call) == {"id", "type", "function"} and call["type"] == "function"
    _insist(whole and set(function) == {"name", "arguments"}, f"Invalid '{at}.tool_calls'.")
    _insist(isinstance(function["arguments"], str), f"'{at}.tool_calls.function.arguments' must be a string.")
    return str(call["id"])


def _check_tool(at: str, tool: Mapping[str, Any]) -> None:
    function = tool.get("function", {})
    _insist(tool.get("type") == "function", f"Invalid value for '{at}.type'.")
    _insist(set(function) <= {"name", "description", "parameters", "strict"}, f"Unknown parameter in '{at}.function'.")
    _insist(_NAME.fullmatch(str(function.get("name"))) is not None, f"Invalid '{at}.function.name'.")
    _insist(len(function.get("description", "")) <= LONGEST_DESCRIPTION, f"'{at}.function.description' is too long.")
    schema = function.get("parameters", {})
    has_form = schema.get("type") == "object" and "properties" in schema
    combines = {"oneOf", "anyOf", "allOf", "enum", "not"} & set(schema)
    _insist(has_form and not combines, f"Invalid schema for function '{function['name']}': it must be an object.")


def _insist(holds: bool, message: str) -> None:
    if not holds:
        raise RefusedError(message)


def _refuse(status: int, message: str, code: str) -> Response:
    kind = "invalid_request_error"
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": code}}, status)


def _write(body: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole answer, with all that a message has there beside what was said."""
    read, written = count_tokens(json.dumps(body["messages"])), count_tokens(json.dumps(said))
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    message = {"role": "assistant", "refusal": None, "annotations": list[Any](), **said}
    reason = "tool_calls" if "tool_calls" in said else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {
        "id": f"chatcmpl-{read}-{written}",
        "object": "chat.completion",
        "created": int(time()),
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


@asynccontextmanager
async def running_model(tasks: Path | None = None) -> AsyncGenerator[RunningProcess]:
    """Run the service in a process of its own while the block runs; `url` is its base URL."""
    async with running_process("benchmarks.agent.emulated", name_file("--tasks", tasks)) as process:
        yield process


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description="An emulator of the OpenAI chat completions API.")
    add_listening_arguments(parser)
    parser.add_argument("--tasks", type=Path, help="other tasks than the sixteen")
    options = parser.parse_args()
    emulator = Emulator(load_tasks(options.tasks) if options.tasks else load_tasks())
    serve(options, lambda origin: (emulator.build_application(), {"url": f"{origin}/v1"}))


if __name__ == "__main__":
    main()
