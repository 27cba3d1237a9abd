"""`refdesk gaps`: lists the questions that nothing answers, and says what becomes of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk.cli import invocation, views_of_entries
from refdesk.cli.groups import Group
from refdesk.cli.impact import examine
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERDICTS = ("dismiss", "answer", "reopen")


@click.group(cls=Group, invoke_without_command=True)
@click.option(
    "--status",
    type=click.Choice(["open", "answered", "dismissed", "all"]),
    default="open",
    show_default=True,
    help="In which state.",
)
@click.option("--mine", is_flag=True, help="Only what the agent asked itself.")
@click.option("--toolset", metavar="NAME", help="Only what this toolset was asked.")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="At most this many.")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="How many to skip.")
@invocation.cursor_option
@invocation.caller_options
@invocation.json_option
@click.pass_context
def gaps(context: click.Context, as_json: bool, org: str | None, agent: str | None, **asked: object) -> None:
    """List the questions that nothing here answers, most asked first; its commands judge one."""
    if context.invoked_subcommand is not None:
        return
    answer = invocation.ask(None, "list_gaps", asked, org, agent, prepare=examine)
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(views_of_entries.printable(_render(answer)))


@gaps.command()
@click.argument("verdict", type=click.Choice(_VERDICTS))
@click.argument("id")
@click.option("--toolset", metavar="NAME", help="With `answer`: what keeps the answer.")
@click.option("--answer-id", metavar="ID", help="With `answer`: its id.")
@click.option("--reason", metavar="TEXT", help="Why.")
@invocation.caller_options
@invocation.json_option
def judge(
    verdict: str,
    id: str,
    toolset: str | None,
    answer_id: str | None,
    reason: str | None,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Dismiss a gap, say what answers it, or reopen it, by its id."""
    given = {"verdict": verdict, "id": id, "toolset": toolset, "answerId": answer_id, "reason": reason}
    answer = invocation.ask(None, "judge_gap", given, org, agent)
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(f"The gap {id} is {answer['status']}.")


def _render(answer: Mapping[str, Any]) -> str:
    lines = [line for each in answer["gaps"] for line in _describe(each)]
    lines += views_of_entries.tell_more(answer)
    if answer["dropped"]:
        lines.append(f"{say_count(answer['dropped'], 'question')} could not be kept, for too many came at once.")
    return "\n".join(lines) or answer.get("notice", "There are none.")


def _describe(gap: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{gap['count']} ×  {gap['question']}  ({gap['id']})",
        f"    {gap['status']}; asked by {', '.join(gap['agents'])} of {', '.join(gap['toolsets'])}, "
        f"last {gap['lastAsked'][:10]}",
        *(f"    also: {wording}" for wording in gap["wordings"]),
    ]
    if "nearest" in gap:
        lines.append(f"    nearest: {gap['nearest']['title']} ({gap['nearest']['toolset']} {gap['nearest']['id']})")
    if "answer" in gap:
        lines.append(f"    answered by: {gap['answer']['title']} ({gap['answer']['toolset']} {gap['answer']['id']})")
    if "judgedBy" in gap:
        lines.append(f"    judged by {gap['judgedBy']}: {gap.get('reason', 'no reason given')}")
    return [*lines, ""]
