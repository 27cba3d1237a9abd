"""`refdesk audit`: who did what, when and from where; whether the record is whole; and the record to take away."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

import click

from refdesk.cli import invocation
from refdesk.cli.groups import Group
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from refdesk.core.keeping.acts import Act, Stores
    from refdesk.core.writing.audit import Verdict

MOST_RECORDS = 3
"""Records shown for one act when people read it: a sync writes hundreds, and `--json` has them all."""

org_option = click.option(
    "--org", metavar="ORG", type=invocation.NAME, help="Only this org's; * is the server's own work. Default: all."
)


@click.group(cls=Group)
def audit() -> None:
    """Who did what to which record, when and from where. Nothing here is ever changed or removed."""


@audit.command()
@org_option
@click.option("--expect", metavar="NUMBER:DIGEST", help="An end of the log noted earlier: it must still be in it.")
@invocation.json_option
def verify(org: str | None, expect: str | None, as_json: bool) -> None:
    """Check that no entry was changed, removed or moved since it was written; exit status 1 if one was.

    That the end was cut off shows only against an end that was noted elsewhere: give it with --org and --expect.
    """
    if expect is not None and org is None:
        raise click.UsageError("--expect is the end of one org's log: say which with --org.")
    from refdesk.core.keeping import acts

    found: list[tuple[str, Verdict]] = _run(lambda stores: acts.verify(stores, org, expect))
    if as_json:
        invocation.print_json({"logs": [_to_json(*each) for each in found]})
    for each in () if as_json else found:
        click.echo(_tell(*each))
    sys.exit(any(verdict.broken for _, verdict in found))


@audit.command()
@org_option
@click.option("--agent", metavar="AGENT", type=invocation.NAME, help="Only what this agent did.")
@click.option("--action", metavar="NAME", help="Only this, such as store_knowledge or erase.")
@click.option("--record", metavar="ID", help="Only what was done to this record.")
@click.option("--refused", is_flag=True, help="Only what was refused.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many, the last ones.")
@invocation.json_option
def show(
    org: str | None,
    agent: str | None,
    action: str | None,
    record: str | None,
    refused: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Print what was done last, oldest first."""
    from refdesk.core.keeping import acts

    wanted = acts.Wanted(agent, action, record, refused)

    async def collect(stores: Stores) -> list[Act]:
        page = await acts.list_newest(stores, org, wanted, limit)
        found = page.acts
        while page.cursor is not None and len(found) < limit:
            page = await acts.list_newest(stores, org, wanted, limit - len(found), page.cursor)
            found += page.acts
        return found

    found: list[Act] = _run(collect)[::-1]
    if as_json:
        invocation.print_json({"entries": [acts.write_act(act) for act in found]})
    else:
        click.echo("\n".join(map(_tell_act, found)) or "Nothing is on record.")


@audit.command()
@org_option
@click.option(
    "--output", type=invocation.PathType(dir_okay=False, writable=True), help="A file. Default: standard output."
)
def export(org: str | None, output: str | None) -> None:
    """Write the log as JSON lines, and at the end of each org's the end to check against later."""
    from refdesk.core.keeping import acts

    async def write(stores: Stores, stream: TextIO) -> None:
        async for act in acts.list_all(stores, org):
            stream.write(json.dumps(acts.write_act(act), ensure_ascii=False) + "\n")
        for store, verdict in await acts.verify(stores, org):
            stream.write(json.dumps({"org": verdict.org, "end": acts.write_anchor(store, verdict)}) + "\n")

    if output is None:
        _run(lambda stores: write(stores, sys.stdout))
        return
    with click.open_file(output, "w", "utf-8", atomic=True) as stream:
        _run(lambda stores: write(stores, stream))  # pyright: ignore[reportArgumentType]


def _run(work: Callable[[Stores], Awaitable[Any]]) -> Any:  # noqa: ANN401 - what the work returns
    import anyio

    from refdesk.app import open_desk
    from refdesk.core.keeping import acts
    from refdesk.factories.toolsets import load_toolsets

    settings = invocation.load()

    async def run() -> Any:  # noqa: ANN401 - as above
        toolsets = load_toolsets(["knowledge", "skills"], settings)
        async with open_desk(settings, toolsets, in_background=False) as desk:
            base = await desk.get_base()
            apart = {name: each.knowledge_base.store for name, each in base.apart.items()}
            return await work({acts.MAIN: base.knowledge_base.store, **apart})

    return anyio.run(run)


def _to_json(store: str, verdict: Verdict) -> dict[str, Any]:
    from refdesk.core.keeping.acts import write_anchor

    broken = {"number": verdict.broken.number, "reason": verdict.broken.reason} if verdict.broken else None
    return {"org": verdict.org, "entries": verdict.entries, "end": write_anchor(store, verdict), "broken": broken}


def _tell(store: str, verdict: Verdict) -> str:
    from refdesk.core.keeping.acts import write_anchor

    if verdict.broken is not None:
        return f"{verdict.org}: BROKEN at entry {verdict.broken.number}: {verdict.broken.reason}."
    held = say_count(verdict.entries, "entry holds", "entries hold")
    return f"{verdict.org}: {held}. The end, to note elsewhere: {write_anchor(store, verdict)}"


def _tell_act(shown: Act) -> str:
    entry = shown.entry
    act: Any = entry.act
    records: list[Any] = act.get("records", [])
    told = [f"{each['change']} {each['toolset']}/{each['id']} v{each['version']}" for each in records[:MOST_RECORDS]]
    told += [f"and {len(records) - MOST_RECORDS} more"] if len(records) > MOST_RECORDS else []
    told += [f"{name}={value}" for name, value in act.get("details", {}).items()]
    place = " ".join(filter(None, (act["transport"], act.get("address"), act.get("credential"))))
    outcome = "" if act["outcome"] == "done" else f" {act['outcome'].upper()}"
    stamp = datetime.isoformat(entry.at, timespec="seconds").replace("+00:00", "Z")
    what = f"{act['action']}{outcome} {', '.join(told)}".rstrip()
    return f"{stamp} {entry.org}#{entry.number} {act.get('agent', 'nobody')} ({place}) {what}"
