"""`refdesk open`: opens the console in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from refdesk.cli import desk, invocation, through_desk

if TYPE_CHECKING:
    from refdesk.settings import Settings

NOBODY = "No server runs for this data folder: one is started here, for this machine only. Ctrl-C ends it."


@click.command("open")
@click.option("--print", "is_printed", is_flag=True, help="Print the address and open no browser; start no server.")
@click.option("--port", default=8350, show_default=True, type=click.IntRange(0, 65535), help="Of a server that starts.")
@invocation.json_option
def open_console(is_printed: bool, port: int, as_json: bool) -> None:
    """Open the console of the server that runs in your browser, signed in for twelve hours.

    Where none runs, one is started in this terminal, as refdesk serve --no-auth does. The address opens once, within a
    minute.
    """
    settings = invocation.load()
    link = find_link()
    if as_json:
        invocation.print_json({"url": link})
    elif link is not None:
        click.echo(link)
    if link is not None and not (is_printed or as_json):
        click.launch(link)
    if link is None and not as_json:
        click.echo("No server runs for this data folder: refdesk serve --no-auth starts one." if is_printed else NOBODY)
    if link is None and not (is_printed or as_json):
        _serve(settings, port)


def find_link() -> str | None:
    """Return an address of the console, issued by the server that runs over HTTP; `None` if none runs."""
    for place, found in desk.list_desks():
        said = through_desk.exchange(place, found, {"ask": "link"}) if found.kind == "http" else None
        if said and "link" in said:
            return str(said["link"])
    return None


def _serve(settings: Settings, port: int) -> None:
    from refdesk.factories.toolsets import load_toolsets
    from refdesk.server import process

    def announce(url: str) -> None:
        click.echo(f"{url}/")
        click.launch(f"{url}/")

    toolsets = load_toolsets((), settings)
    process.serve_http(
        settings, toolsets, host="127.0.0.1", port=port, sse=False, no_auth=True, announce=announce, names=()
    )
