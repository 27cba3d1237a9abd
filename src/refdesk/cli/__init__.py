"""The command line: `refdesk serve`, `search`, `keys` and the rest.

Only the module of the given command is imported, and it imports what it needs when it runs.
"""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from importlib import import_module
from typing import Any, cast

import click

from refdesk import __version__, errors
from refdesk.cli import interruptions
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
"""The module of each command in this package, and the command's name in that module."""


_WANTS_JSON = f"{__name__}.wants_json"

_DECLINED = "Nothing was done: the question was not answered with yes."


class _Told(click.ClickException):
    """An error as it is reported to the caller, with its code for programs."""

    def __init__(self, message: str, code: str = errors.RefdeskError.code) -> None:
        super().__init__(message)
        self.code = code


class _CallerMistake(_Told):
    exit_code = 2


class _Commands(Group):
    """Imports a command when it is asked for, and reports every error in one sentence on stderr, with exit status 2 if
    the caller can fix it and 1 otherwise. With `--json`, the error also goes to stdout as JSON."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        return cast("click.Command", getattr(import_module(f"{__name__}.{module}"), name))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WANTS_JSON] = "--json" in args[: args.index("--") if "--" in args else None]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, BrokenPipeError):
            raise
        except click.Abort:
            if ctx.meta[_WANTS_JSON]:
                _print_json(_Told(_DECLINED, interruptions.CODE))
            raise
        except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:
            told = error if isinstance(error, click.ClickException) else _explain(error)
            if ctx.meta[_WANTS_JSON]:
                _print_json(told)
            raise told from None


def _unwrap(error: BaseException) -> BaseException:
    """Return the only exception in a group, such as one raised by concurrent tasks; any other error as it is."""
    inner = interruptions.list_inner(error)
    return _unwrap(inner[0]) if len(inner) == 1 else error


def _explain(failure: BaseException) -> click.ClickException:
    if interruptions.is_interruption(failure):
        return interruptions.InterruptedCommand()
    error = _unwrap(failure)
    if isinstance(error, errors.RefdeskError):
        return (_CallerMistake if isinstance(error, errors.CallerError) else _Told)(error.message, error.code)
    if isinstance(error, UnreadableError):
        return _Told(str(error), errors.ConfigurationError.code)
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if isinstance(error.filename, str) else ""
        return _Told(f"{error.strerror}{where}.")
    return _Told(_tell_bug(error))


def _tell_bug(error: BaseException) -> str:
    from refdesk.settings import load_settings

    if load_settings().log_level == "debug":
        traceback.print_exception(error)
    return f"Internal error ({type(error).__name__}); REFDESK_LOG_LEVEL=debug shows where. Please report it."


def _print_json(error: click.ClickException) -> None:
    """Print an error in the form that it has over REST; if stdout cannot be written, only stderr reports it."""
    from refdesk.cli.invocation import print_json

    is_coded = isinstance(error, _Told | interruptions.InterruptedCommand)
    code = error.code if is_coded else errors.InvalidInputError.code
    with contextlib.suppress(OSError):
        print_json({"error": {"code": code, "message": error.format_message()}})


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
    """Run the command line and exit; `no_desk` says why `serve` cannot use a desk, if it cannot."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Characters that the terminal or pipe cannot encode are escaped, so that no title breaks off a list.
            stream.reconfigure(errors="backslashreplace")
    # A shell asks for completions before any command is imported: this import registers PowerShell.
    import_module(f"{__name__}.completion")
    interruptions.listen()
    try:
        cli.main(prog_name="refdesk", obj=no_desk)
    finally:
        interruptions.end()
