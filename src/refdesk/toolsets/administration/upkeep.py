"""Operations that keep served data up to date: syncing now, and looking after what is not embedded yet.

Data from a source belongs to all orgs. As for embedding, callers see and retry what their own org can find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk.core.operations import READS, Effects, Operation, Route, Shortening
from refdesk.core.writing import audit
from refdesk.errors import ConfigurationError
from refdesk.model import SHARED_ORG
from refdesk.toolsets.administration.declaring import ADMIN, ERRORS
from refdesk.toolsets.administration.models import (
    Failed,
    Progress,
    RetryInput,
    RetryOutput,
    ShowEmbeddingsInput,
    ShowEmbeddingsOutput,
    ShowSyncsInput,
    ShowSyncsOutput,
    Sync,
    SyncInput,
    SyncOutput,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.core.background.syncing import SyncProgress
    from refdesk.core.background.upkeep import EmbeddingState, SyncState, Upkeep
    from refdesk.core.context import Context
    from refdesk.model import JsonValue

SYNC_SECONDS = 3600.0
"""The least time limit for a sync, as the first one reads everything."""


async def sync_toolset(context: Context, asked: SyncInput) -> SyncOutput:
    """Bring a toolset up to date with its source now."""
    upkeep = _get_upkeep(context)

    def note(state: SyncProgress) -> None:
        of = f" of {state.total}" if state.total is not None else ""
        context.report(state.read, state.total, f"Read {state.read}{of} records")

    context.report(0, None, "Asking the source")
    done = await upkeep.sync(asked.toolset, note, full=asked.full, force=asked.force)
    await _put_on_record(context, "sync_toolset", {"toolset": asked.toolset, "outcome": done.outcome})
    running = None
    if done.outcome == "busy":
        [state] = [each for each in await upkeep.list_syncs() if each.toolset == asked.toolset]
        running = _show_progress(state.progress)
    return SyncOutput(
        toolset=asked.toolset,
        outcome="busy" if done.outcome == "busy" else "succeeded",
        running=running,
        kind=done.kind,
        started_at=done.started_at,
        finished_at=done.finished_at,
        added=done.added,
        changed=done.changed,
        withdrawn=done.withdrawn,
        restored=done.restored,
        unchanged=done.unchanged,
        quarantined=done.quarantined,
        withheld=done.withheld,
        missing=done.missing,
    )


async def show_syncs(context: Context, asked: ShowSyncsInput) -> ShowSyncsOutput:
    """Show the sync state of every toolset that has a source."""
    found = await _get_upkeep(context).list_syncs()
    return ShowSyncsOutput(syncs=[_show_sync(each) for each in found if asked.toolset in (None, each.toolset)])


async def show_embeddings(context: Context, asked: ShowEmbeddingsInput) -> ShowEmbeddingsOutput:
    """Show how far embedding has got, and what could not be embedded."""
    state = await _get_upkeep(context).get_embedding(_list_orgs(context))
    failures = [
        Failed(
            toolset=each.collection.toolset,
            id=each.id,
            reason=each.reason,
            attempts=each.attempts,
            retry_at=each.retry_at,
        )
        for each in state.failures[: asked.limit]
    ]
    return ShowEmbeddingsOutput(**_count(state), failures=failures)


async def retry_embeddings(context: Context, asked: RetryInput) -> RetryOutput:
    """Retry at once to embed what could not be embedded."""
    upkeep, orgs = _get_upkeep(context), _list_orgs(context)
    retried = await upkeep.retry_embeddings(orgs, asked.toolset)
    await _put_on_record(context, "retry_embeddings", {"retried": retried})
    return RetryOutput(**_count(await upkeep.get_embedding(orgs)), retried=retried)


async def _put_on_record(context: Context, action: str, details: Mapping[str, JsonValue]) -> None:
    """Record in the audit log who asked for something that the server then did."""
    base, principal = context.knowledge_base, context.principal
    act = audit.make_act(audit.make_actor(principal, principal.transport), action, details=details)
    async with base.store.transaction() as transaction:
        await audit.append(transaction, principal.org, base.clock.now(), act)


def _get_upkeep(context: Context) -> Upkeep:
    if context.get_upkeep is None:
        raise ConfigurationError("Nothing is kept current here; ask a server.")
    return context.get_upkeep()


def _list_orgs(context: Context) -> frozenset[str]:
    return frozenset({context.principal.org, SHARED_ORG})


def _show_sync(state: SyncState) -> Sync:
    status = state.status
    return Sync(
        toolset=state.toolset,
        is_due=state.is_due,
        is_running=state.is_running,
        running=_show_progress(state.progress),
        documents=status.documents,
        last_success=status.last_success,
        last_full=status.last_full,
        last_error=status.last_error,
        last_error_at=status.last_error_at,
    )


def _show_progress(progress: SyncProgress | None) -> Progress | None:
    return Progress(read=progress.read, total=progress.total) if progress is not None else None


def _count(state: EmbeddingState) -> dict[str, Any]:
    return {
        "model": state.wanted,
        "searched_by": state.active,
        "documents": state.documents,
        "embedded": state.embedded,
        "waiting": state.waiting,
        "failed": len(state.failures),
    }


def _keep(asked: SyncInput) -> dict[str, JsonValue]:
    return asked.model_dump(mode="json", by_alias=True)


UPKEEP = (
    Operation(
        name="sync_toolset",
        title="Sync a toolset now",
        description="Bring a toolset up to date with its source now, without waiting until that is due.",
        input=SyncInput,
        output=SyncOutput,
        handler=sync_toolset,
        scopes=ADMIN,
        effects=Effects(read_only=False, idempotent=True, open_world=True),
        route=Route("POST", "/syncs"),
        errors={
            **ERRORS,
            "INVALID_INPUT": "The toolset is not served here, or has no source.",
            "SOURCE_UNAVAILABLE": "The source could not be read; what had landed stays, and the next sync goes on.",
            "CONFIGURATION_ERROR": "The settings name no source that could be read.",
        },
        examples=({"toolset": "azure-updates"}, {"toolset": "azure-updates", "full": True}),
        least_seconds=SYNC_SECONDS,
        keep=_keep,
    ),
    Operation(
        name="show_syncs",
        title="Show syncs",
        description="See for each toolset with a source when it was last synced, how that went, and what runs now.",
        input=ShowSyncsInput,
        output=ShowSyncsOutput,
        handler=show_syncs,
        scopes=ADMIN,
        effects=READS,
        route=Route("GET", "/syncs"),
        errors=ERRORS,
        examples=({}, {"toolset": "azure-updates"}),
    ),
    Operation(
        name="show_embeddings",
        title="Show embeddings",
        description="See how many documents have vectors of the embedding model, how many wait, and what failed why.",
        input=ShowEmbeddingsInput,
        output=ShowEmbeddingsOutput,
        handler=show_embeddings,
        scopes=ADMIN,
        effects=READS,
        route=Route("GET", "/embeddings"),
        errors=ERRORS,
        examples=({}, {"limit": 100}),
        shortening=Shortening("failures", rest="Ask for fewer at once."),
    ),
    Operation(
        name="retry_embeddings",
        title="Retry embeddings",
        description="Let every document that could not be embedded be tried again at once, also those set aside.",
        input=RetryInput,
        output=RetryOutput,
        handler=retry_embeddings,
        scopes=ADMIN,
        effects=Effects(read_only=False, idempotent=True),
        route=Route("POST", "/embeddings/retry"),
        errors=ERRORS,
        examples=({}, {"toolset": "knowledge"}),
    ),
)
