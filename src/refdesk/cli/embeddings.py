"""`refdesk embeddings`: lists documents that could not be embedded, with the reason, and retries them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from refdesk.cli import invocation, views_of_entries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from refdesk.core.background.embedding import Failure, Indexer

    Answer = TypeVar("Answer")


@click.group()
def embeddings() -> None:
    """See what could not be embedded, and let it be tried again."""


@embeddings.command("list")
@invocation.json_option
def list_failures(as_json: bool) -> None:
    """List the documents that could not be embedded, with the reason; those set aside last."""

    async def read(indexers: Sequence[Indexer]) -> list[Failure]:
        return [failure for indexer in indexers for failure in await indexer.list_failures()]

    failures = _run(read)
    if as_json:
        invocation.print_json({"failures": [_to_json(failure) for failure in failures]})
    elif not failures:
        click.echo("Nothing failed.")
    else:
        click.echo("\n".join(_describe(failure) for failure in failures))


@embeddings.command()
@invocation.json_option
def retry(as_json: bool) -> None:
    """Let everything that could not be embedded be tried again at once, by a server or refdesk worker."""

    async def retry_all(indexers: Sequence[Indexer]) -> int:
        return sum([await indexer.retry_failures() for indexer in indexers])

    count = _run(retry_all)
    if as_json:
        invocation.print_json({"retried": count})
    elif count:
        click.echo(f"{count} documents are due again; a running server embeds them, or refdesk worker --until-idle.")
    else:
        click.echo("Nothing failed, so there is nothing to try again.")


def _run(work: Callable[[Sequence[Indexer]], Awaitable[Answer]]) -> Answer:
    import anyio

    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets

    settings = invocation.load()

    async def run() -> Answer:
        async with open_desk(settings, load_toolsets((), settings), in_background=False) as desk:
            return await work([base.indexer for base in (await desk.get_base()).each()])

    return anyio.run(run)


def _to_json(failure: Failure) -> dict[str, Any]:
    return {
        "org": failure.collection.org,
        "toolset": failure.collection.toolset,
        "id": failure.id,
        "reason": failure.reason,
        "attempts": failure.attempts,
        "retryAt": failure.retry_at.isoformat() if failure.retry_at else None,
    }


def _describe(failure: Failure) -> str:
    when = f"tried again {failure.retry_at:%Y-%m-%d %H:%M} UTC" if failure.retry_at else "set aside"
    place = f"{failure.collection.toolset} {failure.id} ({failure.collection.org})"
    return views_of_entries.printable(f"{place}: {failure.reason} Tried {failure.attempts} times; {when}.")
