"""Renders what `refdesk status` shows for people: desks with their clients, and what is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from refdesk.cli.views_of_entries import printable
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def render_desk(desk: Mapping[str, Any], now: float) -> str:
    """Return a desk as its `status` describes it: how long it has run, whom it serves, what it does.

    Args:
        desk: The desk's status.
        now: The current time, in seconds since 1970.
    """
    memory = f", {desk['memory'] / 1e6:.0f} MB" if desk["memory"] else ""
    also = f", also over HTTP at {desk['url']}" if desk.get("url") else ""
    work = ", ".join(desk["work"]) or "nothing"
    head = f"Desk {desk['pid']}, refdesk {desk['version']}, for {tell_time(now - desk['started'])}{memory}{also}"
    clients = desk["clients"]
    lines = [head, f"  serves {', '.join(desk['toolsets'])}; in the background: {work}"]
    for client in clients:
        name = client["client"] or "a client"
        calls = f", {client['calls']} calls in hand" if client["calls"] else ""
        since = tell_time(now - client["since"])
        lines.append(f"  {name} as {client['agent']} of {client['org']}, process {client['pid']}, for {since}{calls}")
    if not clients and desk["idle_seconds"]:
        lines.append(f"  no client; it ends {tell_time(desk['idle_seconds'])} after the last one left")
    return printable("\n".join(lines))


def render_report(home: str, report: Mapping[str, Any], now: datetime | None = None) -> str:
    """Return what a data folder holds: sizes, toolsets with their freshness, jobs, failures."""
    now, health = now or datetime.now(UTC), report["health"]
    sizes = report["sizes"]
    store = f", the store {tell_size(sizes['store'])} of it" if sizes["store"] else ""
    lines = [f"Data folder {home}: {tell_size(sizes['home'])}{store}"]
    width = max((len(name) for name in health["toolsets"]), default=0)
    syncs = {each["toolset"]: each for each in report.get("syncs", [])}
    for name, one in health["toolsets"].items():
        facts = [_count(one)] if "documents" in one else []
        facts += list(_tell_sync(syncs[name], now)) if name in syncs else []
        lines.append(f"  {name:<{width}}  {'; '.join(facts) or 'asked live'}")
    lines += [f"  {said}" for said in (*describe_embedding(report.get("embedding")), *_list_jobs(report, now))]
    lines += [f"{health['status'].capitalize()}: {problem}" for problem in health["problems"]]
    return printable("\n".join(lines))


def _count(one: Mapping[str, Any]) -> str:
    return say_count(one["documents"], "document")


def _tell_sync(sync: Mapping[str, Any], now: datetime) -> Iterator[str]:
    if sync["isRunning"]:
        of = f" of {sync['total']:,}" if sync["total"] else ""
        yield "being synced" + (f": {sync['read']:,}{of} read" if sync["read"] is not None else "")
    elif sync["lastSuccess"] is None:
        yield f"never synced: refdesk sync {sync['toolset']}"
    else:
        age = tell_time((now - datetime.fromisoformat(sync["lastSuccess"])).total_seconds())
        yield f"synced {age} ago{', and due again' if sync['isDue'] else ''}"
    if sync["lastErrorAt"]:
        age = tell_time((now - datetime.fromisoformat(sync["lastErrorAt"])).total_seconds())
        yield f"the last try failed {age} ago"


def _list_jobs(report: Mapping[str, Any], now: datetime) -> Iterator[str]:
    embedding, health = report.get("embedding"), report["health"]
    if embedding and embedding["failed"]:
        yield f"{embedding['failed']:,} could not be embedded: refdesk embeddings list says why"
    if report.get("setAside"):
        set_aside = say_count(report["setAside"], "record was", "records were")
        yield f"{set_aside} set aside, for what a source gave could not be read: refdesk doctor"
    if report.get("queue", {}).get("isShared"):
        yield "jobs are shared with workers through a queue"
    if "lastBackup" in health:
        age = tell_time((now - datetime.fromisoformat(health["lastBackup"])).total_seconds())
        yield f"backed up {age} ago"
    for org, size in report.get("orgs", {}).items():
        yield f"{org} keeps {tell_size(size)}"


def describe_embedding(state: Mapping[str, Any] | None) -> list[str]:
    """Return in a sentence how far embedding has come; nothing if all is embedded."""
    if not state or not (state["waiting"] or state["model"] != state["searchedBy"]):
        return []
    counts = f"{state['embedded']:,} of {state['documents']:,} documents"
    if state["model"] == state["searchedBy"]:
        return [f"{counts} have their vectors"]
    return [f"{counts} are embedded anew by {state['model']}; {state['searchedBy']} is searched meanwhile"]


def tell_time(seconds: float) -> str:
    """Return a length of time in its largest fitting unit."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length * (1 if unit != "days" else 2):
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


def tell_size(size: int) -> str:
    """Return a number of bytes in its largest fitting unit; each unit is a thousand of the one before."""
    for unit, length in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= length:
            return f"{size / length:.1f} {unit}"
    return f"{size} B"
