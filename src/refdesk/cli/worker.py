"""`refdesk worker`: runs the background work without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from refdesk import errors
from refdesk.cli import invocation, progress
from refdesk.cli.serve import toolset_option
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from refdesk.cli.progress import Show
    from refdesk.core.background.health import Backlog
    from refdesk.core.operations import Toolset
    from refdesk.factories.bases import Base
    from refdesk.settings import Settings

POLL_SECONDS = 0.25


@click.command()
@click.option("--until-idle", is_flag=True, help="End when nothing is left to do.")
@toolset_option
def worker(until_idle: bool, names: tuple[str, ...]) -> None:
    """Embed what was written and sync what is due, without serving anybody.

    Servers do this too; of all processes on one store, one at a time embeds.
    """
    from refdesk.factories.toolsets import load_toolsets

    settings = invocation.load()
    toolsets = load_toolsets(names, settings)
    if until_idle:
        _work_until_idle(settings, toolsets)
    else:
        from refdesk.server import process

        process.run_worker(settings, toolsets)


def _work_until_idle(settings: Settings, toolsets: tuple[Toolset, ...]) -> None:
    import anyio

    with progress.show_progress("Embedding") as show:
        left = anyio.run(_drain, settings, toolsets, show)
    failed = left.failing + left.set_aside
    if failed:
        number = say_count(failed, "document")
        click.echo(f"Nothing is left to do; {number} could not be embedded: refdesk embeddings list says why.")
    else:
        click.echo("Nothing is left to do.")


async def _drain(settings: Settings, toolsets: tuple[Toolset, ...], show: Show | None) -> Backlog:
    from refdesk.app import open_desk
    from refdesk.core.background.health import add_backlogs, measure_backlog
    from refdesk.factories.toolsets import choose_syncer, list_sources

    async with open_desk(settings, toolsets, in_background=False) as desk:
        base = await desk.get_base()
        for each in base.each():
            await embed_all(each, show)
        for name in [source for toolset in toolsets for source in list_sources(settings, toolset.name)]:
            syncer = choose_syncer(settings, name, base.knowledge_base.store)
            try:
                if await syncer.is_due(base.knowledge_base.clock.now()):
                    await syncer.sync()
            except errors.WorldError as error:
                click.echo(f"{name} was not synced: {error.message}", err=True)
        await embed_all(base, show)
        return add_backlogs([await measure_backlog(each.indexer) for each in base.each()])


async def embed_all(base: Base, show: Show | None) -> None:
    """Embed until nothing is due, in this process or another."""
    import anyio

    from refdesk.core.background.health import measure_backlog

    failure: errors.RefdeskError | None = None
    async with anyio.create_task_group() as group:
        if show is not None:
            group.start_soon(_watch, base, show)
        try:
            while True:
                worked = await base.indexer.run_once()
                if not worked and not (await measure_backlog(base.indexer)).is_attended:
                    break
                await anyio.sleep(POLL_SECONDS)
        except errors.RefdeskError as error:
            failure = error  # raised below, so that it does not come out wrapped in a group
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _watch(base: Base, show: Show) -> None:
    import anyio

    total = await base.indexer.count_pending()
    while True:
        pending = await base.indexer.count_pending()
        total = max(total, pending)
        show(total - pending, total)
        await anyio.sleep(POLL_SECONDS)
