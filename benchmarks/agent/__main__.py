"""How an agent gets on that knows of the desk only what the server says: sixteen everyday tasks.

    python -m benchmarks.agent [--log] [--model NAME --base-url URL [--key-variable NAME] | --emulated]

Without a model a scripted agent follows the recipes of the server's instructions to the letter. With one, any service
that speaks the OpenAI API plays the agent; `--emulated` starts such a service on this machine, behind which stands the
scripted agent, to try all but the model. Prints for each task whether it is solved, the calls, and the tokens as o200k
counts them; ends with status 1 unless all are solved, in at most 1.2 times the ideal calls and 25,000 tokens.

The desk embeds with the model of its settings, the packaged one unless `REFDESK_EMBEDDER` names another; before the
first task all is embedded and the model is in memory.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import anyio
import click
import httpx2

from benchmarks.agent.emulated import KEY, MODEL, running_model
from benchmarks.agent.hosted import HostedAgent
from benchmarks.agent.judging import Report, judge
from benchmarks.agent.scripted import ScriptedAgent
from benchmarks.agent.session import open_session
from benchmarks.agent.tasks import load_tasks
from benchmarks.agent.world import AGENT, open_world, wait_for_model

PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Service:
    """Who plays the agent: a service that speaks the OpenAI API, and its model; `key` where it wants one."""

    url: str
    model: str
    key: str | None = None

    def open(self) -> httpx2.AsyncClient:
        """Return a client of it."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return httpx2.AsyncClient(base_url=f"{self.url.rstrip('/')}/", headers=headers, timeout=PATIENCE_SECONDS)


@click.command()
@click.option("--model", help="The model's name, as the service knows it.")
@click.option("--base-url", default="https://api.openai.com/v1", show_default=True, help="Of the service.")
@click.option("--key-variable", default="OPENAI_API_KEY", show_default=True, help="The variable with the API key.")
@click.option("--emulated", is_flag=True, help="Let the scripted agent stand behind a service on this machine.")
@click.option("--tasks", type=click.Path(exists=True, path_type=Path), help="Other tasks than the sixteen.")
@click.option("--log", is_flag=True, help="Print every call and how its answer begins.")
def main(model: str | None, base_url: str, key_variable: str, emulated: bool, tasks: Path | None, log: bool) -> None:
    """Let an agent do everyday tasks."""
    service = Service(base_url, model, os.environ.get(key_variable)) if model is not None else None
    report = anyio.run(run, service, tasks, emulated, log)
    click.echo(report.write())
    sys.exit(not report.holds)


async def run(service: Service | None, tasks: Path | None, emulated: bool, log: bool) -> Report:
    """Return the report of an agent in a world of its own: that of the service, else the scripted one."""
    async with AsyncExitStack() as stack:
        if emulated:
            model = await stack.enter_async_context(running_model(tasks))
            service = Service(model.url, MODEL, KEY)
        began = monotonic()
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        world = await stack.enter_async_context(open_world(home, {}))
        client = await stack.enter_async_context(world.connect(AGENT))
        await wait_for_model(client)
        session = await open_session(client)
        agent = ScriptedAgent(session)
        if service is not None:
            agent = HostedAgent(session, await stack.enter_async_context(service.open()), service.model)
        settled = monotonic()
        report = await judge(load_tasks(tasks) if tasks else load_tasks(), agent, session, client)
        click.echo(f"settled in {settled - began:.0f} s, done in {monotonic() - settled:.0f} s")
        if log:
            click.echo("\n".join(session.log))
    return report


if __name__ == "__main__":
    main()
