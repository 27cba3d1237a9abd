"""`refdesk skills`: learns playbooks from transcripts, and searches and shows them with their history."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import invocation, skill_folders
from refdesk.cli.groups import Group
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


NAME = "skills"


@click.group(cls=Group)
def skills() -> None:
    """Learn playbooks from support conversations, find them and see how they changed."""


skills.add_command(skill_folders.export)
skills.add_command(skill_folders.import_)


@skills.command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=invocation.PathType(exists=True, path_type=Path),
)
@click.option("--confirmed", is_flag=True, help="The customers confirmed that it was resolved.")
@click.option("--dry-run", is_flag=True, help="Only show which skills would be learned from which conversations.")
@invocation.caller_options
@invocation.json_option
def learn(
    files: tuple[Path, ...], confirmed: bool, dry_run: bool, org: str | None, agent: str | None, as_json: bool
) -> None:
    """Learn skills from the conversations in FILEs and folders, one of all that are about the same problem.

    A file is a transcript, JSON Lines with a conversation a line, or an export of tickets. What is known already is not
    learned twice. Exit status 1 if a conversation could not be learned.
    """
    from refdesk.toolsets.skills.transcript_files import read_transcripts

    texts = [{"place": each.place, "text": each.text} for file in files for each in read_transcripts(file)]
    arguments = {"confirmed": confirmed}
    if dry_run:
        _show_plan(invocation.work((NAME,), "plan", arguments, org, agent, texts=texts), as_json)
        return
    with _progress(len(texts)) as advance:
        done = invocation.work((NAME,), "learn", arguments, org, agent, texts=texts, advance=advance)
    learned = done["learned"]
    if as_json:
        invocation.print_json(done)
    else:
        for one in learned:
            click.echo(describe(one))
        click.echo(summarise(learned), err=True)
        for pair in done["near"]:
            click.echo(f"Perhaps one problem: refdesk skills merge {pair['one']} {pair['other']}", err=True)
    sys.exit(any("error" in one for one in learned))


@skills.command()
@click.argument("query")
@click.option("--limit", default=5, show_default=True, type=click.IntRange(1, 50), help="At most this many.")
@click.option("--min-score", default=0.0, type=click.FloatRange(0, 1), help="Only skills with at least this score.")
@invocation.caller_options
@invocation.json_option
def search(query: str, limit: int, min_score: float, org: str | None, agent: str | None, as_json: bool) -> None:
    """Find skills for a customer's problem, QUERY, in the customer's words."""
    arguments = {"query": query, "top_k": limit, "min_score": min_score}
    answer = invocation.ask(NAME, "search_skills", arguments, org, agent)
    if as_json:
        invocation.print_json(answer)
    else:
        from refdesk.cli import views

        views.show(answer, query)


@skills.command("list")
@click.option("--product-area", metavar="AREA", help="Only skills of this product area.")
@click.option("--issue-type", metavar="TYPE", help="Only skills of this type of issue.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 200), help="At most this many.")
@click.option("--offset", default=0, type=click.IntRange(0), help="Leave out this many first.")
@invocation.cursor_option
@invocation.caller_options
@invocation.json_option
def list_skills(
    product_area: str | None,
    issue_type: str | None,
    limit: int,
    offset: int,
    cursor: str | None,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """List skills without a query, those refined last first, and how many there are of each product area."""
    from refdesk.cli import views_of_skills

    narrowed = {"product_area": product_area, "issue_type": issue_type}
    given = {**narrowed, "limit": limit, "offset": offset, "cursor": cursor}
    answer = invocation.ask(NAME, "list_skills", given, org, agent)
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(views_of_skills.render_list(answer))


@skills.command()
@click.argument("skill_id", metavar="ID")
@click.argument("outcome", type=click.Choice(["resolved", "likely_resolved", "likely_failed", "failed"]))
@click.option("--version", type=click.IntRange(1), help="The version that was followed. Default: the present one.")
@click.option("--evidence", default="", help="What shows it, such as the customer's words.")
@invocation.caller_options
@invocation.json_option
def report(
    skill_id: str, outcome: str, version: int | None, evidence: str, org: str | None, agent: str | None, as_json: bool
) -> None:
    """Say how following the skill with this ID went: OUTCOME moves its confidence."""
    given = {"skill_id": skill_id, "outcome": outcome, "version": version, "evidence": evidence}
    _show_standing(invocation.ask(NAME, "report_outcome", given, org, agent), as_json)


@skills.command("withdraw-outcome")
@click.argument("skill_id", metavar="ID")
@click.argument("report_id", metavar="REPORT")
@invocation.caller_options
@invocation.json_option
def withdraw_outcome(skill_id: str, report_id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Take back the outcome REPORT of the skill with this ID, reported by mistake, and all that it did."""
    arguments = {"skill_id": skill_id, "report_id": report_id}
    _show_standing(invocation.ask(NAME, "withdraw_outcome", arguments, org, agent), as_json)


