"""`refdesk migrate --serving`: moves a store while servers use it, or aborts such a move."""

from __future__ import annotations

from contextlib import AsyncExitStack
from hashlib import blake2b
from typing import TYPE_CHECKING

import anyio
import click

from refdesk import errors
from refdesk.cli import invocation, progress
from refdesk.core.counts import say_count
from refdesk.factories.stores import choose_store, require_there
from refdesk.factories.toolsets import plan_moves

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.cli.progress import Show
    from refdesk.core.keeping.moving import Phase
    from refdesk.settings import Settings

LABELS: Mapping[Phase, str] = {
    "moving": "Copying",
    "building": "Building indexes",
    "comparing": "Comparing",
    "switching": "Catching up",
}


def run(settings: Settings, source: str, target: str, *, as_json: bool, is_aborted: bool) -> None:
    """Move the store, or abort its move, and print the outcome.

    Raises:
        InvalidInputError: The store's content would have to go to several stores.
        ConflictError: The target holds something else, or there is no move to abort.
    """
    require_there(source, "--from")
    if is_aborted:
        anyio.run(_abort, source)
        if as_json:
            invocation.print_json({"aborted": True})
            return
        click.echo("Given up: the source is as if the move had never begun. What the target holds is of no use.")
        return
    with progress.show_progress("Copying") as show:
        seconds, documents = anyio.run(_move, settings, source, target, show)
    if as_json:
        invocation.print_json({"documents": documents, "standstillSeconds": round(seconds, 3)})
        return
    click.echo(
        f"Moved while it served: {say_count(documents, 'document')}; writes waited for {seconds:.1f} s. "
        "Servers have followed. Set REFDESK_STORE to the new address before any is started anew."
    )


async def _abort(source: str) -> None:
    from refdesk.core.keeping import moving

    async with choose_store(source, "--from")() as store:
        await moving.cancel(store)


async def _move(settings: Settings, source: str, target: str, show: Show | None) -> tuple[float, int]:
    from refdesk.core.keeping.moving import Mover
    from refdesk.factories.backups import follow_history

    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(choose_store(source, "--from")())
        statistics = await old.get_statistics()
        if len(plan_moves(settings, source, target, {each.collection.toolset for each in statistics})) > 1:
            raise errors.InvalidInputError(
                "The settings keep skills in a store of their own, so this would go to two: move them first, with "
                "everything stopped and without --serving."
            )
        new = await stack.enter_async_context(choose_store(target, "--to")())
        shown = _Shown(show, sum(sum(each.documents.values()) for each in statistics))
        name = blake2b(source.encode(), digest_size=16).hexdigest()
        mover = Mover(old, new, name, target, shown.note, shown.begin)
        await mover.run()
        follow_history(source, target)
        documents = sum(sum(each.documents.values()) for each in await new.get_statistics())
        return mover.standstill_seconds, documents


class _Shown:
    """The progress bar of a move."""

    def __init__(self, show: Show | None, documents: int) -> None:
        self._show = show
        self._documents = documents
        self._done = 0
        self._label = LABELS["moving"]

    def begin(self, phase: Phase) -> None:
        """Begin another bar."""
        self._done, self._label = 0, LABELS[phase]
        if self._show is not None:
            self._show(0, None if phase in ("building", "switching") else self._documents, self._label)

    def note(self, more: int) -> None:
        """Advance the bar."""
        self._done += more
        if self._show is not None:
            self._show(self._done, max(self._done, self._documents), self._label)
