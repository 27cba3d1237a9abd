"""`refdesk cases`: lists which entries contradict each other, and settles that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk.cli import invocation, views_of_entries
from refdesk.cli.groups import Group
from refdesk.cli.impact import examine

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERDICTS = ("both_hold", "dismiss", "reopen")


@click.group(cls=Group, invoke_without_command=True)
@click.option("--id", metavar="ID", help="Only cases of this entry.")
@click.option(
    "--standing",
    type=click.Choice(["open", "both_hold", "dismissed"]),
    default="open",
    show_default=True,
    help="How they stand.",
)
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="At most this many.")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="How many to skip.")
@invocation.cursor_option
@invocation.caller_options
@invocation.json_option
@click.pass_context
def cases(context: click.Context, as_json: bool, org: str | None, agent: str | None, **asked: object) -> None:
    """List entries that contradict each other, with both passages; its commands settle one."""
    if context.invoked_subcommand is not None:
        return
    answer = invocation.ask("knowledge", "list_cases", asked, org, agent, prepare=examine)
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(views_of_entries.printable(_render(answer)))


@cases.command()
@click.argument("verdict", type=click.Choice(_VERDICTS))
@click.argument("one_id", metavar="ID")
@click.argument("other_id", metavar="OTHER")
@click.option("--reason", metavar="TEXT", help="For whom both hold, or why it is no contradiction.")
@invocation.caller_options
@invocation.json_option
def settle(
    verdict: str, one_id: str, other_id: str, reason: str | None, org: str | None, agent: str | None, as_json: bool
) -> None:
    """Say that both entries hold, that they do not contradict each other, or reopen the case, by their ids."""
    given = {"verdict": verdict, "oneId": one_id, "otherId": other_id, "reason": reason}
    answer = invocation.ask("knowledge", "settle_case", given, org, agent, prepare=examine)
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(f"The case of {one_id} and {other_id} is {answer['standing'].replace('_', ' ')}.")


def _render(answer: Mapping[str, Any]) -> str:
    lines = [line for each in answer["cases"] for line in _describe(each)]
    lines += views_of_entries.tell_more(answer)
    return "\n".join(lines) or answer.get("notice", "No entries contradict each other, as far as is known.")


def _describe(case: Mapping[str, Any]) -> list[str]:
    settled = f", {case['standing']} by {case['settledBy']}" if "settledBy" in case else ""
    reason = [f"    reason: {case['reason']}"] if "reason" in case else []
    sides = [f"    {side['title']} ({side['id']}): {side['passage']}" for side in (case["one"], case["other"])]
    return [f"another {case['way']}, {case['confidence']:.0%} sure{settled}", *sides, *reason, ""]
