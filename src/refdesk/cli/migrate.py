"""`refdesk migrate`: copies everything from one store to another, across engines."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING

import click

from refdesk.cli import invocation, progress

if TYPE_CHECKING:
    from refdesk.cli.progress import Show
    from refdesk.core.keeping.migrating import Contents, Work

LABELS: Mapping[Work, str] = {"moving": "Moving", "building": "Building indexes", "comparing": "Comparing"}
TIMES_READ: Mapping[Work, int] = {"moving": 1, "building": 0, "comparing": 2}


@click.command()
@click.option("--from", "source", required=True, metavar="URL", help="The store that holds everything now.")
@click.option("--to", "target", required=True, metavar="URL", help="The store to fill: empty, or half filled by this.")
@invocation.json_option
def migrate(source: str, target: str, as_json: bool) -> None:
    """Copy everything from one store to another: documents with all versions, vectors, links, keys and quotas.

    Stop all writes to the source first. If interrupted, the same command resumes. At the end both stores are read
    whole and compared.
    """
    import anyio

    invocation.load()
    with progress.show_progress("Moving") as show:
        moved = anyio.run(_migrate, source, target, show)
    if as_json:
        invocation.print_json(_to_json(moved))
    else:
        click.echo(
            f"Moved and compared: {moved.documents} documents in {moved.versions} versions, {moved.vectors} vectors, "
            f"{moved.links} links, {moved.records} records. Set REFDESK_STORE to the new address."
        )


async def _migrate(source: str, target: str, show: Show | None) -> Contents:
    from refdesk.core.keeping import migrating
    from refdesk.factories.stores import choose_store, require_there

    require_there(source, "--from")
    open_source, open_target = choose_store(source, "--from"), choose_store(target, "--to")
    async with open_source() as old, open_target() as new:
        shown = _Shown(show, sum(sum(each.documents.values()) for each in await old.get_statistics()))
        name = blake2b(source.encode(), digest_size=16).hexdigest()
        return await migrating.migrate(old, new, name, shown.note, shown.begin)


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


def _to_json(contents: Contents) -> dict[str, object]:
    from dataclasses import asdict

    return {**asdict(contents), "digest": f"{contents.digest:032x}"}
