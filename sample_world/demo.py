"""A tour of refdesk on the sample world: `make demo`.

It starts the emulators of the feed and of the help desk in processes of their own, points the real command at them, and
runs what a person would try; at its end the console shows the same world. Nothing outside a temporary folder is
written, and nothing leaves this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import httpx2
from anyio.streams.buffered import BufferedByteReceiveStream
from rich.console import Console

from sample_world.azure_updates.process import RunningEmulator, running_emulator
from sample_world.salesforce import process as salesforce

QUESTIONS = ("virtual machines that repair themselves", "keep secrets out of code")
START_SECONDS = 60.0
EMBED_SECONDS = 300.0
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
        async with serving(environment) as url:
            await search(environment)
            await change_the_world(environment, feed)
            await write_down(environment)
            await learn(environment)
            await ask_by_meaning(environment, url)
            say(
                "And what does the whole desk say? One ranked list; the help desk is asked live, and nothing of it is "
                "kept:"
            )
            await run(environment, "search", "--limit", "4", "charged twice for Plus")
            say("While the help desk hangs, its own results are missing and nobody else's, and the answer says so:")
            await help_desk.set_faults([{"fault": "hang"}])
            await run(environment, "search", "--limit", "1", "--deadline-ms", "1000", "charged twice for Plus")
            await help_desk.set_faults([])
            say("What is configured, how fresh it is, and what to do about what is not well:")
            await run(environment, "doctor")
            await show_console(url)


@asynccontextmanager
async def serving(environment: Mapping[str, str]) -> AsyncGenerator[str]:
    """Yield the address of a server that serves this world, as `make serve` does: commands ask it, and it embeds."""
    command = [sys.executable, "-m", "refdesk", "serve", "--no-auth", "--port", "0"]
    async with await anyio.open_process(command, env=environment, stdout=subprocess.DEVNULL) as server:
        assert server.stderr is not None
        log = BufferedByteReceiveStream(server.stderr)
        async with anyio.create_task_group() as group:
            url = await read_log(log, "listening")
            await read_log(log, "the desk serves")
            group.start_soon(drain, log)
            try:
                yield url["url"]
            finally:
                # Whatever ends the tour: who leaves waits for the server.
                server.terminate()
                group.cancel_scope.cancel()


async def read_log(log: BufferedByteReceiveStream, message: str) -> dict[str, str]:
    """Return the first entry of a server's log with this message."""
    with anyio.fail_after(START_SECONDS):
        while True:
            entry = json.loads(await log.receive_until(b"\n", 65536))
            if entry["message"] == message:
                return entry


async def drain(log: BufferedByteReceiveStream) -> None:
    """Read what nobody wants to see, so that its writer does not wait."""
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
        while True:
            await log.receive()


async def ask_by_meaning(environment: Mapping[str, str], url: str) -> None:
    """Ask in words that no announcement has, once all have their vectors."""
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        with anyio.fail_after(EMBED_SECONDS):
            while (await client.get("/health")).json().get("pendingEmbeddings"):  # noqa: ASYNC110 - of another process
                await anyio.sleep(0.2)
    say("Meanwhile everything was embedded, so hybrid search, the default, finds it in other words, too:")
    for question in QUESTIONS:
        await run(environment, "search", "--toolset", "azure-updates", "--limit", "1", question)


async def show_console(url: str) -> None:
    """Say where the console shows this world; keep it there for as long as somebody looks."""
    address = f"{url}/?q=charged+twice"
    async with httpx2.AsyncClient(timeout=60) as client:
        (await client.get(address)).raise_for_status()
    say("That was the command line. The console shows the same world, and agents reach it at /mcp:")
    console.print(f"\n  [bold link={address}]{address}[/]\n", soft_wrap=True)
    if sys.stdin.isatty() and sys.stdout.isatty():
        say("Ctrl-C ends it. `make serve` serves the real feed; refdesk connect lets an agent use it.")
        await anyio.sleep_forever()


async def search(environment: Mapping[str, str]) -> None:
    """Ask what a person would ask."""
    say("Keyword search; announcements with all of the words come first:")
    await run(
        environment, "search", "--toolset", "azure-updates", "--keyword", "--limit", "3", "kubernetes node patching"
    )
    say("A phrase in quotes must occur:")
    await run(
        environment, "search", "--toolset", "azure-updates", "--keyword", "--limit", "3", '"private endpoints" limits'
    )
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
    ids = dict.fromkeys(each["skill_id"] for each in json.loads(learned)["learned"])
    say(f"Twenty conversations became {len(ids)} skills. Whoever has the next customer asks in the customer's words:")
    await run(environment, "search", "--toolset", "skills", "--limit", "1", "my new phone does not show my lamps")
    say("And this is a playbook whole: each step says how many conversations support it.")
    found = await run(environment, "skills", "search", "--json", "--limit", "1", "valve makes noise all night", most=0)
    await run(environment, "skills", "show", json.loads(found)["matches"][0]["skill_id"], most=38)


async def run(environment: Mapping[str, str], *arguments: str, most: int | None = None) -> str:
    """Show a command and what it answers, at most the first `most` lines of it, which are then returned whole."""
    shown = " ".join(f"'{argument}'" if " " in argument else argument for argument in arguments)
    console.print(f"\n[bold cyan]$ refdesk {shown}[/]", soft_wrap=True)
    sys.stdout.flush()
    command = [sys.executable, "-m", "refdesk", *arguments]
    if most is None:
        await anyio.run_process(command, env=environment, stdout=None, stderr=None)
        return ""
    done = await anyio.run_process(command, env=environment, stderr=None)
    lines = done.stdout.decode().splitlines()
    for line in lines[:most]:
        console.print(line, markup=False, no_wrap=True, overflow="ellipsis")
    if left := len(lines[most:]):
        console.print(f"… and {left} more line{'' if left == 1 else 's'}", style="dim")
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
        except* KeyboardInterrupt:
            console.print()


if __name__ == "__main__":
    main()
