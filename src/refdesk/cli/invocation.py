"""What the commands share: the caller's identity, filters, and calls to operations."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, TypeVar

import click

from refdesk.model import AGENT_NAME, ORG_NAME

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from refdesk.app import Desk
    from refdesk.core.operations import Operation
    from refdesk.settings import Settings

    Command = TypeVar("Command", bound=Callable[..., Any])


class NameType(click.ParamType[str]):
    """A name that is not empty: a shell expands an unset variable to an empty name, which is never meant."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return it as it is given."""
        if not value.strip():
            self.fail("it is empty: say a name, or leave the option out.", param, ctx)
        return value


class PathType(click.Path):
    """A path that is not empty: an unset variable in a shell would otherwise mean the current folder."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return it as `click.Path` does."""
        if not os.fspath(value):
            self.fail("it is empty: say a path.", param, ctx)
        return super().convert(value, param, ctx)


class _PatternType(NameType):
    """A name that the core accepts: checking it here lets the error name the option."""

    def __init__(self, pattern: str, form: str) -> None:
        self._pattern, self._form = pattern, form

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return it as it is given."""
        if re.fullmatch(self._pattern, super().convert(value, param, ctx)) is None:
            self.fail(f"it must be {self._form}.", param, ctx)
        return value


NAME = NameType()
ORG = _PatternType(ORG_NAME, "1 to 64 lower-case letters, digits and hyphens")
AGENT = _PatternType(AGENT_NAME, "1 to 64 characters, none of them a line break or another control character")

filter_option = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A filter of the toolset, such as tags=Security or dateFrom=90d; may be said more than once.",
)


def _read_cursor(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Return what a page before printed; nothing for an empty text, as scripts have it before the first page."""
    return value or None


