"""`refdesk migrate`: copies everything from one store to another, across engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from hashlib import blake2b
from typing import TYPE_CHECKING

import click

from refdesk import errors
from refdesk.cli import invocation, progress

if TYPE_CHECKING:
    from refdesk.cli.progress import Show
    from refdesk.core.keeping.migrating import Contents, Work
    from refdesk.factories.toolsets import Move
    from refdesk.settings import Settings

LABELS: Mapping[Work, str] = {"moving": "Moving", "building": "Building indexes", "comparing": "Comparing"}
TIMES_READ: Mapping[Work, int] = {"moving": 1, "building": 0, "comparing": 2}


@click.command()
@click.option("--from", "source", required=True, metavar="URL", help="The store that holds everything now.")
@click.option("--to", "target", required=True, metavar="URL", help="The store to fill: empty, or half filled by this.")
@invocation.json_option
def migrate(source: str, target: str, as_json: bool) -> None:
    """Copy everything from one store to another: documents with all versions, vectors, links, keys and quotas.

    Stop all writes to the source first. If interrupted, the same command resumes. At the end both stores are read
    whole and compared. Where REFDESK_SKILLS_STORE is set, the source's skills go there; see
    docs/how-to/move-to-another-store.md.
    """
    import anyio

    settings = invocation.load()
    with progress.show_progress("Moving") as show:
        moved = anyio.run(_migrate, settings, source, target, show)
    if as_json:
        invocation.print_json(_to_json(moved))
        return
    for move, contents in moved:
        click.echo(_tell(move, contents))


async def _migrate(settings: Settings, source: str, target: str, show: Show | None) -> list[tuple[Move, Contents]]:
    from refdesk.core.keeping import migrating
    from refdesk.factories.stores import choose_store, require_there
    from refdesk.factories.toolsets import plan_moves

    require_there(source, "--from")
    open_source = choose_store(source, "--from")
    choose_store(target, "--to")
    name = blake2b(source.encode(), digest_size=16).hexdigest()
    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(open_source())
        statistics = await old.get_statistics()
        moves = plan_moves(settings, source, target, {each.collection.toolset for each in statistics})
        targets = [await stack.enter_async_context(choose_store(move.url, move.variable)()) for move in moves]
        shown = _Shown(show, sum(sum(each.documents.values()) for each in statistics))
        moved: list[tuple[Move, Contents]] = []
        for move, new in zip(moves, targets, strict=True):
            try:
                contents = await migrating.migrate(old, new, name, shown.note, shown.begin, move.part)
            except errors.ConflictError as error:
                raise errors.ConflictError(f"{move.variable}: {error.message}") from None
            moved.append((move, contents))
        return moved


class _Shown:
    """What is seen of a migration."""

    def __init__(self, show: Show | None, documents: int) -> None:
        self._show = show
        self._documents = documents
        self._done = 0
        self._total = 0

    def begin(self, work: Work) -> None:
        """Show another bar: each store is read once when they are compared."""
        self._done, self._total = 0, self._documents * TIMES_READ[work]
        if self._show is not None:
            self._show(0, self._total or None, LABELS[work])

    def note(self, more: int) -> None:
        """Move it."""
        self._done += more
        if self._show is not None:
            self._show(self._done, self._total)


def _tell(move: Move, moved: Contents) -> str:
    what = f", of {move.toolset}" if move.toolset is not None else ""
    then = (
        f"They are where {move.variable} says." if move.toolset is not None else "Set REFDESK_STORE to the new address."
    )
    return (
        f"Moved and compared{what}: {moved.documents} documents in {moved.versions} versions, {moved.vectors} vectors, "
        f"{moved.links} links, {moved.records} records. {then}"
    )


def _to_json(moved: Sequence[tuple[Move, Contents]]) -> dict[str, object]:
    """Return what was moved to --to, and under `apart` what each toolset's own store got."""
    written = {move.toolset: {**asdict(each), "digest": f"{each.digest:032x}"} for move, each in moved}
    apart = {toolset: contents for toolset, contents in written.items() if toolset is not None}
    return {**written.get(None, {}), **({"apart": apart} if apart else {})}
