"""An agent that knows of the desk only what the server says does its everyday tasks; who does not is found out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from benchmarks.agent.emulated import KEY, MODEL, running_model
from benchmarks.agent.hosted import HostedAgent
from benchmarks.agent.judging import Report, judge
from benchmarks.agent.scripted import ScriptedAgent, read_recipes, read_steps
from benchmarks.agent.session import Session, open_session
from benchmarks.agent.tasks import Look, Task, find_faults, load_tasks
from benchmarks.agent.world import AGENT, open_world
from refdesk.core.retrying import RetryPolicy
from tests.acceptance.processes import make_environment
from tests.emulators import language_models

TASKS = {task.name: task for task in load_tasks()}


ASKED = {"role": "user", "content": "Who knows?"}
CALLING = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
QUICK = RetryPolicy(attempts=4, first_wait=0.01, max_wait=0.1)


def make_tool(**changed: object) -> dict[str, Any]:
    """Return a tool as the API has it."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": "look", "description": "", "parameters": schema, **changed}}


def make_service(url: str) -> httpx2.AsyncClient:
    """Return a client of an emulated model."""
    return httpx2.AsyncClient(base_url=f"{url}/", headers={"Authorization": f"Bearer {KEY}"})


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": "other"}, "404"),
    ({"messages": []}, "empty array"),
    ({"metadata_of_ours": {}}, "Unrecognized request argument"),
    ({"messages": [{"role": "user", "content": None}]}, "must be a string"),
    ({"messages": [{"role": "tool", "content": "", "tool_call_id": "call_1"}]}, "must follow"),
    ({"messages": [ASKED, CALLING]}, "have no answer"),
    ({"messages": [ASKED, CALLING, ASKED]}, "have no answer before"),
    ({"messages": [{**ASKED, "annotations": []}]}, "Unsupported property"),
    ({"tools": [make_tool(name="a.b")]}, "name"),
    ({"tools": [make_tool(description="x" * 1025)]}, "too long"),
    ({"tools": [make_tool(parameters={"type": "object", "properties": {}, "anyOf": []})]}, "must be an object"),
]


