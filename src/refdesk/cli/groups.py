"""Groups of commands whose help never cuts off what each command is for."""

from __future__ import annotations

import re

import click

WHOLE = 1000
_FIRST_CLAUSE = re.compile(r"^(?:[^:;.]|\.(?!\s|$))+")


class Group(click.Group):
    """Lists each command with what it does, wrapped if that does not fit on a line; click would cut it off."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: D102 - as click has it
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, _tell_briefly(command)) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _tell_briefly(command: click.Command) -> str:
    """Return the first clause of a command's help."""
    told = _FIRST_CLAUSE.match(command.get_short_help_str(WHOLE))
    return told[0] if told is not None else ""
