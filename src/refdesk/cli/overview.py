"""`refdesk` without a command: shows what is there and what to do next."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from refdesk import __version__
from refdesk.cli import desk, views_of_status
from refdesk.forwarder import identity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Step = tuple[str, str]


def show() -> None:
    """Print what is in the data folder, and which commands to run next."""
    desks = desk.list_running()
    report = desk.find_report(desks)
    lines = [f"refdesk {__version__}: the reference desk for AI agents", ""]
    lines += [views_of_status.render_desk(each, time.time()) for each in desks]
    home = identity.find_home()
    lines += [views_of_status.render_report(home, report)] if report else [f"Data folder {home}: nothing is kept yet."]
    steps = list_steps(desks, report)
    width = max(len(command) for command, _ in steps)
    lines += ["", "Next:", *(f"  {command:<{width}}  {what}" for command, what in steps)]
    click.echo("\n".join(lines))


def list_steps(desks: Sequence[Mapping[str, Any]], report: Mapping[str, Any] | None) -> list[Step]:
    """Return the commands that help most now, with what each does, the most useful first."""
    never = [each["toolset"] for each in report.get("syncs", []) if each["lastSuccess"] is None] if report else []
    is_empty = not report or not any(one.get("documents") for one in report["health"]["toolsets"].values())
    steps: list[Step] = []
    if not any(each["clients"] for each in desks):
        steps.append(("refdesk connect claude-code", "let an agent use it; also cursor, vscode, claude-desktop, …"))
    if report is None or never:
        steps.append((f"refdesk sync {(never or ['azure-updates'])[0]}", "read the vendor's announcements now"))
    steps.append(("refdesk knowledge store --title … --body …", "write something down"))
    if not is_empty:
        steps.append(("refdesk search …", "search everything at once"))
    steps.append(("refdesk open", "look at it in the browser"))
    if report and report["health"]["status"] != "ok":
        steps.append(("refdesk doctor", "say what is wrong and what to do"))
    return [*steps, ("refdesk --help", "every command")]