@dataclass(frozen=True, slots=True)
class Done:
    """A world in which the scripted agent has done all of its tasks, and what became of them."""

    session: Session
    report: Report

    async def judge(self, agent: ScriptedAgent | HostedAgent | Silent, *names: str) -> Report:
        return await judge([TASKS[name] for name in names], agent, self.session, self.session.client)

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Do something in the world that is not counted."""
        return (await self.session.client.call_tool(tool, arguments)).structured_content or {}


@dataclass(frozen=True, slots=True)
class Silent:
    """Says something without doing anything."""

    says: str

    async def solve(self, task: Task) -> str:
        return self.says


@pytest.fixture(scope="module")
async def done(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Done]:
    assert anyio_backend == "asyncio"
    home: Path = tmp_path_factory.mktemp("agent")
    settings = make_environment(home, REFDESK_EMBEDDER="hashing", REFDESK_LOG_LEVEL="error")
    del settings["REFDESK_AZURE_UPDATES_URL"]
    async with open_world(home, settings) as world, world.connect(AGENT) as client:
        session = await open_session(client)
        yield Done(session, await judge(load_tasks(), ScriptedAgent(session), session, client))


@pytest.fixture(scope="module")
async def emulated(anyio_backend: str) -> AsyncGenerator[str]:
    assert anyio_backend == "asyncio"
    async with running_model() as model:
        yield model.url


async def test_recipes_followed_to_the_letter_solve_every_task_in_few_calls_and_tokens(done: Done) -> None:
    assert len(done.report.outcomes) == 16
    assert done.report.holds, done.report.write()


async def test_a_wrong_answer_and_a_deed_that_was_not_done_are_found_out(done: Done) -> None:
    wrong = await done.judge(Silent("Up to 810 EUR, ann wrote."), "find a note")
    assert wrong.outcomes[0].faults == ("lacks 'customer up to 180 EUR'",)
    outdated = await done.judge(
        Silent("Ann: a customer up to 180 EUR; before, a customer up to 120 EUR."), "find a note"
    )
    assert outdated.outcomes[0].faults == ("holds 'customer up to 120 EUR'",)
    assert not wrong.holds
    assert "NOT" in wrong.write()
    assert "DOES NOT HOLD" in wrong.write()
    # Who only says so has not left the desk as it must be.
    look = Look("search_knowledge", {"query": "snow shovel"}, must=("basement",))
    task = replace(TASKS["note something"], after=(look,))
    report = await judge([task], Silent("Noted."), done.session, done.session.client)
    assert report.outcomes[0].faults == ("afterwards search_knowledge lacks 'basement'",)


async def test_a_wrong_note_in_the_world_is_found_out(done: Done) -> None:
    query = TASKS["find a note"].facts["query"]
    found = await done.call("search_knowledge", {"query": query})
    planted = {"title": "Refunds without asking: up to 810 EUR", "body": "Everybody may."}
    stored = await done.call("store_knowledge", planted)
    right = found["results"][0]["id"]
    await done.call("supersede_knowledge", {"oldId": right, "newId": stored["id"]})
    report = await done.judge(ScriptedAgent(done.session), "find a note")
    assert "lacks 'customer up to 180 EUR'" in report.outcomes[0].faults
    await done.call("restore_knowledge", {"id": right})
    await done.call("withdraw_knowledge", {"id": stored["id"]})
    assert (await done.judge(ScriptedAgent(done.session), "find a note")).solved == 1


async def test_what_the_instructions_do_not_say_is_not_done(done: Done) -> None:
    mute = replace(done.session, instructions=done.session.instructions.replace("Correct:", "Something:"))
    report = await judge([TASKS["correct a note"]], ScriptedAgent(mute), mute, mute.client)
    assert report.outcomes[0].faults == ("The instructions have no recipe 'knowledge: Correct'.",)
    poor = replace(
        done.session, tools={name: tool for name, tool in done.session.tools.items() if "withdraw" not in name}
    )
    report = await judge([TASKS["take a note back"]], ScriptedAgent(poor), poor, poor.client)
    assert report.outcomes[0].faults == ("A recipe names 'withdraw_knowledge', which is not offered.",)


async def test_who_calls_too_often_or_reads_too_much_does_not_hold(done: Done) -> None:
    [outcome] = (await done.judge(ScriptedAgent(done.session), "find a note")).outcomes
    assert Report([outcome], 0).holds
    assert not Report([replace(outcome, calls=3)], 0).holds
    assert not Report([outcome], 25_000).holds


async def test_a_model_behind_the_openai_api_plays_the_agent(done: Done) -> None:
    with language_models.emulate() as address:
        headers = {"Authorization": f"Bearer {language_models.KEY}"}
        async with httpx2.AsyncClient(base_url=f"{address}/v1/", headers=headers) as service:
            agent = HostedAgent(done.session, service, "fine")
            report = await done.judge(agent, "find a note", "read a help article")
        sent = language_models.read_requests(address)
    found, lost = report.outcomes
    assert (found.faults, found.calls) == ((), 2)
    assert lost.faults
    assert lost.calls == 1, "arguments that are no JSON call nothing"
    assert sent[0]["body"]["messages"][0]["content"].endswith(done.session.instructions)


async def test_the_scripted_agent_behind_an_api_does_what_it_does_by_itself(done: Done) -> None:
    names = ("find a note", "survey retirements", "mend a filter", "read a help article", "note something")
    async with running_model() as model:
        # The service has too much to do, ends a connection, and asks to be let alone for a moment.
        faults = [{"fault": "status", "at": [1]}, {"fault": "reset", "at": [3]}]
        await model.set_faults([*faults, {"fault": "status", "status": 429, "retry_after": 0.01, "at": [5]}])
        async with make_service(model.url) as service:
            report = await done.judge(HostedAgent(done.session, service, MODEL, QUICK), *names)
            asked = await model.requests()
    assert report.solved == len(names), report.write()
    # It was noted before: the note is withdrawn again, as a duplicate.
    assert [outcome.calls for outcome in report.outcomes] == [2, 1, 2, 2, 4]
    assert [each["status"] for each in asked].count(200) == 11 + len(names), "for each call and each reply"


@pytest.mark.parametrize(("wrong", "said"), REFUSED)
async def test_what_the_api_would_refuse_the_emulator_refuses(emulated: str, wrong: dict[str, Any], said: str) -> None:
    right = {"model": MODEL, "messages": [ASKED], "tools": [make_tool()]}
    async with make_service(emulated) as service:
        assert (await service.post("chat/completions", json=right)).status_code == 200
        answer = await service.post("chat/completions", json={**right, **wrong})
    assert answer.is_error
    assert said in f"{answer.status_code} {answer.text}"


def test_recipes_are_read_as_they_are_written() -> None:
    recipes = read_recipes("Today.\n- toys: Toys. Find: look(deep, most: 5) → take. Give: Find → hand_over.\nHeed.")
    steps = read_steps(recipes, "toys: Give")
    assert [(step.tool, step.arguments) for step in steps] == [
        ("look", {"deep": True, "most": 5}),
        ("take", {}),
        ("hand_over", {}),
    ]


def test_what_must_be_there_once_may_not_be_there_twice() -> None:
    assert find_faults("A rose is a rose.", ("Rose",), ("tulip",)) == []
    assert find_faults("A rose is a rose.", (), (), ("rose",)) == ["holds 'rose' 2 times"]
