"""Operations that show what an org has: its keys, without their secrets, and how much of its quotas it uses."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from refdesk.core.operations import READS, Operation, Route, Shortening
from refdesk.core.writing import quotas
from refdesk.errors import ConfigurationError
from refdesk.kit.paging import Cursor, NextCursor, Notice, Paged, cut, explain_end, find_place
from refdesk.kit.wire import Message
from refdesk.model import SHARED_ORG, State
from refdesk.toolsets.administration.declaring import ADMIN, ERRORS
from refdesk.toolsets.administration.models import MOST_SHOWN, Name

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.core.keys import ApiKey
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.writing.quotas import Quota
    from refdesk.kit.paging import Rank


class ListKeysInput(Message):
    """What `list_keys` takes."""

    limit: int = Field(100, ge=1, le=MOST_SHOWN, description="At most this many.")
    offset: int = Field(0, ge=0, le=100_000, description="How many to skip.")
    cursor: Cursor = None


class Key(Message):
    """An API key: what it is for, never what opens anything."""

    id: str
    agent: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | SkipJsonSchema[None] = None
    revoked_at: datetime | SkipJsonSchema[None] = None
    is_valid: bool = Field(description="Whether it opens anything now.")
    last_used_at: datetime | SkipJsonSchema[None] = Field(
        None, description="When this server last let somebody in by it; absent if not since it started."
    )


class ListKeysOutput(Paged, Message):
    """What `list_keys` answers, newest first."""

    keys: list[Key]
    total: int
    has_more: bool
    next_cursor: NextCursor = None
    notice: Notice = None


class ShowUsageInput(Message):
    """What `show_usage` takes."""

    toolset: Name | SkipJsonSchema[None] = Field(None, description="Only what this one has.")


class Kept(Message):
    """How much there is in one toolset."""

    toolset: str
    is_shared: bool = Field(description="Whether every org has the same, such as a vendor's feed.")
    current: int = Field(description="Documents that hold now.")
    superseded: int
    withdrawn: int
    embedded: int = Field(description="Those that have a vector of some model.")


class QuotaUse(Message):
    """How much of a quota is used."""

    quota: str
    org_used: int
    org_limit: int | SkipJsonSchema[None] = Field(None, description="Absent where there is none.")
    agent_used: int = Field(description="By the agent that asks.")
    agent_limit: int | SkipJsonSchema[None] = Field(None, description="Of each agent; absent where there is none.")


class ShowUsageOutput(Message):
    """What `show_usage` answers."""

    toolsets: list[Kept]
    quotas: list[QuotaUse]


async def list_keys(context: Context, asked: ListKeysInput) -> ListKeysOutput:
    """List the keys of the caller's org."""
    if context.get_upkeep is None:
        raise ConfigurationError("No keys are kept here; ask a server.")
    ring = context.get_upkeep().keys
    keys, now = sorted(await ring.list(context.principal.org), key=_get_key), ring.clock.now()
    page = cut(keys, _get_key, find_place(asked, "list_keys", (0.0, ""), now), asked.limit)
    return ListKeysOutput(
        keys=[_show_key(key, now, ring.used.get(key.id)) for key in page.items],
        total=len(keys),
        has_more=page.has_more,
        next_cursor=page.next_cursor,
        notice=explain_end(page, "key", "keys", len(keys)),
    ).going_on(page.cursors)


def _get_key(key: ApiKey) -> Rank:
    return -key.created_at.timestamp(), key.id


async def show_usage(context: Context, asked: ShowUsageInput) -> ShowUsageOutput:
    """Show how much the caller's org keeps in each toolset, and how much of its quotas it uses."""
    bases = list(context.bases.open.values())
    kept = [each for base in bases for each in await _count(base, context.principal.org)]
    known = {name: quota for base in bases for name, quota in base.quotas.items()}
    used = [await _read_quota(context, bases, quota) for _, quota in sorted(known.items())]
    shown = [each for each in kept if asked.toolset in (None, each.toolset)]
    return ShowUsageOutput(toolsets=sorted(shown, key=lambda each: each.toolset), quotas=used)


def _show_key(key: ApiKey, now: datetime, used: datetime | None) -> Key:
    return Key(
        id=key.id,
        agent=key.agent,
        scopes=list(key.scopes),
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        is_valid=key.is_valid(now),
        last_used_at=used,
    )


async def _count(base: KnowledgeBase, org: str) -> list[Kept]:
    return [
        Kept(
            toolset=each.collection.toolset,
            is_shared=each.collection.org == SHARED_ORG,
            current=each.documents.get(State.CURRENT, 0),
            superseded=each.documents.get(State.SUPERSEDED, 0),
            withdrawn=each.documents.get(State.WITHDRAWN, 0),
            embedded=max(each.embedded.values(), default=0),
        )
        for owner in sorted({org, SHARED_ORG})
        for each in await base.store.get_statistics(owner)
    ]


async def _read_quota(context: Context, bases: list[KnowledgeBase], quota: Quota) -> QuotaUse:
    used = Counter[str]()
    for base in bases:
        found = await quotas.read_usage(base.store, quota, context.principal.org, context.principal.agent)
        used.update(org=found.org, agent=found.agent)
    return QuotaUse(
        quota=quota.name,
        org_used=used["org"],
        org_limit=quota.per_org,
        agent_used=used["agent"],
        agent_limit=quota.per_agent,
    )


INVENTORY = (
    Operation(
        name="list_keys",
        title="List keys",
        description="See the API keys of your org: for whom, what each may do, and whether it is valid; no secret.",
        input=ListKeysInput,
        output=ListKeysOutput,
        handler=list_keys,
        scopes=ADMIN,
        effects=READS,
        route=Route("GET", "/keys"),
        errors=ERRORS,
        shortening=Shortening("keys", rest="Ask for fewer at once.", pages=True),
        examples=({}, {"limit": 20}),
    ),
    Operation(
        name="show_usage",
        title="Show usage",
        description="See how much your org keeps, toolset by toolset, and how much of its quotas that is.",
        input=ShowUsageInput,
        output=ShowUsageOutput,
        handler=show_usage,
        scopes=ADMIN,
        effects=READS,
        route=Route("GET", "/usage"),
        errors=ERRORS,
        examples=({}, {"toolset": "knowledge"}),
    ),
)
