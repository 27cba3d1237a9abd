"""`refdesk erase`: removes for good what must not be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from refdesk import errors
from refdesk.cli import asking, invocation
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from refdesk.core.keeping.erasing import Erasable
    from refdesk.settings import Settings

LEFT = (
    "Traces may be left in the store's own files for a while: docs/how-to/erase.md says how long on each engine. "
    "Backups and exports made before hold it still."
)

MOVED = (
    "It was moved here from another store, which may hold it still: docs/how-to/erase.md says what becomes of that one."
)


@click.command()
@click.option("--entry", metavar="ID", help="One entry, or one skill, with every version of it.")
@click.option("--agent", metavar="AGENT", type=invocation.NAME, help="Everything that an agent wrote.")
@click.option(
    "--org", metavar="ORG", type=invocation.ORG, help="Everything of an org; with --entry or --agent, where they are."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@invocation.json_option
def erase(entry: str | None, agent: str | None, org: str | None, yes: bool, as_json: bool) -> None:
    """Erase for good: every version, vector, index term, link and record of it. There is no way back.

    A tombstone without content stays, so that no import brings it back, and the audit log says that it was erased. To
    take an entry out of sight only, and be able to bring it back: refdesk knowledge withdraw.
    """
    import anyio

    from refdesk.core.keeping.erasing import Erasable

    if (entry is not None) + (agent is not None) > 1 or not (entry or agent or org):
        raise errors.InvalidInputError("Say what is to be erased: --entry ID, --agent AGENT or --org ORG.")
    settings = invocation.load()
    wanted = Erasable(org or settings.org, entry, agent)
    count, is_scrubbed, was_moved = anyio.run(_erase, settings, wanted, yes)
    if as_json:
        moved = {"wasMoved": True} if was_moved else {}
        invocation.print_json({"erased": count, "isScrubbed": is_scrubbed, **moved})
        return
    click.echo(f"Erased {say_count(count, 'document')} of {wanted.org}, each with all that was kept of it.")
    click.echo("No trace is left in the store's files." if is_scrubbed else LEFT)
    if was_moved:
        click.echo(MOVED)


async def _erase(settings: Settings, wanted: Erasable, is_sure: bool) -> tuple[int, bool, bool]:
    """Return how many documents were erased, whether no trace is left in files, and whether another store had them."""
    from refdesk.app import open_desk
    from refdesk.core.keeping import erasing, migrating
    from refdesk.core.writing.audit import Actor
    from refdesk.factories.toolsets import load_toolsets

    toolsets = load_toolsets(["knowledge", "skills"], settings)
    actor = Actor(wanted.org, settings.agent or "cli", "cli")
    async with open_desk(settings, toolsets, in_background=False) as desk:
        bases = [each.knowledge_base for each in (await desk.get_base()).each()]
        if not is_sure:
            counts = [len(ids) for base in bases for ids in (await erasing.find(base.store, wanted)).values()]
            if not asking.confirm(f"Erase {say_count(sum(counts), 'document')} of {wanted.org} for good?"):
                raise click.Abort
        erased = await erasing.erase_everywhere(bases, actor, wanted)
        moved = [await migrating.is_from_elsewhere(base.store, wanted.org) for base in bases]
    return erased.count, erased.is_scrubbed, any(moved)
