"""A tour of refdesk on the sample world: `make demo`.

It starts the emulator of the feed in a process of its own, points the real command at it, and runs what a person would
try. Nothing outside a temporary folder is written, and nothing leaves this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import anyio
from rich.console import Console

from sample_world.azure_updates.process import RunningEmulator, running_emulator

console = Console(highlight=False)


async def tour(home: Path) -> None:
    """Walk through syncing, searching, a change of the world, and a look at the desk's health."""
    async with running_emulator() as feed:
        environment = {**os.environ, "REFDESK_HOME": str(home), "REFDESK_AZURE_UPDATES_URL": feed.url}
        say(
            "A vendor's feed of some 300 announcements, invented for this tour, now listens on this machine.\n"
            "refdesk reads it through the same client that reads the real one."
        )
        await run(environment, "sync", "azure-updates")
        await search(environment)
        await change_the_world(environment, feed)
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


async def run(environment: Mapping[str, str], *arguments: str, most: int | None = None) -> None:
    """Show a command and what it answers, at most the first `most` lines of it."""
    shown = " ".join(f"'{argument}'" if " " in argument else argument for argument in arguments)
    console.print(f"\n[bold cyan]$ refdesk {shown}[/]")
    sys.stdout.flush()
    command = [sys.executable, "-m", "refdesk", *arguments]
    if most is None:
        await anyio.run_process(command, env=environment, stdout=None, stderr=None)
        return
    done = await anyio.run_process(command, env=environment, stderr=None)
    lines = done.stdout.decode().splitlines()
    for line in lines[:most]:
        console.print(line, markup=False, no_wrap=True, overflow="ellipsis")
    if len(lines) > most:
        console.print(f"… and {len(lines) - most} more lines", style="dim")


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
