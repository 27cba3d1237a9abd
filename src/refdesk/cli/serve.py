"""`refdesk serve`: runs the server over stdio or HTTP."""

from __future__ import annotations

import gc
import sys

import click

from refdesk.cli import invocation


def complete_toolset(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the toolsets whose names begin with this, for shell completion."""
    from refdesk.discovery import find_descriptors

    del context, parameter
    return [each.name for each in find_descriptors() if each.name.startswith(incomplete)]


toolset_option = click.option(
    "--toolset",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_toolset,
    help="Only this toolset; may be said more than once.",
)


@click.command()
@click.option("--stdio", is_flag=True, help="Serve one client over stdin and stdout.")
@click.option(
    "--isolated", is_flag=True, help="With --stdio: serve in this process, and not through the desk of this machine."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8350, show_default=True, type=click.IntRange(0, 65535), help="0 for any free one.")
@toolset_option
@click.option(
    "--tools",
    metavar="NAME,…",
    help="The tools that MCP offers: by name, `all`, or `default` for those it offers unasked.",
)
@click.option("--sse", is_flag=True, help="Also serve the retired SSE transport at /sse.")
@click.option("--no-auth", is_flag=True, help="Serve callers without a key too; to this machine only.")
@click.option("--org", metavar="ORG", type=invocation.ORG, help="The org that callers belong to.")
@click.option(
    "--agent", metavar="AGENT", type=invocation.AGENT, help="The agent that callers are. Default: their client's name."
)
@click.pass_context
def serve(
    context: click.Context,
    stdio: bool,
    isolated: bool,
    host: str,
    port: int,
    names: tuple[str, ...],
    tools: str | None,
    sse: bool,
    no_auth: bool,
    org: str | None,
    agent: str | None,
) -> None:
    """Serve MCP at /mcp, REST and pages over HTTP, or MCP over stdio.

    Over stdio, one desk serves all clients of this machine that share a data folder and settings: it is started with
    the first, and ends some minutes after the last has left (refdesk status, refdesk stop).

    Over HTTP every caller needs a key (refdesk keys create) or signs in (REFDESK_OAUTH_ISSUER), unless --no-auth is
    said.
    """
    reason = context.obj or "--isolated"
    if stdio and not isolated and context.obj is None:
        from refdesk.forwarder import command

        reason = command.forward(command.Options(names, tools, org, agent))
    gc.disable()  # imported modules stay: scanning them again and again takes a seventh of the start
    try:
        from refdesk.factories.toolsets import load_toolsets
        from refdesk.server import process
        from refdesk.settings import load_settings

        settings = load_settings(org=org, agent=agent, tools=tools)
        toolsets = load_toolsets(names, settings)
        if stdio:
            process.serve_stdio(settings, toolsets, reason)
        else:
            process.serve_http(
                settings, toolsets, host=host, port=port, sse=sse, no_auth=no_auth, announce=_announce, names=names
            )
    finally:
        gc.enable()


def _announce(url: str) -> None:
    if sys.stderr.isatty():
        click.echo(
            f"refdesk is open at {url} (MCP at {url}/mcp, operations at {url}/docs). Ctrl-C closes it.", err=True
        )
