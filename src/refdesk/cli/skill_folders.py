"""`refdesk skills export` and `import`: skills as folders of the Agent Skills format on this disk."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import invocation
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLSET = "skills"
FORMAT = "agent-skills"
SKILL_FILE = "skill.md"
MOST_BYTES = 300_000
"""Largest size of a file that is read."""

BATCH_BYTES = 1_000_000
"""Total size of the files that are imported with one call."""

MOST_AT_ONCE = 50
MOST_PATH = 400
MOST_READ = 1000
"""Most files read from one folder."""

format_option = click.option(
    "--format", "form", type=click.Choice([FORMAT]), default=FORMAT, show_default=True, help="What the folders are."
)


@click.command("export")
@format_option
@click.argument("folder", metavar="FOLDER", type=invocation.PathType(path_type=Path, file_okay=False))
@click.option("--id", "ids", metavar="ID", multiple=True, help="Only this skill; say it once for each.")
@invocation.caller_options
def export(form: str, folder: Path, ids: tuple[str, ...], org: str | None, agent: str | None) -> None:
    """Write skills into FOLDER, each as a folder with a SKILL.md, where agents find them.

    What else is in FOLDER stays. Each skill's folder is whole or as it was before.
    """
    del form
    settings = invocation.load(org, agent)
    count, unknown = 0, list[str]()
    for exported in invocation.ask_pages(settings, TOOLSET, "export_skills", {"skill_ids": list(ids) or None}):
        for skill in exported["folders"]:
            _write(folder, skill)
            count += 1
        unknown += [each["reason"] for each in exported.get("unknown", ())]
    if unknown:
        raise errors.NotFoundError(" ".join([*unknown, f"{say_count(count, 'skill')} written."]))
    click.echo(f"{say_count(count, 'skill')} written to {folder}.", err=True)


@click.command("import")
@format_option
@click.argument(
    "paths", metavar="FOLDER...", nargs=-1, required=True, type=invocation.PathType(exists=True, path_type=Path)
)
@click.option("--dry-run", is_flag=True, help="Change nothing, only say what would become of each.")
@invocation.caller_options
@invocation.json_option
def import_(
    form: str, paths: tuple[Path, ...], dry_run: bool, org: str | None, agent: str | None, as_json: bool
) -> None:
    """Take over the skills in FOLDERs: each folder with a SKILL.md in it, however deep.

    A skill that was exported here and edited becomes a new version. Importing twice adds nothing. Exit status 1 if a
    folder was not taken over.
    """
    del form
    settings = invocation.load(org, agent)
    read = [_read(folder) for path in paths for folder in _find(path)]
    if not read:
        raise errors.InvalidInputError("There is no folder with a SKILL.md in it.")
    done: list[dict[str, Any]] = []
    for batch in _gather([folder for folder, _ in read]):
        arguments = {"folders": batch, "dry_run": dry_run}
        for answer in invocation.ask_pages(settings, TOOLSET, "import_skills", arguments):
            done += answer["folders"]
    for one, (_, left_out) in zip(done, read, strict=True):
        one["notes"] = [*left_out, *one["notes"]]
    if as_json:
        invocation.print_json({"folders": done})
    else:
        for one in done:
            click.echo("\n".join(_describe(one)))
        counts = Counter(one["result"] for one in done)
        click.echo(", ".join(f"{number} {result}" for result, number in counts.items()) + ".", err=True)
    sys.exit(any(one["result"] in ("kept", "broken") for one in done))


def _write(folder: Path, skill: Mapping[str, Any]) -> None:
    """Write a skill's folder completely, then move it into place.

    Raises:
        ConfigurationError: The folder cannot be written there.
    """
    target, new = folder / skill["name"], folder / f".{skill['name']}.{os.getpid()}"
    old = folder / f".{skill['name']}.{os.getpid()}.old"
    try:
        for file in skill["files"]:
            path = new / file["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file["text"], encoding="utf-8", newline="")
        if target.exists():
            target.rename(old)
        new.rename(target)
    except OSError as error:
        raise errors.ConfigurationError(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _find(path: Path) -> Iterator[Path]:
    """Yield the folders of skills at or below a path, sorted by name; a skill's own subfolders are not searched."""
    if not path.is_dir():
        raise errors.InvalidInputError(f"{path} is no folder.")
    names = sorted(path.iterdir())
    if any(each.name.casefold() == SKILL_FILE and each.is_file() for each in names):
        yield path.resolve()
        return
    for each in names:
        if each.is_dir() and not each.is_symlink() and not each.name.startswith("."):
            yield from _find(each)


def _read(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return a folder in the form that is sent, and what cannot be sent: hidden files, links, and what is not text."""
    files: list[dict[str, str]] = []
    left_out: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_dir() and not path.is_symlink():
            continue
        is_hidden = any(part.startswith(".") for part in name.parts)
        text = None if is_hidden or len(name.as_posix()) > MOST_PATH else _read_text(path)
        if text is None or len(files) >= MOST_READ:
            left_out.append(f"The file {name.as_posix()} was left out: it is hidden, a link, too long or no text.")
        else:
            files.append({"path": name.as_posix(), "text": text})
    return {"name": folder.name, "files": files}, left_out


def _read_text(path: Path) -> str | None:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text


def _gather(folders: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the folders in order, in batches as large as one call takes."""
    batch: list[dict[str, Any]] = []
    size = 0
    for folder in folders:
        own = sum(len(file["text"].encode()) for file in folder["files"])
        if batch and (size + own > BATCH_BYTES or len(batch) >= MOST_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(folder)
        size += own
    yield batch


def _describe(one: Mapping[str, Any]) -> Iterator[str]:
    said = one["title"] or one["detail"]
    id = f" ({one['skill_id']})" if one["skill_id"] else ""
    yield _printable(f"{one['result']:<10}{one['name']}: {said}{id}")
    if one["title"] and one["detail"]:
        yield f"          {_printable(one['detail'])}"
    yield from (f"          {_printable(note)}" for note in one["notes"])


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
