"""`refdesk migrate`: copies everything from one store to another, across engines."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import click

from refdesk import errors
from refdesk.cli import invocation, progress
from refdesk.core.counts import say_count
from refdesk.model import SHARED_ORG

if TYPE_CHECKING:
    from refdesk.cli.progress import Show
    from refdesk.core.keeping.contents import Contents
    from refdesk.core.keeping.migrating import Work
    from refdesk.core.keeping.removing import Removal
    from refdesk.factories.toolsets import Move
    from refdesk.protocols import Store
    from refdesk.settings import Settings

LABELS: Mapping[Work, str] = {"moving": "Moving", "building": "Building indexes", "comparing": "Comparing"}
TIMES_READ: Mapping[Work, int] = {"moving": 1, "building": 0, "comparing": 2}


@click.command()
@click.option("--from", "source", required=True, metavar="URL", help="The store that holds everything now.")
@click.option("--to", "target", required=True, metavar="URL", help="The store to fill: empty, or half filled by this.")
@click.option("--org", metavar="ORG", type=invocation.ORG, help="One org alone, to a store where others may live.")
@click.option("--serving", is_flag=True, help="Move everything while servers use the source; they follow.")
@click.option("--abort", is_flag=True, help="Give up a move that was begun with --serving and is not through.")
@click.option("--remove", "is_removed", is_flag=True, help="With --org: once compared, remove it from the source.")
@invocation.json_option
def migrate(
    source: str, target: str, org: str | None, serving: bool, abort: bool, is_removed: bool, as_json: bool
) -> None:
    """Copy everything from one store to another: documents with all versions, vectors, links, keys and quotas.

    Stop all writes to the source first, or with --org those of the org; with --serving none. If interrupted, the same
    command resumes. At the end both stores are read whole and compared. Where REFDESK_SKILLS_STORE is set, the source's
    skills go there; see docs/how-to/move-to-another-store.md.
    """
    import anyio

    if org == SHARED_ORG or (is_removed and org is None):
        raise errors.InvalidInputError(
            "--org names one org, not what is the same for all; --remove removes the org that --org names."
        )
    if (serving or abort) and (org is not None or serving is abort):
        raise errors.InvalidInputError("--serving moves everything, --abort gives that up: give one of them, no --org.")
    settings = invocation.load()
    if serving or abort:
        from refdesk.cli.migrate_serving import run

        run(settings, source, target, as_json=as_json, is_aborted=abort)
        return
    with progress.show_progress("Moving") as show:
        moved = anyio.run(_migrate, settings, source, target, _Wish(org, is_removed), show)
    if as_json:
        invocation.print_json(_to_json(moved))
        return
    for move, contents in moved:
        click.echo(_tell(move, contents))


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be moved, and whether it is then removed from the source."""

    org: str | None
    is_removed: bool


async def _migrate(
    settings: Settings, source: str, target: str, wish: _Wish, show: Show | None
) -> list[tuple[Move, Contents]]:
    from refdesk.core.keeping import migrating
    from refdesk.factories.backups import follow_history
    from refdesk.factories.stores import choose_store, require_there
    from refdesk.factories.toolsets import plan_moves

    require_there(source, "--from")
    open_source = choose_store(source, "--from")
    choose_store(target, "--to")
    name = blake2b(source.encode(), digest_size=16).hexdigest()
    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(open_source())
        statistics = await old.get_statistics()
        moves = plan_moves(settings, source, target, {each.collection.toolset for each in statistics}, wish.org)
        # An org need not have something of each toolset; one that has nothing at all is refused below.
        moves = [move for move in moves if len(moves) == 1 or await migrating.holds_any(old, move.part)] or moves[:1]
        targets = [await stack.enter_async_context(choose_store(move.url, move.variable)()) for move in moves]
        shown = _Shown(show, sum(sum(each.documents.values()) for each in statistics))
        removal = await _begin_removal(settings, wish, old, list(zip(targets, moves, strict=True)))
        for move, new in zip(moves, targets, strict=True):
            with _naming(move):
                # Before anything is written to any of them.
                await migrating.require_fit(old, new, name, move.part)
        moved: list[tuple[Move, Contents]] = []
        for move, new in zip(moves, targets, strict=True):
            with _naming(move):
                moved.append((move, await migrating.migrate(old, new, name, shown.note, shown.begin, move.part)))
            if wish.org is None:
                follow_history(source, move.url)
        if removal is not None:
            await removal.run()
        return moved


async def _begin_removal(
    settings: Settings, wish: _Wish, old: Store, places: Sequence[tuple[Store, Move]]
) -> Removal | None:
    from refdesk.core.clock import SystemClock
    from refdesk.core.keeping import removing
    from refdesk.core.writing.audit import Actor

    if not wish.is_removed:
        return None
    actor = Actor(str(wish.org), settings.agent or "cli", "cli")
    return await removing.begin(old, [(target, move.part) for target, move in places], SystemClock(), actor)


@contextmanager
def _naming(move: Move) -> Generator[None]:
    """Let a refusal say which of the targets it is about."""
    try:
        yield
    except errors.ConflictError as error:
        raise errors.ConflictError(f"{move.variable}: {error.message}") from None


class _Shown:
    """The progress bar of a migration."""

    def __init__(self, show: Show | None, documents: int) -> None:
        self._show = show
        self._documents = documents
        self._done = 0
        self._total = 0

    def begin(self, work: Work) -> None:
        """Begin another bar: each store is read once when they are compared."""
        self._done, self._total = 0, self._documents * TIMES_READ[work]
        if self._show is not None:
            self._show(0, self._total or None, LABELS[work])

    def note(self, more: int) -> None:
        """Advance the bar."""
        self._done += more
        if self._show is not None:
            self._show(self._done, self._total)


def _tell(move: Move, moved: Contents) -> str:
    org = f", of the org {move.part.org}" if move.part.org is not None else ""
    what = org + (f", of {move.toolset}" if move.toolset is not None else "")
    then = (
        f"They are where {move.variable} says."
        if move.toolset is not None
        else "Set REFDESK_STORE to the new address."
        if move.part.org is None
        else "Its keys are valid there: have its agents ask the server of that store."
    )
    counts = [
        f"{say_count(moved.documents, 'document')} in {say_count(moved.versions, 'version')}",
        say_count(moved.vectors, "vector"),
        say_count(moved.links, "link"),
        say_count(moved.records, "record"),
    ]
    return f"Moved and compared{what}: {', '.join(counts)}. {then}"


def _to_json(moved: Sequence[tuple[Move, Contents]]) -> dict[str, object]:
    """Return what was moved to --to and, under `apart`, what was moved to each toolset's own store."""
    written = {move.toolset: {**asdict(each), "digest": f"{each.digest:032x}"} for move, each in moved}
    apart = {toolset: contents for toolset, contents in written.items() if toolset is not None}
    return {**written.get(None, {}), **({"apart": apart} if apart else {})}
