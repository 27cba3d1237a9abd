"""`refdesk skills`: learns playbooks from transcripts, and searches and shows them with their history."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import invocation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from refdesk.app import Desk
    from refdesk.settings import Settings
    from refdesk.toolsets.skills.records import Skill
    from refdesk.toolsets.skills.transcript_files import SourceTranscript

NAME = "skills"
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


@click.group()
def skills() -> None:
    """Learn playbooks from support conversations, find them and see how they changed."""


@skills.command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--confirmed", is_flag=True, help="The customers confirmed that it was resolved.")
@json_option
def learn(files: tuple[Path, ...], confirmed: bool, as_json: bool) -> None:
    """Learn a skill from each conversation in FILEs: transcripts, or JSON Lines with a conversation a line.

    What is known already is not learned twice. Exit status 1 if a conversation could not be learned.
    """

    from refdesk.toolsets.skills.transcript_files import read_transcripts

    settings = _load()
    transcripts = [transcript for file in files for transcript in read_transcripts(file)]
    with _progress(len(transcripts)) as advance:
        learned = _learn(settings, transcripts, confirmed, advance)
    if as_json:
        _print_json(learned)
    else:
        for one in learned:
            click.echo(describe(one))
        click.echo(summarise(learned), err=True)
    sys.exit(any("error" in one for one in learned))


@skills.command()
@click.argument("query")
@click.option("--limit", default=5, show_default=True, type=click.IntRange(1, 50), help="At most this many.")
@click.option("--min-score", default=0.0, type=click.FloatRange(0, 1), help="Only skills with at least this score.")
@json_option
def search(query: str, limit: int, min_score: float, as_json: bool) -> None:
    """Find skills for a customer's problem, QUERY, in the customer's words."""
    import anyio

    arguments = {"query": query, "top_k": limit, "min_score": min_score}
    answer = anyio.run(_ask, _load(), "search_skills", arguments)
    if as_json:
        _print_json(answer)
    else:
        from refdesk.cli import views

        views.show(answer, query)


@skills.command()
@click.argument("skill_id", metavar="ID")
@json_option
def show(skill_id: str, as_json: bool) -> None:
    """Print the skill with this ID: its status, its conditions and its playbook."""
    skill = _read_history(skill_id)[-1]
    if as_json:
        _print_json(_to_json(skill))
    else:
        click.echo(render(skill), nl=False)


@skills.command()
@click.argument("skill_id", metavar="ID")
@json_option
def history(skill_id: str, as_json: bool) -> None:
    """List the versions of the skill with this ID, oldest first, with what each changed."""
    versions = _read_history(skill_id)
    if as_json:
        _print_json([{**_to_json(skill), "changes": list(skill.changes)} for skill in versions])
        return
    for skill in versions:
        click.echo(f"Version {skill.version} · {skill.updated_at:%Y-%m-%d %H:%M} UTC · made by {skill.made_by}")
        for change in skill.changes:
            click.echo(f"  {_printable(change)}")


@skills.command()
@click.argument("skill_id", metavar="ID")
@click.argument("old", metavar="[FROM", required=False, type=click.IntRange(1))
@click.argument("new", metavar="TO]", required=False, type=click.IntRange(1))
def diff(skill_id: str, old: int | None, new: int | None) -> None:
    """Show how version TO of a skill differs from version FROM; by default, the present one from that before."""
    from difflib import unified_diff

    versions = {skill.version: skill for skill in _read_history(skill_id)}
    new = new or max(versions)
    old = old or max(new - 1, 1)
    for version in (old, new):
        if version not in versions:
            raise errors.NotFoundError(f"There is no version {version}; there are 1 to {max(versions)}.")
    before, after = (_render_stable(versions[version]).splitlines() for version in (old, new))
    lines = list(unified_diff(before, after, f"version {old}", f"version {new}", lineterm=""))
    click.echo("\n".join(lines) if lines else f"Versions {old} and {new} say the same.")


def describe(learned: Mapping[str, Any]) -> str:
    """Return the outcome of one conversation, on one line."""
    if "error" in learned:
        return f"failed   {learned['place']}: {learned['detail']}"
    word = "learned" if learned["created"] else "known"
    return f"{word:<8} {learned['place']}: {_printable(learned['title'])} ({learned['skill_id']})"


def summarise(learned: Sequence[Mapping[str, Any]]) -> str:
    """Return how many conversations were learned, known and failed."""
    counts = Counter("failed" if "error" in one else "learned" if one["created"] else "known" for one in learned)
    return ", ".join(f"{counts[word]} {word}" for word in ("learned", "known", "failed")) + "."


def render(skill: Skill) -> str:
    """Return a skill for a person to read."""
    when = "".join(f"- {condition}\n" for condition in skill.conditions)
    lead = f"## When to use it\n\n{skill.problem}\n\n" + (f"{when}\n" if when else "")
    head, _, rest = skill.resolution.partition("## Goal")
    return _printable(f"{head}{lead}## Goal{rest}")


def _render_stable(skill: Skill) -> str:
    """Return the content of a version, without its counters."""
    from refdesk.toolsets.skills.rendering import render_playbook

    facts = [f"Title: {skill.title}", f"Problem: {skill.problem}", *(f"Condition: {each}" for each in skill.conditions)]
    facts += [f"Keyword: {keyword}" for keyword in skill.keywords]
    # Without how many cases support each step: it grows with every version.
    playbook = replace(skill.playbook, cases=())
    return _printable("\n".join([*facts, "", render_playbook(playbook)]))


def _load() -> Settings:
    from refdesk.settings import load_settings

    settings = load_settings()
    invocation.configure_logging(settings.log_level)
    return settings


def _learn(
    settings: Settings, transcripts: Sequence[SourceTranscript], confirmed: bool, advance: Callable[[], None]
) -> list[dict[str, Any]]:
    """Return what was learned from each conversation, by the desk that runs as long as one does."""
    learned: list[dict[str, Any]] = []
    for number, transcript in enumerate(transcripts):
        try:
            answer = invocation.ask_desk("create_skill", _make_arguments(transcript, confirmed), names=(NAME,))
        except (errors.CallerError, errors.LanguageModelError) as error:
            learned.append(_describe_failure(transcript, error))
        else:
            if answer is None:
                import anyio

                return learned + anyio.run(_learn_alone, settings, transcripts[number:], confirmed, advance)
            learned.append(_describe_learned(transcript, answer))
        advance()
    return learned


async def _learn_alone(
    settings: Settings, transcripts: Sequence[SourceTranscript], confirmed: bool, advance: Callable[[], None]
) -> list[dict[str, Any]]:
    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets

    toolsets = load_toolsets([NAME], settings)
    learned: list[dict[str, Any]] = []
    async with open_desk(settings, toolsets, in_background=False) as desk:
        for transcript in transcripts:
            try:
                answer = await _run(desk, "create_skill", _make_arguments(transcript, confirmed))
                learned.append(_describe_learned(transcript, answer))
            except (errors.CallerError, errors.LanguageModelError) as error:
                learned.append(_describe_failure(transcript, error))
            advance()
    return learned


def _make_arguments(transcript: SourceTranscript, confirmed: bool) -> dict[str, object]:
    return {"conversation": transcript.text, "resolution_confirmed": confirmed}


def _describe_learned(transcript: SourceTranscript, answer: Mapping[str, Any]) -> dict[str, Any]:
    shown = ("skill_id", "title", "created", "similarity")
    return {"place": transcript.place, **{name: answer[name] for name in shown if name in answer}}


def _describe_failure(transcript: SourceTranscript, error: errors.RefdeskError) -> dict[str, Any]:
    return {"place": transcript.place, "error": error.code, "detail": error.message}


async def _ask(settings: Settings, operation: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    answer = invocation.ask_desk(operation, arguments, names=(NAME,))
    if answer is not None:
        return answer
    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets

    async with open_desk(settings, load_toolsets([NAME]), in_background=False) as desk:
        return await _run(desk, operation, arguments)


async def _run(desk: Desk, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    [operation] = [operation for operation in desk.toolsets[0].operations if operation.name == name]
    return await invocation.run(desk, operation, arguments)


def _read_history(skill_id: str) -> list[Skill]:
    """Return every version of a skill, the present one last.

    Raises:
        NotFoundError: There is no such skill.
    """
    import anyio

    versions = anyio.run(_get_history, _load(), skill_id)
    if not versions:
        raise errors.NotFoundError(f"There is no skill {skill_id}; refdesk skills search shows the ids.")
    return versions


async def _get_history(settings: Settings, skill_id: str) -> list[Skill]:
    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets
    from refdesk.server.principals import local_principal
    from refdesk.toolsets.skills.learning import get_queries

    toolsets = load_toolsets([NAME])
    async with open_desk(settings, toolsets, in_background=False) as desk:
        context = await desk.get_context(local_principal(settings, toolsets, "cli"), NAME)
        return await get_queries(context).get_history(skill_id)


def _to_json(skill: Skill) -> dict[str, Any]:
    from refdesk.server import answers
    from refdesk.toolsets.skills.models import to_skill_document

    return answers.to_json(to_skill_document(skill))


def _print_json(value: object) -> None:
    from refdesk.server.answers import to_text

    click.echo(to_text(value))


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


@contextmanager
def _progress(total: int) -> Generator[Callable[[], None]]:
    """Yield what counts one more conversation on a terminal; nothing is shown elsewhere."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("Learning"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)