cursor_option = click.option(
    "--cursor",
    metavar="CURSOR",
    callback=_read_cursor,
    help="Continue after the page before, which printed this; instead of --offset. An empty one is none.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def caller_options(command: Command) -> Command:
    """Add the options by which a command's caller says who calls."""
    agent = click.option(
        "--agent", metavar="AGENT", type=AGENT, help="The agent that you are. Default: REFDESK_AGENT, else cli."
    )
    org = click.option(
        "--org", metavar="ORG", type=ORG, help="The org that you belong to. Default: REFDESK_ORG, else local."
    )
    return org(agent(command))


def load(org: str | None = None, agent: str | None = None) -> Settings:
    """Return the settings of a command, with `org` and `agent` overriding the environment, and reduce logging.

    Raises:
        ConfigurationError: A setting is malformed.
    """
    from refdesk.settings import load_settings

    settings = load_settings(org=org, agent=agent)
    configure_logging(settings.log_level)
    return settings


def ask(
    toolset: str | None,
    operation: str,
    arguments: Mapping[str, object],
    org: str | None = None,
    agent: str | None = None,
    prepare: Callable[[Desk], Awaitable[object]] | None = None,
) -> dict[str, Any]:
    """Return the answer of a toolset's operation, from the running desk or, without one, from this process.

    Args:
        toolset: The toolset to load for it; `None` for all that are configured.
        operation: The operation's name.
        arguments: The operation's arguments; those that are `None` are left out.
        org: The caller's, if not that of the settings.
        agent: The same for the agent.
        prepare: Awaited first when this process answers: does what a desk would do in the background.
    """
    names, arguments = (toolset,) if toolset is not None else (), drop_unset(arguments)
    answer = ask_desk(operation, arguments, org=org, agent=agent, names=names)
    if answer is not None:
        return answer
    import anyio

    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets

    settings = load(org, agent)

    async def ask_alone() -> dict[str, Any]:
        async with open_desk(settings, load_toolsets(names, settings), in_background=False) as desk:
            found = next(each for served in desk.toolsets for each in served.operations if each.name == operation)
            if prepare is not None:
                await prepare(desk)
            return await run(desk, found, arguments)

    return anyio.run(ask_alone)


def ask_pages(
    settings: Settings, toolset: str, operation: str, arguments: Mapping[str, object]
) -> Iterator[dict[str, Any]]:
    """Yield every page of an operation's answer, asked in this process; `next` of one page is `after` of the following.

    The store stays open meanwhile, and nothing else is asked.
    """
    from anyio.from_thread import start_blocking_portal

    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets

    opened = open_desk(settings, load_toolsets([toolset], settings), in_background=False)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as desk:
        [found] = [each for each in desk.toolsets[0].operations if each.name == operation]
        given = drop_unset(arguments)
        while True:
            answer = portal.call(run, desk, found, given)
            yield answer
            if "next" not in answer:
                return
            given["after"] = answer["next"]


def ask_desk(
    operation: str,
    arguments: Mapping[str, object],
    *,
    org: str | None = None,
    agent: str | None = None,
    names: Sequence[str] = (),
) -> dict[str, Any] | None:
    """Return the answer of the running desk and print its warnings; `None` if no desk runs."""
    from refdesk.cli import through_desk

    said = through_desk.ask(operation, arguments, org=org, agent=agent, names=names)
    if said is None:
        return None
    _print_warnings(said["meta"])
    return said["value"]


def work(
    names: Sequence[str],
    name: str,
    arguments: Mapping[str, object],
    org: str | None = None,
    agent: str | None = None,
    *,
    texts: Sequence[Mapping[str, str]] = (),
    advance: Callable[[], None] = lambda: None,
) -> Any:  # noqa: ANN401 - JSON
    """Return the outcome of work (see `server.local.work`) done by the running desk or, without one, by this process.

    Args:
        names: The toolsets that the work is about; none for all.
        name: The name of the work.
        arguments: Its arguments.
        org: The caller's, if not that of the settings.
        agent: The same for the agent.
        texts: The texts that the work is done on.
        advance: Called after each text that is done.
    """
    from refdesk.cli import through_desk

    shown = 0

    def show(count: int) -> None:
        nonlocal shown
        for _ in range(count - shown):
            advance()
        shown = max(shown, count)

    done = through_desk.work(name, arguments, org=org, agent=agent, names=names, texts=texts, show=show)
    if done is not None:
        return done[0]
    # Imported late: a desk that answers makes all of this unnecessary.
    import anyio

    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets
    from refdesk.server.local import work as works
    from refdesk.server.principals import local_principal

    settings = load(org, agent)

    async def work_alone() -> object:
        async with open_desk(settings, load_toolsets(names, settings), in_background=False) as desk:
            principal = local_principal(settings, desk.toolsets, "cli")
            return await works.do(desk, works.Work(name, principal, arguments, texts, advance))

    return anyio.run(work_alone)


def search(
    names: Sequence[str], arguments: Mapping[str, object], org: str | None = None, agent: str | None = None
) -> dict[str, Any]:
    """Return the answer of a search (see `server.local.searching`) and print its warnings; arguments as for `ask`."""
    said = work(names, "search", {"names": list(names), **drop_unset(arguments)}, org, agent)
    _print_warnings(said["meta"])
    return said["value"]


def drop_unset(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments without those that are `None`: an option that is not given says nothing."""
    return {name: value for name, value in arguments.items() if value is not None}


def print_json(answer: Mapping[str, object]) -> None:
    """Print an answer as compact JSON: an object, so that later versions can add to it."""
    from refdesk.server import strict_json

    click.echo(strict_json.dump(answer))


async def run(desk: Desk, operation: Operation, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return the result of an operation called by the local user."""
    from refdesk.server.calls import Caller
    from refdesk.server.principals import local_principal

    caller = Caller(desk, local_principal(desk.settings, desk.toolsets, "cli"), "cli")
    answer = await caller.run(operation, arguments)
    _print_warnings(answer.meta)
    return answer.value


def _print_warnings(meta: Mapping[str, Any]) -> None:
    if not meta:
        return
    from refdesk.server import answers

    for warning in answers.get_warnings(meta):
        click.echo(warning, err=True)


def configure_logging(level: str) -> None:
    """Log only warnings and errors to stderr unless configured otherwise."""
    from refdesk.server import logs

    logs.configure("debug" if level == "debug" else "error")
