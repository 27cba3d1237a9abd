"""`refdesk audit`: who did what, when and from where; whether the record is whole; and the record to take away."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

import click

from refdesk.cli import invocation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from refdesk.core.writing.audit import Verdict
    from refdesk.model import AuditEntry
    from refdesk.protocols import Store

PAGE = 1000

org_option = click.option("--org", metavar="ORG", help="Only this org's; * is the server's own work. Default: all.")


@click.group()
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
    verdicts = _run(lambda stores: _verify(stores, org, expect))
    if as_json:
        invocation.print_json({"logs": [_to_json(verdict) for verdict in verdicts]})
    for verdict in () if as_json else verdicts:
        click.echo(_tell(verdict))
    sys.exit(any(verdict.broken for verdict in verdicts))


@audit.command()
@org_option
@click.option("--agent", metavar="AGENT", help="Only what this agent did.")
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

    def passes(entry: AuditEntry) -> bool:
        act = entry.act
        wanted = agent in (None, act.get("agent")) and action in (None, act["action"])
        outcome = not refused or act["outcome"] != "done"
        return wanted and outcome and (record is None or record in json.dumps([act.get("records"), act.get("details")]))

    async def collect(stores: list[Store]) -> list[AuditEntry]:
        found = [entry async for entry in _read(stores, org) if passes(entry)]
        return sorted(found, key=lambda entry: entry.at)[-limit:]

    entries = _run(collect)
    for entry in entries:
        click.echo(json.dumps(_write(entry), ensure_ascii=False) if as_json else _tell_act(entry))


@audit.command()
@org_option
@click.option("--output", type=click.Path(dir_okay=False, writable=True), help="A file. Default: standard output.")
def export(org: str | None, output: str | None) -> None:
    """Write the log as JSON lines, and at the end of each org's the end to check against later."""

    async def write(stores: list[Store], stream: TextIO) -> None:
        async for entry in _read(stores, org):
            stream.write(json.dumps(_write(entry), ensure_ascii=False) + "\n")
        for verdict in await _verify(stores, org, None):
            stream.write(json.dumps({"org": verdict.org, "end": verdict.anchor}) + "\n")

    if output is None:
        _run(lambda stores: write(stores, sys.stdout))
        return
    with click.open_file(output, "w", "utf-8", atomic=True) as stream:
        _run(lambda stores: write(stores, stream))  # pyright: ignore[reportArgumentType]


def _run(work: Callable[[list[Store]], Awaitable[Any]]) -> Any:  # noqa: ANN401 - what the work returns
    import anyio

    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets

    settings = invocation.load()

    async def run() -> Any:  # noqa: ANN401 - as above
        toolsets = load_toolsets(["knowledge", "skills"], settings)
        async with open_desk(settings, toolsets, in_background=False) as desk:
            return await work([each.knowledge_base.store for each in (await desk.get_base()).each()])

    return anyio.run(run)


async def _verify(stores: list[Store], org: str | None, expect: str | None) -> list[Verdict]:
    from refdesk.core.writing.audit import verify

    verdicts: list[Verdict] = []
    for store in stores:
        orgs = await store.list_audited_orgs() if org is None else [org]
        verdicts += [await verify(store, each, expect) for each in orgs]
    return verdicts


async def _read(stores: list[Store], org: str | None) -> AsyncIterator[AuditEntry]:
    for store in stores:
        for each in await store.list_audited_orgs() if org is None else [org]:
            after = 0
            while entries := await store.get_audit(each, after, PAGE):
                for entry in entries:
                    yield entry
                after = entries[-1].number


def _to_json(verdict: Verdict) -> dict[str, Any]:
    broken = {"number": verdict.broken.number, "reason": verdict.broken.reason} if verdict.broken else None
    return {"org": verdict.org, "entries": verdict.entries, "end": verdict.anchor, "broken": broken}


def _tell(verdict: Verdict) -> str:
    if verdict.broken is not None:
        return f"{verdict.org}: BROKEN at entry {verdict.broken.number}: {verdict.broken.reason}."
    return f"{verdict.org}: {verdict.entries} entries hold. The end, to note elsewhere: {verdict.anchor}"


def _write(entry: AuditEntry) -> dict[str, Any]:
    chain = {"org": entry.org, "number": entry.number, "at": entry.at.isoformat()}
    return {**chain, "act": entry.act, "previous": entry.previous, "digest": entry.digest}


def _tell_act(entry: AuditEntry) -> str:
    act: Any = entry.act
    told = [
        f"{record['change']} {record['toolset']}/{record['id']} v{record['version']}"
        for record in act.get("records", ())
    ]
    told += [f"{name}={value}" for name, value in act.get("details", {}).items()]
    place = " ".join(filter(None, (act["transport"], act.get("address"), act.get("credential"))))
    outcome = "" if act["outcome"] == "done" else f" {act['outcome'].upper()}"
    stamp = datetime.isoformat(entry.at, timespec="seconds").replace("+00:00", "Z")
    what = f"{act['action']}{outcome} {', '.join(told)}".rstrip()
    return f"{stamp} {entry.org}#{entry.number} {act.get('agent', 'nobody')} ({place}) {what}"
