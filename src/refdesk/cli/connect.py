"""`refdesk connect`: adds refdesk to an MCP client's configuration once it has answered as the client will ask."""

from __future__ import annotations

import difflib
import shutil
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from refdesk import errors
from refdesk.cli import asking, config_files, invocation
from refdesk.cli.clients import CLIENTS, KEY_VARIABLE
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from mcp.client._transport import Transport

    from refdesk.cli.clients import Client, Entry

HANDSHAKE_SECONDS = 120.0
_EPHEMERAL = ("archive-v0", "environments-v2")
"""Folders of uv's cache from which `uvx` runs a command; they may be removed at any time."""


@dataclass(frozen=True, slots=True)
class _Server:
    """The server that a client is to reach: a URL, or a command with arguments and environment variables."""

    url: str | None
    command: str
    arguments: Sequence[str]
    variables: Mapping[str, str]
    key: str | None


@click.command()
@click.argument("client", metavar="CLIENT", type=click.Choice(list(CLIENTS)))
@click.option("--url", metavar="URL", help="Connect to a server that runs there, such as https://desk.example.com/mcp.")
@click.option("--project", is_flag=True, help="Write the configuration of the project in this folder, not the user's.")
@click.option(
    "--file", "path", type=invocation.PathType(path_type=Path, dir_okay=False), help="Write this file instead."
)
@click.option("--name", default="refdesk", show_default=True, metavar="NAME", help="What the client calls the server.")
@click.option("--toolset", multiple=True, metavar="TOOLSET", help="Serve only this; may be said more than once.")
@click.option("--tools", metavar="NAME,…", help="The tools that it offers: by name, `all`, or `default`.")
@click.option(
    "--agent",
    metavar="AGENT",
    type=invocation.AGENT,
    help="Who the client's agent is. Default: the name that the client gives.",
)
@click.option("--remove", is_flag=True, help="Take refdesk out of the client's configuration.")
@click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
@click.option("--yes", "--write", "yes", is_flag=True, help="Do not ask, write.")
def connect(
    client: str,
    url: str | None,
    project: bool,
    path: Path | None,
    name: str,
    toolset: tuple[str, ...],
    tools: str | None,
    agent: str | None,
    remove: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Connect CLIENT to refdesk: show the change to its configuration, ask, try the connection, and write.

    CLIENT is claude-desktop, claude-code, vscode, cursor, codex, windsurf, zed or gemini-cli.

    Nothing is written where refdesk does not answer. The file as it was stays beside it.
    """
    known = CLIENTS[client]
    file = _find_file(known, project, path)
    before = _read(file)
    server = (
        None
        if remove
        else _choose_server(url, {"--toolset": toolset, "--tools": _list(tools), "--agent": _list(agent)})
    )
    after = _edit(file, before, known, name, None if server is None else _make_entry(known, server))
    if after == before:
        click.echo(f"{file} needs no change.")
        return
    click.echo(_show_change(file, before, after))
    if dry_run or not (yes or asking.confirm("Write this?", default=True)):
        click.echo("Nothing was written.")
        return
    if server is not None:
        click.echo(_shake_hands(server))
    kept = _write(file, before, after)
    click.echo(f"Written to {file}." + (f" As it was: {kept}." if kept else ""))
    click.echo(known.then)


def _find_file(client: Client, project: bool, path: Path | None) -> Path:
    if path is not None:
        return path
    if not project:
        return client.find_file()
    if client.project_file is None:
        raise errors.InvalidInputError(f"{client.title} has no configuration of a project; leave out --project.")
    return Path.cwd() / client.project_file


def _read(file: Path) -> str:
    try:
        # Read as bytes: reading as text would lose the file's line breaks.
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidInputError(f"{file} cannot be read: {error}.") from None


def _list(value: str | None) -> Sequence[str]:
    return [value] if value else []


def _choose_server(url: str | None, options: Mapping[str, Sequence[str]]) -> _Server:
    from refdesk.settings import list_given, read_variable

    key = read_variable(KEY_VARIABLE)
    if url is not None:
        if any(options.values()):
            raise errors.InvalidInputError(f"{', '.join(options)} are the server's own: leave them out beside --url.")
        return _Server(url, "", (), {}, key)
    plain, secret = list_given()
    for variable in secret:
        click.echo(f"{variable} is a secret and not written; the client must have it in its environment.", err=True)
    command, *arguments = _find_command()
    for option, values in options.items():
        arguments += [each for value in values for each in (option, value)]
    return _Server(None, command, arguments, plain, None)


def _find_command() -> list[str]:
    """Return the command that starts refdesk from any folder, with its full path."""
    if set(Path(sys.prefix).parts) & set(_EPHEMERAL):
        return [shutil.which("uvx") or "uvx", "refdesk", "serve", "--stdio"]
    beside = shutil.which("refdesk", path=str(Path(sys.executable).parent))
    if beside is not None:
        return [beside, "serve", "--stdio"]
    return [sys.executable, "-m", "refdesk", "serve", "--stdio"]


def _make_entry(client: Client, server: _Server) -> Entry:
    if server.url is None:
        return client.make_local(server.command, server.arguments, server.variables)
    if client.make_remote is None:
        raise errors.InvalidInputError(
            f"{client.title} starts local servers only; docs/how-to/connect.md shows a bridge. Leave out --url to "
            "connect it to refdesk on this machine."
        )
    if server.key and not client.has_key:
        click.echo(
            f"{client.title} cannot read a key from the environment: it will sign in, or add the header "
            '"Authorization": "Bearer KEY" by hand.',
            err=True,
        )
    elif server.key is None:
        click.echo(f"{KEY_VARIABLE} is not set, so the client is written without a key.", err=True)
    return client.make_remote(server.url, server.key is not None)


def _edit(file: Path, text: str, client: Client, name: str, entry: Entry | None) -> str:
    change = config_files.edit_toml if file.suffix == ".toml" else config_files.edit_json
    read = config_files.read_toml if file.suffix == ".toml" else config_files.read_json
    try:
        if entry is None and name not in read(text).get(client.section, {}):
            return text
        return change(text, client.section, name, entry)
    except config_files.UnreadableFileError as error:
        told = f"{file} was left as it is: {error.message}."
        by_hand = "" if entry is None else f" To do it by hand, add this:\n\n{change('', client.section, name, entry)}"
        raise errors.InvalidInputError(f"{told}{by_hand}".rstrip()) from None


def _show_change(file: Path, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(file), str(file), lineterm="")
    return "\n".join(lines)


def _write(file: Path, before: str, after: str) -> Path | None:
    """Write the file and return the path of its backup; a symbolic link stays one."""
    from refdesk.kit.files import write_atomically

    target = file.resolve()
    kept = target.with_name(f"{target.name}.before-refdesk") if target.exists() else None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if kept is not None:
            shutil.copy2(target, kept)
    except OSError as error:
        raise errors.ConfigurationError(f"{target.parent} cannot be written: {error.strerror}.") from None
    if _read(target) != before:
        raise errors.ConflictError(f"{target} changed meanwhile, so nothing was written. Run the command again.")
    write_atomically(target, [after])
    if kept is not None:
        shutil.copymode(kept, target)
    return kept


def _shake_hands(server: _Server) -> str:
    """Return what refdesk answers when it is asked the way the client will ask.

    Raises:
        ConfigurationError: refdesk does not answer; the message says why.
    """
    import anyio

    try:
        title, tools = anyio.run(_list_tools, server)
    except Exception as error:
        where = server.url or " ".join([server.command, *server.arguments])
        raise errors.ConfigurationError(
            f"{where} did not answer, so nothing was written: {_explain(error)} `refdesk doctor` looks for the cause."
        ) from None
    return f"{title} answers with {say_count(tools, 'tool')}."


async def _list_tools(server: _Server) -> tuple[str, int]:
    import anyio
    from mcp.client import Client

    with anyio.fail_after(HANDSHAKE_SECONDS):
        async with _open(server) as transport, Client(transport) as client:
            tools = await client.list_tools()
            name = client.server_info.name if client.server_info else "The server"
            return name, len(tools.tools)


@asynccontextmanager
async def _open(server: _Server) -> AsyncGenerator[Transport]:
    import httpx2
    from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if server.url is None:
        # A client that was not started from this shell gets its variables from the entry alone.
        variables = {**get_default_environment(), **server.variables}
        yield stdio_client(StdioServerParameters(command=server.command, args=list(server.arguments), env=variables))
        return
    headers = {"authorization": f"Bearer {server.key}"} if server.key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=HANDSHAKE_SECONDS) as http:
        yield streamable_http_client(server.url, http_client=http)


def _explain(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return _explain(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    text = str(error) or type(error).__name__
    return text if text.endswith(".") else f"{text}."
