"""How an agent gets on that knows of the desk only what the server says: sixteen everyday tasks.

    python -m benchmarks.agent [--log] [--model NAME --base-url URL [--key-variable NAME]]

Without a model a scripted agent follows the recipes of the server's instructions to the letter. With one, any service
that speaks the OpenAI API plays the agent. Prints for each task whether it is solved, the calls, and the tokens as
o200k counts them; ends with status 1 unless all are solved, in at most 1.2 times the ideal calls and 25,000 tokens.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import click
import httpx2

from benchmarks.agent.hosted import HostedAgent
from benchmarks.agent.judging import Report, judge
from benchmarks.agent.scripted import ScriptedAgent
from benchmarks.agent.session import open_session
from benchmarks.agent.tasks import load_tasks
from benchmarks.agent.world import AGENT, open_world

PATIENCE_SECONDS = 120.0


@click.command()
@click.option("--model", help="The model's name, as the service knows it.")
@click.option("--base-url", default="https://api.openai.com/v1", show_default=True, help="Of the service.")
@click.option("--key-variable", default="OPENAI_API_KEY", show_default=True, help="The variable with the API key.")
@click.option("--tasks", type=click.Path(exists=True, path_type=Path), help="Other tasks than the sixteen.")
@click.option("--log", is_flag=True, help="Print every call and how its answer begins.")
def main(model: str | None, base_url: str, key_variable: str, tasks: Path | None, log: bool) -> None:
    """Let an agent do everyday tasks."""
    with tempfile.TemporaryDirectory() as home:
        report = anyio.run(run, Path(home), model, base_url, os.environ.get(key_variable), tasks, log)
    click.echo(report.write())
    sys.exit(not report.holds)


async def run(
    home: Path,
    model: str | None = None,
    base_url: str = "",
    key: str | None = None,
    tasks: Path | None = None,
    log: bool = False,
    settings: Mapping[str, str] | None = None,
    notes: Sequence[Mapping[str, Any]] | None = None,
) -> Report:
    """Return the report of an agent in a world of its own; for `settings` and `notes` see `open_world`."""
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(open_world(home, settings or {}, notes))
        client = await stack.enter_async_context(world.connect(AGENT))
        session = await open_session(client)
        agent = ScriptedAgent(session)
        if model is not None:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            service = httpx2.AsyncClient(base_url=f"{base_url.rstrip('/')}/", headers=headers, timeout=PATIENCE_SECONDS)
            agent = HostedAgent(session, await stack.enter_async_context(service), model)
        report = await judge(load_tasks(tasks) if tasks else load_tasks(), agent, session, client)
        if log:
            click.echo("\n".join(session.log))
    return report


if __name__ == "__main__":
    main()
