"""`refdesk impact`: lists which entries and skills rely on what announcements change, and judges that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk.cli import invocation, views_of_entries
from refdesk.cli.groups import Group

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.app import Desk

_VERDICTS = ("confirm", "dismiss", "reopen")


@click.group(cls=Group, invoke_without_command=True)
@click.option("--until", metavar="DAY", help="Only what holds by this day, such as 2027-03-31, or within 90d.")
@click.option("--toolset", metavar="NAME", help="Only what this toolset keeps: knowledge or skills.")
@click.option("--announcement", metavar="ID", help="Only impacts of this announcement.")
@click.option("--id", metavar="ID", help="Only impacts on this entry or skill.")
@click.option(
    "--status",
    type=click.Choice(["told", "open", "confirmed", "dismissed"]),
    default="told",
    show_default=True,
    help="In which state.",
)
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="At most this many.")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="How many to skip.")
@invocation.cursor_option
@invocation.caller_options
@invocation.json_option
@click.pass_context
def impact(context: click.Context, as_json: bool, org: str | None, agent: str | None, **asked: object) -> None:
    """List what relies on what announcements retire or change, soonest first; its commands judge one."""
    if context.invoked_subcommand is not None:
        return
    from refdesk.kit import times

    if isinstance(until := asked["until"], str):
        asked["until"] = times.parse_future(until, times.get_now(), "--until").date().isoformat()
    answer = invocation.ask(None, "list_impacts", asked, org, agent, prepare=examine)
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(views_of_entries.printable(_render(answer)))


@impact.command()
@click.argument("verdict", type=click.Choice(_VERDICTS))
@click.argument("announcement")
@click.argument("id")
@click.option("--toolset", default="knowledge", show_default=True, help="What keeps the entry or skill.")
@click.option("--reason", metavar="TEXT", help="Why.")
@invocation.caller_options
@invocation.json_option
def judge(
    verdict: str,
    announcement: str,
    id: str,
    toolset: str,
    reason: str | None,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Confirm an impact, dismiss it for good, or reopen it: of an announcement on an entry or skill, by their ids."""
    given = {"verdict": verdict, "announcement": announcement, "id": id, "toolset": toolset, "reason": reason}
    answer = invocation.ask(None, "judge_impact", given, org, agent, prepare=examine)
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(f"The impact of {announcement} on {id} is {answer['status']}.")


async def examine(desk: Desk) -> None:
    """Find the impacts that no desk has found yet."""
    await desk.make_examiner(await desk.get_base()).run_until_done()


def _render(answer: Mapping[str, Any]) -> str:
    lines = [line for each in answer["impacts"] for line in _describe(each)]
    lines += views_of_entries.tell_more(answer)
    return "\n".join(lines) or answer.get("notice", "Nothing relies on what announcements change, as far as is known.")


def _describe(impact: Mapping[str, Any]) -> list[str]:
    announcement = impact["announcement"]
    judged = f", {impact['status']} by {impact['judgedBy']}" if "judgedBy" in impact else ""
    return [
        f"{impact.get('due', 'no day given')}  {impact['title']}  ({impact['toolset']} {impact['id']})",
        f"    {impact['change']}, {impact['confidence']:.0%} sure{judged}: {announcement['title']} "
        f"({announcement['id']})",
        f"    announced: {announcement['says']}",
        f"    written:   {impact['passage']}",
        "",
    ]
