"""The command line: `refdesk serve`, `search`, `keys` and the rest.

Only the command that is given is imported, and it imports what it needs when it runs.
"""

from __future__ import annotations

import traceback
from importlib import import_module
from typing import Any, cast

import click

from refdesk import __version__, errors
from refdesk.cli.groups import Group
from refdesk.forwarder.config_file import UnreadableError

_COMMANDS = {
    **{name: f"{name}:{name}" for name in ("articles", "audit", "backup", "completion", "config", "connect", "doctor")},
    **{name: f"{name}:{name}" for name in ("embeddings", "erase", "export", "impact", "keys", "knowledge", "migrate")},
    **{name: f"{name}:{name}" for name in ("cases", "gaps")},
    **{name: f"{name}:{name}" for name in ("models", "search", "serve", "skills", "sync", "updates", "worker")},
    "import": "importing:import_",
    "logs": "desk_log:logs",
    "open": "opening:open_console",
    "restore": "backup:restore",
    "status": "desk:status",
    "stop": "desk:stop",
    "watch": "watch:watch",
    "watches": "watch:watches",
}
"""Each command's module here, and its name there."""


class _CallerMistake(click.ClickException):
    exit_code = 2


class _Commands(Group):
    """Imports a command when it is asked for, and ends every error in one sentence on stderr: exit status 2 when the
    caller can mend it, else 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        return cast("click.Command", getattr(import_module(f"{__name__}.{module}"), name))

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            raise _explain(_unwrap(error)) from None


def _unwrap(error: Exception) -> Exception:
    """Return what was raised where tasks that ran together have wrapped it, and nothing else, in a group."""
    inner = cast("ExceptionGroup[Exception]", error).exceptions if isinstance(error, ExceptionGroup) else ()
    return _unwrap(inner[0]) if len(inner) == 1 else cast("Exception", error)


def _explain(error: Exception) -> click.ClickException:
    if isinstance(error, errors.CallerError):
        return _CallerMistake(error.message)
    if isinstance(error, errors.RefdeskError | UnreadableError):
        return click.ClickException(str(error))
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if isinstance(error.filename, str) else ""
        return click.ClickException(f"{error.strerror}{where}.")
    return click.ClickException(_tell_bug(error))


def _tell_bug(error: Exception) -> str:
    from refdesk.settings import load_settings

    if load_settings().log_level == "debug":
        traceback.print_exception(error)
    return f"Internal error ({type(error).__name__}); REFDESK_LOG_LEVEL=debug shows where. Please report it."


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="refdesk")
@click.pass_context
def cli(context: click.Context) -> None:
    """The reference desk for AI agents: ranked, sourced, current knowledge over MCP and REST.

    Settings are environment variables that start with REFDESK_, or keys of a config file; none is needed. Without a
    command, it says what is there and what to do next.
    """
    if context.invoked_subcommand is None:
        from refdesk.cli import overview

        overview.show()


def main(no_desk: str | None = None) -> None:
    """Run the command line and exit; `no_desk` says why `serve` cannot leave it to a desk, where that is so."""
    # A shell asks what completes a line before there is a command: this makes PowerShell one that may.
    import_module(f"{__name__}.completion")
    cli.main(prog_name="refdesk", obj=no_desk)
