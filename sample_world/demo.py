"""A tour of refdesk on the sample world: `make demo`.

It starts the emulators of the feed and of the help desk in processes of their own, points the real command at them, and
runs what a person would try. Nothing outside a temporary folder is written, and nothing leaves this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import anyio
from rich.console import Console

from sample_world.azure_updates.process import RunningEmulator, running_emulator
from sample_world.salesforce import process as salesforce

TALKS = os.path.relpath(Path(__file__).parent / "conversations")

console = Console(highlight=False)


async def tour(home: Path) -> None:
    """Walk through what is announced, written down, learned and published, and take a look at the desk's health."""
    async with running_emulator() as feed, salesforce.running_emulator() as help_desk:
        environment = {
            **os.environ,
            "REFDESK_HOME": str(home),
            "REFDESK_AZURE_UPDATES_URL": feed.url,
            **help_desk.settings,
        }
        say(
            "A vendor's feed of some 300 announcements, invented for this tour, now listens on this machine.\n"
            "refdesk reads it through the same client that reads the real one."
        )
        await run(environment, "sync", "azure-updates")
        await search(environment)
        await change_the_world(environment, feed)
        await write_down(environment)
        await learn(environment)
        say(
            "And what does the whole desk say? One ranked list; the help desk is asked live, and nothing of it is kept:"
        )
        await run(environment, "search", "--limit", "4", "charged twice for Plus")
        say("While the help desk hangs, its own results are missing and nobody else's, and the answer says so:")
        await help_desk.set_faults([{"fault": "hang"}])
        await run(environment, "search", "--limit", "1", "--deadline-ms", "1000", "charged twice for Plus")
        await help_desk.set_faults([])
        say("What is configured, how fresh it is, and what to do about what is not well:")
        await run(environment, "doctor")
        say("That was the command line. `make serve` offers the same over MCP (/mcp), REST and a page to try it on.")


async def search(environment: Mapping[str, str]) -> None:
    """Ask what a person would ask."""
    say("Words are enough; those with all of them come first:")
    await run(environment, "search", "--toolset", "azure-updates", "--limit", "3", "kubernetes node patching")
    await run(environment, "search", "--toolset", "azure-updates", "--limit", "2", "--semantic", "machines that heal")
    say("A phrase in quotes must occur:")
    await run(environment, "search", "--toolset", "azure-updates", "--limit", "3", '"private endpoints" limits')
    say("What is being retired, as a table for a colleague:")
    retired = ("--filter", "tags=Retirements", "--filter", "dateFrom=2026-06-01")
    await run(environment, "export", "azure-updates", "--format", "csv", *retired, most=8)


async def change_the_world(environment: Mapping[str, str], feed: RunningEmulator) -> None:
    """Let the vendor change its mind, and see that refdesk notices."""
    await feed.set_world(day=2)
    say(
        "Overnight the vendor published, revised and withdrew announcements, and changed tags without saying so:\n"
        "their dates of modification stand still. A full sync compares everything and finds them."
    )
    await run(environment, "sync", "azure-updates", "--full")
    say("The same again writes nothing:")
    await run(environment, "sync", "azure-updates", "--full")


async def write_down(environment: Mapping[str, str]) -> None:
    """Let one agent note what it learned, and another note that it no longer holds."""
    say("Agents write down what they learn, and others find it:")
    old = await store(environment, "Refunds up to 500 EUR need no approval", "Anything above goes to a team lead.")
    await run(environment, "search", "--toolset", "knowledge", "--limit", "1", "who approves a refund?")
    say("What no longer holds is superseded, not lost: whoever asks in the old words finds what holds now.")
    new = await store(environment, "Refunds up to 200 EUR need no approval", "Anything above goes to a team lead.")
    await run(environment, "knowledge", "supersede", old, new)
    await run(environment, "search", "--toolset", "knowledge", "--limit", "2", "refunds 500 EUR")


async def store(environment: Mapping[str, str], title: str, body: str) -> str:
    """Write a note down and return its id."""
    arguments = ("knowledge", "store", "--title", title, "--body", body, "--tag", "refunds", "--json")
    return json.loads(await run(environment, *arguments, most=1))["id"]


async def learn(environment: Mapping[str, str]) -> None:
    """Make playbooks of support conversations."""
    say(
        "Old support conversations become playbooks, here twenty about four problems, by rules alone; personal\n"
        "data is masked, and what may be one problem is proposed:"
    )
    learned = await run(environment, "skills", "learn", "--json", TALKS, most=7)
    ids = dict.fromkeys(each["skill_id"] for each in json.loads(learned))
    say(f"Twenty conversations became {len(ids)} skills. Whoever has the next customer asks in the customer's words:")
    await run(environment, "search", "--toolset", "skills", "--limit", "1", "my new phone does not show my lamps")
    say("And this is a playbook whole: each step says how many conversations support it.")
    found = await run(environment, "skills", "search", "--json", "--limit", "1", "valve makes noise all night", most=0)
    await run(environment, "skills", "show", json.loads(found)["matches"][0]["skill_id"], most=38)


async def run(environment: Mapping[str, str], *arguments: str, most: int | None = None) -> str:
    """Show a command and what it answers, at most the first `most` lines of it, which are then returned whole."""
    shown = " ".join(f"'{argument}'" if " " in argument else argument for argument in arguments)
    console.print(f"\n[bold cyan]$ refdesk {shown}[/]")
    sys.stdout.flush()
    command = [sys.executable, "-m", "refdesk", *arguments]
    if most is None:
        await anyio.run_process(command, env=environment, stdout=None, stderr=None)
        return ""
    done = await anyio.run_process(command, env=environment, stderr=None)
    lines = done.stdout.decode().splitlines()
    for line in lines[:most]:
        console.print(line, markup=False, no_wrap=True, overflow="ellipsis")
    if len(lines) > most:
        console.print(f"… and {len(lines) - most} more lines", style="dim")
    return done.stdout.decode()


def say(text: str) -> None:
    """Put a sentence between two commands."""
    console.print(f"\n{text}", style="italic")


def main() -> None:
    """Run the tour; a command that fails ends it with its exit code."""
    with tempfile.TemporaryDirectory(prefix="refdesk-demo-") as home:
        try:
            anyio.run(tour, Path(home))
        except* subprocess.CalledProcessError as failed:
            console.print("The tour ended early, because the command above failed.", style="bold red")
            raise SystemExit(1) from failed


if __name__ == "__main__":
    main()
