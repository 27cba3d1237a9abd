"""Every command keeps the conventions of all: the same flags for the same things, and the same exit codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from refdesk.cli import cli
from refdesk.cli.invocation import AGENT, NAME, ORG

ID = "01900000-0000-7000-8000-000000000000"
CALLERS = {"knowledge", "skills", "updates", "articles", "search", "import"}
"""Groups and commands that act as a caller, who can be named."""

SILENT = {"serve", "worker", "connect", "completion", "export", "skills export", "skills diff", "audit export"}
"""Commands that answer nothing a program would read: they serve, ask, or write files and texts."""

MEANINGS = {
    "--json": "bool",
    "--yes": "bool",
    "--dry-run": "bool",
    "--force": "bool",
    "--org": "text",
    "--agent": "text",
    "--limit": "integer range",
    "--offset": "integer range",
    "--output": "path",
}

ARGUMENTS: Mapping[str, Sequence[str]] = {
    "serve": ("--port", "0"),
    "open": ("--print",),
    "connect": ("cursor", "--dry-run"),
    "worker": ("--until-idle",),
    "sync": ("azure-updates",),
    "search": ("x",),
    "knowledge store": ("--title", "T", "--body", "B"),
    "knowledge edit": (ID, "--body", "B"),
    "knowledge get": (ID,),
    "knowledge supersede": (ID, ID),
    "knowledge withdraw": (ID,),
    "knowledge restore": (ID,),
    "skills export": ("{folder}",),
    "skills import": ("{folder}",),
    "skills learn": ("{file}",),
    "skills search": ("x",),
    "skills report": (ID, "resolved"),
    "skills withdraw-outcome": (ID, ID),
    "skills show": (ID,),
    "skills merge": (ID, ID),
    "skills unmerge": (ID,),
    "skills split": (ID,),
    "skills history": (ID,),
    "skills diff": (ID,),
    "updates show": ("1",),
    "articles show": ("ka0000000000001AAA",),
    "export": ("knowledge",),
    "import": ("knowledge", "{file}", "--format", "jsonl"),
    "migrate": ("--from", "sqlite:////nowhere", "--to", "memory://"),
    "backup": ("{folder}/backup",),
    "restore": ("{file}",),
    "keys create": ("--agent", "a", "--scope", "knowledge:read"),
    "keys make": ("--agent", "a", "--scope", "knowledge:read"),
    "keys rotate": (ID,),
    "keys revoke": (ID,),
    "erase": ("--entry", ID, "--yes"),
    "models install": ("{folder}",),
    "models use": ("packaged",),
    "models remove": ("other",),
    "completion": ("bash",),
    "impact judge": ("confirm", "1", ID),
    "gaps judge": ("dismiss", ID),
    "cases settle": ("dismiss", ID, ID),
    "watch": ("--once",),
    "watches create": ("product", "AKS"),
    "watches delete": (ID,),
}
"""What a command must be given; others need nothing."""

NEEDS_NO_SETTINGS = {"completion", "logs", "stop", "connect"}
"""Whether or not the settings are right, these do their work."""


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if (each := command.get_command(context, name)) is not None:
                yield from walk(each, (*path, name))
    else:
        yield " ".join(path), command


COMMANDS = dict(walk(cli))


LOOKED_FOR = {("audit", "--org"), ("audit", "--agent"), ("erase", "--agent")}
"""Where a name is what to look for: the server's own, or one that no key could have any more."""


def list_options(command: click.Command) -> dict[str, click.Option]:
    return {name: each for each in command.params if isinstance(each, click.Option) for name in each.opts}


def find_faults(name: str, command: click.Command) -> list[str]:
    options = list_options(command)
    faults = [f"{name} {option} means something else" for option in options if _differs(option, options[option])]
    if name not in SILENT and "--json" not in options:
        faults.append(f"{name} has no --json")
    if name.split()[0] in CALLERS and not {"--org", "--agent"} <= options.keys():
        faults.append(f"{name} does not let one say who calls")
    for option, kind in {"--org": ORG, "--agent": AGENT}.items():
        if option in options and options[option].type is not (
            NAME if (name.split()[0], option) in LOOKED_FOR else kind
        ):
            faults.append(f"{name} {option} takes what is no name")
    faults += [f"{name} {option} is not explained" for option, each in options.items() if not each.help]
    return faults + ([] if command.help else [f"{name} is not explained"])


def _differs(option: str, found: click.Option) -> bool:
    kind = "bool" if found.is_flag else found.type.name.replace("file", "path")
    return option in MEANINGS and kind != MEANINGS[option]


def test_every_command_has_the_flags_that_all_have() -> None:
    assert [fault for name, command in COMMANDS.items() for fault in find_faults(name, command)] == []


def test_a_planted_command_that_goes_its_own_way_is_found() -> None:
    @click.command()
    @click.option("--limit", help="How many.")
    @click.option("--org")
    def planted(limit: str, org: str) -> None:
        """Do something."""

    assert set(find_faults("knowledge planted", planted)) == {
        "knowledge planted --limit means something else",
        "knowledge planted has no --json",
        "knowledge planted does not let one say who calls",
        "knowledge planted --org is not explained",
        "knowledge planted --org takes what is no name",
    }


def invoke(home: Path, arguments: Sequence[str], **variables: str) -> tuple[int, str]:
    environment = {"REFDESK_HOME": str(home), "REFDESK_EMBEDDER": "hashing", **variables}
    done = CliRunner().invoke(cli, list(arguments), env=environment)
    return done.exit_code, done.output


def complete(name: str, folder: Path) -> list[str]:
    file = folder / "file"
    file.touch()
    given = (part.format(folder=folder, file=file) for part in ARGUMENTS.get(name, ()))
    return [*name.split(), *given]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_0_a_wrong_flag_2_and_a_wrong_setting_1(name: str, tmp_path: Path) -> None:
    for flag in ("-h", "--help"):
        code, text = invoke(tmp_path, [*name.split(), flag])
        assert (code, f"refdesk {name}" in text.replace("Usage: cli", "Usage: refdesk")) == (0, True)
    code, text = invoke(tmp_path, [*complete(name, tmp_path), "--no-such-flag"])
    assert (code, "--no-such-flag" in text) == (2, True)
    if name not in NEEDS_NO_SETTINGS:
        code, text = invoke(tmp_path, complete(name, tmp_path), REFDESK_AGENT_RATE="many")
        assert (code, "REFDESK_AGENT_RATE" in text) == (1, True), text


@pytest.mark.parametrize("name", [name for name in COMMANDS if ID in ARGUMENTS.get(name, ())])
def test_what_is_not_there_is_2(name: str, tmp_path: Path) -> None:
    code, text = invoke(tmp_path, complete(name, tmp_path))
    assert (code, text.startswith(("Error: ", "Usage: "))) == (2, True), text