def _show_standing(stands: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        invocation.print_json(stands)
        return
    standing = f"version {stands['version']}, confidence {stands['confidence']:.2f}, report {stands['report_id']}"
    click.echo(f"{stands['skill_id']}: {standing}")


@skills.command()
@click.argument("skill_id", metavar="ID")
@invocation.caller_options
@invocation.json_option
def show(skill_id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Print the skill with this ID: its playbook, how its versions worked, and the evidence of each step."""
    from refdesk.cli import views_of_skills

    skill = _read_history(skill_id, org, agent)[-1]
    history = invocation.ask(NAME, "get_skill_history", {"skill_id": skill_id}, org, agent)
    if as_json:
        invocation.print_json({**skill["record"], "history": history})
    else:
        click.echo(f"{_printable(skill['text'])}\n{views_of_skills.render_history(history)}", nl=False)


@skills.command()
@click.argument("skill_id", metavar="A")
@click.argument("other_id", metavar="B")
@invocation.caller_options
@invocation.json_option
def merge(skill_id: str, other_id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Make one skill of two about the same problem: A learns from all conversations of B, which is withdrawn."""
    answer = invocation.ask(NAME, "merge_skills", {"skill_id": skill_id, "other_id": other_id}, org, agent)
    _tell_merged(answer, as_json, f"refdesk skills unmerge {other_id} undoes it.")


@skills.command()
@click.argument("skill_id", metavar="B")
@invocation.caller_options
@invocation.json_option
def unmerge(skill_id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Make B, which was merged into another skill, a skill of its own again, with its conversations."""
    answer = invocation.ask(NAME, "unmerge_skills", {"skill_id": skill_id}, org, agent)
    _tell_merged(answer, as_json, f"The other one is {answer['other_id']}.")


@skills.command()
@click.argument("skill_id", metavar="ID")
@click.option("--case", "chosen", multiple=True, metavar="CASE", help="A conversation that goes; by default, found.")
@click.option("--dry-run", is_flag=True, help="Only show what would become of it.")
@invocation.caller_options
@invocation.json_option
def split(
    skill_id: str, chosen: tuple[str, ...], dry_run: bool, org: str | None, agent: str | None, as_json: bool
) -> None:
    """Make two skills of one whose conversations are about two problems; merging them undoes it."""
    arguments = {"skill_id": skill_id, "cases": list(chosen), "dry_run": dry_run}
    answer = invocation.ask(NAME, "split_skill", arguments, org, agent)
    if dry_run and not as_json:
        cases = say_count(len(answer["cases"]), "conversation")
        click.echo(f"{cases} would become “{_printable(answer['other_title'])}”:")
        for case in answer["cases"]:
            click.echo(f"  {case}")
        return
    _tell_merged(answer, as_json, f"refdesk skills merge {skill_id} {answer['other_id']} undoes it.")


def _tell_merged(answer: Mapping[str, Any], as_json: bool, more: str) -> None:
    if as_json:
        invocation.print_json(answer)
        return
    click.echo(f"{_printable(answer['title'])} ({answer['skill_id']}), version {answer['version']}. {more}")
    for change in answer["changes"]:
        click.echo(f"  {_printable(change)}")


@skills.command()
@click.argument("skill_id", metavar="ID")
@invocation.caller_options
@invocation.json_option
def history(skill_id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """List the versions of the skill with this ID, oldest first, with what each changed."""
    versions = _read_history(skill_id, org, agent)
    if as_json:
        invocation.print_json({"versions": [{**each["record"], "changes": each["changes"]} for each in versions]})
        return
    for each in versions:
        record, at = each["record"], datetime.fromisoformat(each["record"]["updated_at"])
        click.echo(f"Version {record['version']} · {at:%Y-%m-%d %H:%M} UTC · made by {record['made_by']}")
        for change in each["changes"]:
            click.echo(f"  {_printable(change)}")


@skills.command()
@click.argument("skill_id", metavar="ID")
@click.argument("old", metavar="FROM", required=False, type=click.IntRange(1))
@click.argument("new", metavar="TO", required=False, type=click.IntRange(1))
@invocation.caller_options
def diff(skill_id: str, old: int | None, new: int | None, org: str | None, agent: str | None) -> None:
    """Show how version TO of a skill differs from version FROM; by default, the present one from that before."""
    from difflib import unified_diff

    versions: dict[int, dict[str, Any]] = {
        each["record"]["version"]: each for each in _read_history(skill_id, org, agent)
    }
    new = new or max(versions)
    old = old or max(new - 1, 1)
    for version in (old, new):
        if version not in versions:
            raise errors.NotFoundError(f"There is no version {version}; there are 1 to {max(versions)}.")
    before, after = (_printable(versions[version]["content"]).splitlines() for version in (old, new))
    lines = list(unified_diff(before, after, f"version {old}", f"version {new}", lineterm=""))
    click.echo("\n".join(lines) if lines else f"Versions {old} and {new} say the same.")


def describe(learned: Mapping[str, Any]) -> str:
    """Return the outcome of one conversation, on one line."""
    if "error" in learned:
        return f"failed   {learned['place']}: {learned['detail']}"
    word = "learned" if learned["created"] else "known"
    return f"{word:<8} {learned['place']}: {_printable(learned['title'])} ({learned['skill_id']})"


def summarise(learned: Sequence[Mapping[str, Any]]) -> str:
    """Return how many conversations were learned, were already known, or failed."""
    counts = Counter("failed" if "error" in one else "learned" if one["created"] else "known" for one in learned)
    return ", ".join(f"{counts[word]} {word}" for word in ("learned", "known", "failed")) + "."


def _show_plan(plan: Mapping[str, Sequence[Mapping[str, Any]]], as_json: bool) -> None:
    if as_json:
        invocation.print_json(plan)
        return
    for one in plan["skills"]:
        click.echo(f"{say_count(len(one['places']), 'conversation'):>19}: {_printable(one['title'])}")
        click.echo(f"        {_printable(', '.join(one['places'][:5]))}{' …' if len(one['places']) > 5 else ''}")
    for one in plan["near"]:
        click.echo(f"Perhaps one problem: {_printable(one['one'])} | {_printable(one['other'])}")
    for one in plan["like"]:
        known = f"{_printable(one['known'])} ({one['skill_id']})"
        click.echo(f"Perhaps one problem: {_printable(one['title'])} | {known}, which is there")
    for one in plan["splits"]:
        sizes = " and ".join(map(str, one["sizes"]))
        click.echo(f"Perhaps several problems: {_printable(one['title'])} ({one['skill_id']}), {sizes} conversations")
        click.echo(f"  refdesk skills split {one['skill_id']} makes two of it")
    for one in plan["failed"]:
        click.echo(f"failed   {one['place']}: {one['detail']}")
    click.echo(f"{say_count(len(plan['skills']), 'skill')} would be learned, {len(plan['known'])} known.", err=True)


def _read_history(skill_id: str, org: str | None, agent: str | None) -> list[dict[str, Any]]:
    """Return every version of a skill, the current one last; see `server.local.work`.

    Raises:
        NotFoundError: There is no such skill.
    """
    versions = invocation.work((NAME,), "versions", {"skill_id": skill_id}, org, agent)
    if not versions:
        raise errors.NotFoundError(f"There is no skill {skill_id}; refdesk skills search shows the ids.")
    return versions


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


@contextmanager
def _progress(total: int) -> Generator[Callable[[], None]]:
    """Yield a function that counts one more conversation on a terminal; nothing is shown elsewhere."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("Learning"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)
