"""The command line: `refdesk serve`, `search`, `keys` and the rest.

Commands import what they need when they run, so that `refdesk --help` costs next to nothing.
"""

from __future__ import annotations

import traceback
from typing import Any

import click

from refdesk import __version__, errors
from refdesk.cli.articles import articles
from refdesk.cli.audit import audit
from refdesk.cli.backup import backup, restore
from refdesk.cli.completion import completion
from refdesk.cli.config import config
from refdesk.cli.connect import connect
from refdesk.cli.desk import status, stop
from refdesk.cli.desk_log import logs
from refdesk.cli.doctor import doctor
from refdesk.cli.embeddings import embeddings
from refdesk.cli.erase import erase
from refdesk.cli.export import export
from refdesk.cli.impact import impact
from refdesk.cli.importing import import_
from refdesk.cli.keys import keys
from refdesk.cli.knowledge import knowledge
from refdesk.cli.migrate import migrate
from refdesk.cli.models import models
from refdesk.cli.opening import open_console
from refdesk.cli.search import search
from refdesk.cli.serve import serve
from refdesk.cli.skills import skills
from refdesk.cli.sync import sync
from refdesk.cli.updates import updates
from refdesk.cli.worker import worker
from refdesk.forwarder.config_file import UnreadableError


class _CallerMistake(click.ClickException):
    exit_code = 2


class _Commands(click.Group):
    """Ends every error in one sentence on stderr: exit status 2 when the caller can mend it, else 1."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        try:
            return super().invoke(ctx)
        except errors.CallerError as error:
            raise _CallerMistake(error.message) from None
        except (errors.RefdeskError, UnreadableError) as error:
            raise click.ClickException(str(error)) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort, OSError):
            raise
        except Exception as error:
            raise click.ClickException(_tell_bug(error)) from None


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


for command in (
    *(serve, open_console, connect, status, logs, stop, worker, sync),
    *(search, knowledge, skills, updates, articles, impact),
    *(export, import_, migrate, backup, restore),
    *(keys, audit, erase, models, embeddings, config, completion, doctor),
):
    cli.add_command(command)


def main(no_desk: str | None = None) -> None:
    """Run the command line and exit; `no_desk` says why `serve` cannot leave it to a desk, where that is so."""
    cli.main(prog_name="refdesk", obj=no_desk)
