"""The operations of administration: each within the caller's own org, for callers with the scope `admin`.

The command line does the same for every org.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.context import Context
from refdesk.core.keeping import acts, erasing
from refdesk.core.operations import READS, Effects, Operation, Route, Shortening
from refdesk.core.writing import audit
from refdesk.errors import ConfigurationError, InvalidInputError, PermissionDeniedError
from refdesk.toolsets.administration.declaring import ADMIN, ERRORS
from refdesk.toolsets.administration.inventory import INVENTORY
from refdesk.toolsets.administration.models import (
    Act,
    Broken,
    EraseInput,
    EraseOutput,
    ExportInput,
    ExportOutput,
    Log,
    ShowInput,
    ShowOutput,
    VerifyInput,
    VerifyOutput,
)
from refdesk.toolsets.administration.upkeep import UPKEEP

if TYPE_CHECKING:
    from refdesk.core.keeping.acts import Stores
    from refdesk.core.writing.audit import Verdict

LONG_SECONDS = 300.0
"""The least time limit for erasing and for reading a whole log."""


async def erase(context: Context, asked: EraseInput) -> EraseOutput:
    """Erase for good an entry, all that an agent wrote, or the whole of the caller's org."""
    principal, bases = context.principal, context.bases
    if asked.org not in (None, principal.org):
        raise PermissionDeniedError(
            "You can erase your own org only; ask whoever runs the server to erase others there."
        )
    if bases.closed:
        raise ConfigurationError(
            f"This server does not serve {', '.join(bases.closed)}, which is kept in a store of its own: nothing could "
            "be erased there. Use the command `refdesk erase`, or ask a server that serves all toolsets."
        )
    wanted = erasing.Erasable(principal.org, asked.entry, asked.agent)
    actor = audit.make_actor(principal, principal.transport)
    erased = await erasing.erase_everywhere(list(bases.open.values()), actor, wanted)
    return EraseOutput(erased=erased.count, is_scrubbed=erased.is_scrubbed)


async def show_audit(context: Context, asked: ShowInput) -> ShowOutput:
    """Show the latest acts in the caller's org."""
    wanted = acts.Wanted(asked.agent, asked.action, asked.record, asked.refused)
    page = await acts.list_newest(_list_stores(context), context.principal.org, wanted, asked.limit, asked.cursor)
    return ShowOutput(entries=[_show(act) for act in page.acts], next_cursor=page.cursor)


async def verify_audit(context: Context, asked: VerifyInput) -> VerifyOutput:
    """Verify the audit logs of the caller's org."""
    found = await acts.verify(_list_stores(context), context.principal.org, asked.expect)
    return VerifyOutput(holds=not any(verdict.broken for _, verdict in found), logs=[_tell(*each) for each in found])


async def export_audit(context: Context, asked: ExportInput) -> ExportOutput:
    """Read an audit log of the caller's org, oldest entry first."""
    name, stores, org = asked.store or acts.MAIN, _list_stores(context), context.principal.org
    if name not in stores:
        raise InvalidInputError(f"No toolset {name} has a store of its own here; leave `store` out.")
    last = await stores[name].get_last_audit(org)
    entries = await stores[name].get_audit(org, asked.offset, asked.limit)
    shown = [_show(acts.Act(name, entry)) for entry in entries]
    return ExportOutput(entries=shown, total=last.number if last is not None else 0)


def _list_stores(context: Context) -> Stores:
    return {name: base.store for name, base in context.bases.open.items()}


def _show(act: acts.Act) -> Act:
    return Act.model_validate(acts.write_act(act))


def _tell(store: str, verdict: Verdict) -> Log:
    broken = verdict.broken
    return Log(
        store=None if store == acts.MAIN else store,
        entries=verdict.entries,
        end=acts.write_anchor(store, verdict),
        broken=Broken(number=broken.number, reason=broken.reason) if broken is not None else None,
    )


OPERATIONS = (
    Operation(
        name="erase",
        title="Erase for good",
        description=(
            "Erase an entry, all that an agent wrote, or your whole org, with every version and trace. There is no way "
            "back: ask the user first. To take an entry out of sight only: withdraw_knowledge."
        ),
        input=EraseInput,
        output=EraseOutput,
        handler=erase,
        scopes=ADMIN,
        effects=Effects(read_only=False, idempotent=True, destructive=True),
        route=Route("POST", "/erase"),
        errors={
            **ERRORS,
            "INVALID_INPUT": "It is not said what is to be erased, or more than one thing.",
            "NOT_FOUND": "There is no such entry in the org, or nothing of the agent.",
            "PERMISSION_DENIED": "The credential lacks the scope admin, or another org is named.",
            "CONFIGURATION_ERROR": "A toolset with a store of its own is not served here.",
        },
        examples=({"entry": "01930000-0000-7000-8000-000000000001"}, {"agent": "support-bot"}),
        least_seconds=LONG_SECONDS,
    ),
    Operation(
        name="show_audit",
        title="Show the audit log",
        description="See who did what to which record, when and from where, newest first.",
        input=ShowInput,
        output=ShowOutput,
        handler=show_audit,
        scopes=ADMIN,
        effects=READS,
        route=Route("GET", "/audit"),
        errors=ERRORS,
        examples=({"limit": 10}, {"refused": True, "agent": "support-bot"}),
        shortening=Shortening("entries", rest="Ask for fewer at once."),
    ),
    Operation(
        name="verify_audit",
        title="Verify the audit log",
        description="Check that no entry of the audit log was changed, removed or moved.",
        input=VerifyInput,
        output=VerifyOutput,
        handler=verify_audit,
        scopes=ADMIN,
        effects=READS,
        route=Route("GET", "/audit/verify"),
        errors=ERRORS,
        examples=({}, {"expect": "1204:5d1c"}),
        least_seconds=LONG_SECONDS,
    ),
    Operation(
        name="export_audit",
        title="Export the audit log",
        description="Read the audit log whole, oldest first, with the digests that let anybody check it.",
        input=ExportInput,
        output=ExportOutput,
        handler=export_audit,
        scopes=ADMIN,
        effects=READS,
        route=Route("GET", "/audit/entries"),
        errors=ERRORS,
        examples=({"limit": 100}, {"offset": 100, "limit": 100}),
        shortening=Shortening("entries", rest="Read on from there.", pages=True),
    ),
    *UPKEEP,
    *INVENTORY,
)
